"""The terms of a connection: everything that a client of an account is made of, Secrets included."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from edge_operator import __version__, connections
from edge_operator.api import profiles
from edge_operator.api.caller import Attempt, Gate
from edge_operator.api.client import Client
from edge_operator.api.errors import Misuse
from edge_operator.api.exchange import Timeouts
from edge_operator.api.profiles import Profile
from edge_operator.api.retry import RetryPolicy
from edge_operator.declare import TextInput
from edge_operator.engine import references
from edge_operator.engine.operations import Stalled, shown
from edge_operator.engine.reasons import Stalls
from edge_operator.kube.secrets import Secrets

RETRY = RetryPolicy(attempts=3, base_seconds=0.2, cap_seconds=1.0, longest_wait_seconds=0.0)
"""Reads, PUT, PATCH and DELETE are repeated twice at once; longer pauses are the queue's, which holds no worker."""


@dataclass(frozen=True)
class Terms:
    """Where an account is, and how it is asked. Two that are equal make equal clients."""

    url: str
    api_key: str = field(repr=False)
    profile: Profile
    call_seconds: float
    concurrency: int
    requests_per_minute: int | None = None
    ca_bundle: str | None = field(default=None, repr=False)
    owner_marker: bool = True

    def fingerprint(self, key: bytes) -> str:
        """What is remembered of address and API key: sixteen characters that tell neither."""
        said = f"connection\0{self.url}\0{self.api_key}".encode()
        return hmac.new(key, said, hashlib.sha256).hexdigest()[:16]

    def client(
        self,
        gate: Gate | None,
        observer: Callable[[Attempt], None],
        *,
        retry: RetryPolicy = RETRY,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> Client:
        """A client; without a gate for nothing but to see whether one can be made.

        Raises:
            Misuse: base URL or key cannot be used.
            ssl.SSLError: the certificates cannot be read.
        """
        return Client(
            self.url,
            self.api_key,
            profile=self.profile,
            timeout=Timeouts(total_seconds=self.call_seconds),
            retry=retry,
            verify=ssl.create_default_context(cadata=self.ca_bundle) if self.ca_bundle else True,
            gate=gate,
            observer=observer,
            sleep=sleep,
            user_agent=f"edge-operator/{__version__}",
        )


async def terms(spec: connections.Spec, namespace: str, secrets: Secrets, *, call_seconds: float) -> Terms:
    """The terms that a spec states. `call_seconds` is the longest that a call may take, and the default.

    Raises:
        Waiting: a Secret or a key in it is absent.
        Stalled: something cannot be used; the message says what.
    """
    values = await secrets.values(namespace, references.secret_keys(spec))

    def text(given: TextInput | None) -> str | None:
        if given is None or given.secret_key_ref is None:
            return given.value if given else None
        return values[given.secret_key_ref]

    custom, timeout = text(spec.custom_profile), call_seconds
    try:
        profile = profiles.parse(custom, "spec.customProfile") if custom else profiles.load(spec.profile or "neutral")
    except profiles.ProfileError as error:
        told = spec.custom_profile is None or spec.custom_profile.secret_key_ref is None
        text_ = shown(error) if told else "spec.customProfile: what the Secret holds is not a profile"
        raise Stalled(Stalls.INVALID_SPEC, text_) from None
    if spec.timeout is not None:
        timeout = spec.timeout.total_seconds()
        if timeout > call_seconds:
            text_ = f"spec.timeout: at most {call_seconds:g}s, because no call may outlast the operator's Lease"
            raise Stalled(Stalls.INVALID_SPEC, text_)
    found = Terms(
        url=spec.url.rstrip("/"),
        api_key=values[spec.api_key.secret_key_ref].strip(),
        profile=profile,
        call_seconds=timeout,
        concurrency=spec.concurrency,
        requests_per_minute=spec.requests_per_minute,
        ca_bundle=text(spec.ca_bundle),
        owner_marker=spec.owner_marker,
    )
    await _tried(found)
    return found


async def _tried(found: Terms) -> None:
    """Nothing, if a client can be made.

    Raises:
        Stalled: it cannot.
    """
    try:
        await found.client(None, lambda _: None).close()
    except Misuse as error:
        raise Stalled(Stalls.INVALID_SPEC, shown(error)) from None
    except ssl.SSLError:
        text = "spec.caBundle: expected certificates in PEM, one after the other"
        raise Stalled(Stalls.INVALID_SPEC, text) from None
