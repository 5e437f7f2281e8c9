"""One request and its answer. Nothing else sends, so nothing else sees the exceptions of the HTTP library."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
import httpx
import httpx_aiohttp
from pydantic_core import from_json

from edge_operator.api import errors, redaction, retry

Answer = dict[str, Any]
"""A JSON object as the service returned it."""

_KEPT_ALIVE_SECONDS: Final = 3.0
"""Idle connections are closed before common servers close them (5 s and up): a request into a closing one is lost."""
_CONNECTIONS: Final = 100
_OPERATION_ID_CHARACTERS: Final = 64

_NO_CONNECTION: Final = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
)
_NO_CONNECTION_AIOHTTP: Final = (
    aiohttp.ClientConnectorError,  # with its kinds: no such name, TLS not agreed, no proxy
    aiohttp.ConnectionTimeoutError,
    aiohttp.ClientHttpProxyError,
    aiohttp.InvalidURL,
    aiohttp.NonHttpUrlClientError,
)


@dataclass(frozen=True, kw_only=True)
class Timeouts:
    """How long one attempt may take, in seconds: to connect, between two pieces of the answer, and as a whole."""

    connect_seconds: float = 5.0
    read_seconds: float = 20.0
    total_seconds: float = 30.0

    def __post_init__(self) -> None:
        for name in ("connect_seconds", "read_seconds", "total_seconds"):
            if not 0 < getattr(self, name) < float("inf"):
                raise errors.Misuse(f"timeout.{name}: {getattr(self, name)} should be more than 0 seconds")


@dataclass(frozen=True, kw_only=True)
class Outgoing:
    """One request as it goes out. `path` names it in messages; `reads` is whether a success has to be a JSON object."""

    method: str
    url: httpx.URL
    path: str
    content: bytes | None = None
    body: Mapping[str, Any] | None = None
    """The neutral body that `content` was made of: its secrets are kept out of messages."""
    reads: bool = True


class Exchange:
    """Sends requests and reads answers, each once. Every failure is one of `errors`."""

    def __init__(
        self,
        api_key: str,
        headers: Mapping[str, str],
        timeouts: Timeouts,
        *,
        transport: httpx.AsyncBaseTransport | None,
        verify: ssl.SSLContext | bool,
    ) -> None:
        self._secrets = (api_key,)
        plain = {
            **headers,
            "Accept": "application/json",
            "Accept-Encoding": "gzip, deflate",
            "Authorization": f"Bearer {api_key}",
        }
        self._headers = httpx.Headers(plain)
        self._headers_with_body = httpx.Headers({**plain, "Content-Type": "application/json"})
        self._timeouts = timeouts
        self._extensions = {
            "timeout": {
                "connect": timeouts.connect_seconds,
                "read": timeouts.read_seconds,
                "write": timeouts.read_seconds,
                "pool": timeouts.total_seconds,
            }
        }
        self._http = _client(transport, verify)

    @property
    def closed(self) -> bool:
        return self._http.is_closed

    async def close(self) -> None:
        await self._http.aclose()

    async def once(self, outgoing: Outgoing) -> Answer | None:
        """The answer, None for a success without a body (or where `reads` is off). Raises APIError."""
        if self.closed:
            raise errors.Misuse("the client is closed")
        request = httpx.Request(
            outgoing.method,
            outgoing.url,
            headers=self._headers if outgoing.content is None else self._headers_with_body,
            content=outgoing.content,
            extensions=self._extensions,
        )
        try:
            async with asyncio.timeout(self._timeouts.total_seconds):
                response = await self._http.send(request, auth=None, follow_redirects=False)
        except Exception as error:  # Whatever went wrong, the request may have arrived.
            raise self._failure(outgoing, error) from error
        if response.is_success:
            return self._read(outgoing, response) if outgoing.reads else None
        raise self._refusal(outgoing, response)

    def _failure(self, outgoing: Outgoing, error: Exception) -> errors.APIError:
        where = {"method": outgoing.method, "path": outgoing.path}
        said = self._clean(outgoing, str(error)) or type(error).__name__
        if _never_connected(error):
            return errors.NotSent(f"no connection to {outgoing.url.netloc.decode()}: {said}", **where)
        if isinstance(error, TimeoutError | httpx.TimeoutException) and not _dropped(error):
            return errors.OutcomeUnknown("no complete answer in time", **where)
        return errors.OutcomeUnknown(f"no complete answer: {said}", **where)

    def _read(self, outgoing: Outgoing, response: httpx.Response) -> Answer | None:
        if not response.content:
            return None
        where = {"method": outgoing.method, "path": outgoing.path}
        try:
            answer = from_json(response.content, allow_inf_nan=False)
        except ValueError as error:
            raise errors.Unreadable(f"{response.status_code}, but the answer is not JSON", **where) from error
        if not isinstance(answer, dict):
            raise errors.Unreadable(f"{response.status_code}, but the answer is not a JSON object", **where)
        return answer

    def _refusal(self, outgoing: Outgoing, response: httpx.Response) -> errors.StatusError:
        try:
            found = from_json(response.content, allow_inf_nan=False)
        except ValueError:
            found = None
        body = found if isinstance(found, dict) else {}
        details = body.get("details")
        message = self._text(outgoing, body.get("msg"))
        if response.is_redirect and (location := response.headers.get("location")):
            target = self._clean(outgoing, location.partition("?")[0])
            message = f"leads to {target}, which is not followed; the base URL should be the final address"
        return errors.for_status(response.status_code)(
            response.status_code,
            message=message or self._clean(outgoing, response.reason_phrase),
            code=self._text(outgoing, body.get("error_code"), _OPERATION_ID_CHARACTERS) or None,
            operation_id=self._text(
                outgoing, details.get("operation_id") if isinstance(details, dict) else None, _OPERATION_ID_CHARACTERS
            )
            or None,
            parsed=isinstance(found, dict),
            retry_after_seconds=retry.retry_after_seconds(response.headers.get("retry-after"), time.time()),
            method=outgoing.method,
            path=outgoing.path,
        )

    def _text(self, outgoing: Outgoing, value: Any, characters: int = redaction.MESSAGE_CHARACTERS) -> str:
        return self._clean(outgoing, value, characters) if isinstance(value, str) else ""

    def _clean(self, outgoing: Outgoing, text: str, characters: int = redaction.MESSAGE_CHARACTERS) -> str:
        secrets: Iterable[str] = (*self._secrets, *redaction.secrets_in(outgoing.body))
        return redaction.clean(text, secrets, characters=characters)


def _client(transport: httpx.AsyncBaseTransport | None, verify: ssl.SSLContext | bool) -> httpx.AsyncClient:
    """The given transport, else aiohttp's engine: an eighth of the CPU of httpx's own at 20 requests in flight."""
    if transport is not None:
        return httpx.AsyncClient(transport=transport)
    limits = httpx.Limits(max_connections=_CONNECTIONS, keepalive_expiry=_KEPT_ALIVE_SECONDS)
    return httpx_aiohttp.HttpxAiohttpClient(limits=limits, verify=verify)


def _never_connected(error: Exception) -> bool:
    """Whether no connection opened. The list is of what surely means that; anything else may have arrived.

    The aiohttp transport says `ConnectTimeout` for a connection that was dropped after sending, too, so the exception
    of aiohttp's own, which it chains, has the last word.
    """
    foreign = error.__cause__
    if isinstance(foreign, aiohttp.ClientError):
        return isinstance(foreign, _NO_CONNECTION_AIOHTTP)
    return isinstance(error, (*_NO_CONNECTION, *_NO_CONNECTION_AIOHTTP))


def _dropped(error: Exception) -> bool:
    """Whether an exception that is called a time-out is in truth a lost connection."""
    return isinstance(error.__cause__, aiohttp.ClientError) and not isinstance(error.__cause__, TimeoutError)
