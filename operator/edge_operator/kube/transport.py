"""One HTTP request to the API server and back; everything that a library below raises becomes one of our errors."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import aiohttp
from kubernetes.aio.client import rest

from edge_operator import __version__
from edge_operator.kube import errors, paths
from edge_operator.kube.credentials import Credentials

Answer = aiohttp.ClientResponse
"""A successful answer whose body is still to be read, or closed."""


GOODBYE_SECONDS = 0.05


@dataclass(frozen=True)
class Call:
    """One request that was made, for metrics."""

    method: str
    """GET, POST, PUT, PATCH, DELETE or WATCH."""
    about: str
    """For example `httpsedges/status`."""
    status: int
    """0 where there was no answer."""
    seconds: float
    """Until the head of the answer was there."""


@dataclass(frozen=True)
class Request:
    """What is to be sent."""

    method: str
    path: str
    body: Any = field(default=None, repr=False)
    query: dict[str, str] = field(default_factory=dict)
    accept: str = "application/json"
    content_type: str = "application/json"

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class Transport:
    """Sends requests over at most `max_connections` connections, with credentials that are kept fresh.

    It uses the official client's REST layer, with a session that looks for proxies and .netrc once instead of with each
    request (which takes four times the CPU), and keeps no cookies.
    """

    def __init__(self, credentials: Credentials, max_connections: int, on_call: Callable[[Call], None]) -> None:
        """Prepare TLS; nothing is sent.

        Raises:
            NotConfigured: a certificate or key is unusable.
        """
        self._credentials = credentials
        self._on_call = on_call
        self._agent = f"edge-operator/{__version__}"
        settings = credentials.configuration
        settings.connection_pool_maxsize = max_connections
        settings.client_session_kwargs = {"trust_env": False, "cookie_jar": aiohttp.DummyCookieJar()}
        try:
            self._rest: Any = rest.RESTClientObject(settings)
        except (OSError, ValueError) as error:
            text = f"{credentials.place}: unusable certificate or key: {readable(error)}"
            raise errors.NotConfigured(text) from error

    async def close(self) -> None:
        """Close all connections, those of open watches included.

        A connection whose request was cancelled says goodbye beside; it gets a moment for that, or it would be missed.
        """
        await self._rest.close()
        if self._credentials.server.startswith("https:"):
            await asyncio.sleep(GOODBYE_SECONDS)

    async def send(self, request: Request, limits: aiohttp.ClientTimeout) -> Answer:
        """A 2xx answer, with its body still to be read; a refused token is read anew and tried once more.

        Raises:
            KubeError: there is no answer, or it is a refusal.
        """
        token = await self._credentials.authorization()
        try:
            return await self._send(request, limits, token)
        except errors.Unauthorized:
            if not await self._credentials.refused(token):
                raise
        return await self._send(request, limits, await self._credentials.authorization())

    async def _send(self, request: Request, limits: aiohttp.ClientTimeout, token: str | None) -> Answer:
        headers = {"Accept": request.accept, "Content-Type": request.content_type, "User-Agent": self._agent}
        if token:
            headers["Authorization"] = token
        url = self._credentials.server + request.path
        if request.query:
            url += "?" + urlencode(request.query)
        started, status = time.perf_counter(), 0
        try:
            with translated(request):
                got = await self._rest.request(request.method, url, headers, request.body, _request_timeout=limits)
                answer: Answer = got.response
                status = answer.status
                if 200 <= status < 300:
                    return answer
                body = await answer.read()
        finally:
            verb = "WATCH" if "watch" in request.query else request.method
            self._on_call(Call(verb, paths.about(request.path), status, time.perf_counter() - started))
        raise errors.refusal(str(request), status, body, answer.headers.get("Retry-After"))


async def lines(answer: Answer) -> AsyncGenerator[bytes]:
    """The lines of an answer as they arrive, whatever their length; an unfinished last one is dropped."""
    rest_of_line = b""
    async for chunk in answer.content.iter_any():
        *complete, rest_of_line = (rest_of_line + chunk).split(b"\n")
        for line in complete:
            if line.strip():
                yield line


@contextmanager
def translated(request: Request) -> Iterator[None]:
    """Turn what the HTTP library raises into `Unreachable`, with what is known of whether anything was sent."""
    try:
        yield
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        raise errors.Unreachable(f"{request}: {readable(error)}", sent=False) from error
    except (aiohttp.ClientError, OSError, ssl.SSLError) as error:
        raise errors.Unreachable(f"{request}: {readable(error)}", sent=True) from error
    except RuntimeError as error:
        if "closed" not in str(error):
            raise
        raise errors.Unreachable(f"{request}: the connection was closed on our side", sent=False) from error


def readable(error: BaseException) -> str:
    """What happened, in a few words; some errors of the library have no text of their own."""
    return f"{type(error).__name__}: {error}"[: errors.FOREIGN_TEXT].rstrip(": ")
