"""The client of the management API.

    async with Client("https://api.example.com", api_key) as client:
        backend = await client.weighted_backends.create(WeightedBackendCreate(backends={"bkdhr_1": 100}))
        async for edge in client.tls_edges.list():
            ...
        as_json = await client.tls_edges.raw.get(edge.id)

Errors: `errors`. Repetitions: `retry`. What each collection has: `catalog`. Names on the wire: `profiles`.
"""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, Generic, Self, TypeVar

import httpx

from edge_operator.api import address, catalog, errors, profiles
from edge_operator.api.caller import Call, Caller, Gate, Observer
from edge_operator.api.exchange import Answer, Exchange, Timeouts
from edge_operator.api.operations import CollectionClient, Payload, as_model
from edge_operator.api.profiles import Profile
from edge_operator.api.retry import RetryPolicy
from edge_operator.api.wire import Collection, Wire

R = TypeVar("R", bound=Wire)

_METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})


class _Operations(Generic[R]):
    """A collection as an attribute of a client."""

    def __init__(self, collection: Collection[R]) -> None:
        self._collection = collection

    def __get__(self, client: Client, _owner: type[Client]) -> CollectionClient[R, Wire]:
        return client.of(self._collection)


class Client:
    """One account of the service. Use as an async context manager, or call `close` at the end.

    Args:
        base_url: where the API is, a path prefix included: `https://api.example.com`.
        api_key: sent as a bearer token to that origin only; no message, log or repr holds it.
        profile: names on the wire: a shipped profile's name, a file, or a Profile.
        timeout: limits of one attempt. A POST that passed `total_seconds` has an unknown outcome.
        retry: when a call is repeated; `retry.NEVER` for callers with their own plan.
        transport: an httpx transport instead of the network, for tests. The network respects HTTPS_PROXY and NO_PROXY.
        verify: TLS trust, as for httpx; an `ssl.SSLContext` for a private authority.
        gate: awaited before every attempt with method and path; it may wait, or raise to end the call.
        observer: told of every attempt that ended.
        user_agent: what the service sees as the program's name.
        sleep, jitter: how to wait, and random numbers from 0 to 1; for tests.

    Raises:
        Misuse: base URL, key or user agent cannot be used.
        ProfileError: no such profile.
    """

    api_keys = _Operations(catalog.api_keys)
    credentials = _Operations(catalog.credentials)
    tunnel_sessions = _Operations(catalog.tunnel_sessions)
    agent_ingresses = _Operations(catalog.agent_ingresses)
    ssh_certificate_authorities = _Operations(catalog.ssh_certificate_authorities)
    ssh_user_certificates = _Operations(catalog.ssh_user_certificates)
    ssh_host_certificates = _Operations(catalog.ssh_host_certificates)
    tls_certificates = _Operations(catalog.tls_certificates)
    weighted_backends = _Operations(catalog.weighted_backends)
    failover_backends = _Operations(catalog.failover_backends)
    tcp_edges = _Operations(catalog.tcp_edges)
    tls_edges = _Operations(catalog.tls_edges)
    https_edges = _Operations(catalog.https_edges)
    https_routes = _Operations(catalog.https_routes)
    event_destinations = _Operations(catalog.event_destinations)

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        profile: str | Path | Profile = "neutral",
        timeout: Timeouts | None = None,
        retry: RetryPolicy | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        verify: ssl.SSLContext | bool = True,
        gate: Gate | None = None,
        observer: Observer | None = None,
        user_agent: str = "edge-operator",
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._base = address.BaseURL(base_url)
        self.profile = profile if isinstance(profile, Profile) else profiles.load(profile)
        headers = {
            "User-Agent": _header("user_agent", user_agent, spaces=True),
            self.profile.version_header: self.profile.version,
        }
        key = _header("api_key", api_key)
        self._exchange = Exchange(key, headers, timeout or Timeouts(), transport=transport, verify=verify)
        self._caller = Caller(
            exchange=self._exchange,
            profile=self.profile,
            policy=retry or RetryPolicy(),
            gate=gate,
            observer=observer,
            sleep=sleep,
            jitter=jitter,
        )

    def __repr__(self) -> str:
        return f"Client({str(self._base)!r}, profile={self.profile.name!r})"

    @property
    def base_url(self) -> str:
        return str(self._base)

    def of(self, collection: Collection[R]) -> CollectionClient[R, Wire]:
        """The operations of a collection of the catalog; `client.of(catalog.tls_edges)` is `client.tls_edges`."""
        return CollectionClient(self._caller, self._base, collection, as_model)

    async def request(
        self,
        method: str,
        path: str,
        body: Payload | None = None,
        *,
        query: Mapping[str, str | int] | None = None,
        collection: Collection[Any] | None = None,
        module: str | None = None,
    ) -> Answer | None:
        """Any call, with gate, repetition and error classes; the JSON object that was answered, None for no body.

        `path` is percent-encoded and under the base URL. Names are translated as in `collection` (and its `module`).
        """
        if method not in _METHODS:
            raise errors.Misuse(f"method: {method!r} should be one of {', '.join(sorted(_METHODS))}")
        url = self._base.at(path, query)
        call = Call(method=method, url=url, path=path, body=body, collection=collection, module=module)
        return await self._caller.call(call)

    async def close(self) -> None:
        """Closes every connection. Calls after this raise Misuse."""
        await self._exchange.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _header(name: str, value: str, *, spaces: bool = False) -> str:
    """A value that can stand in a header. The message never quotes it: it may be the key."""
    if not isinstance(value, str) or not value:
        raise errors.Misuse(f"{name}: is empty")
    if not (value.isascii() and value.isprintable()) or value != value.strip() or (" " in value and not spaces):
        raise errors.Misuse(f"{name}: should be printable ASCII without surrounding white space or line ends")
    return value
