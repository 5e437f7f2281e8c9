"""HTTP as far as this server needs it: reads an ASGI request, sends an ASGI answer."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final

from edge_operator.server.bodies import LARGEST_BODY_BYTES
from edge_operator.server.problems import INVALID_HEADER, Problem

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_HOST: Final = re.compile(r"(?:[0-9A-Za-z._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")


class ConnectionCut(Exception):
    """The connection ends without an answer: a fault that a test asked for."""


class CallerGone(Exception):
    """The caller went away before the request was whole; nothing is done."""


@dataclass(frozen=True)
class Request:
    """One request, read whole. Header names are lower-case; a header given twice is joined with a comma."""

    method: str
    path: str
    query: bytes
    headers: Mapping[str, str]
    body: bytes
    scheme: str
    server: str

    @property
    def base(self) -> str:
        """Scheme and host as the caller used them, so that every address in an answer works for the caller.

        Raises:
            Problem: the Host header is no host.
        """
        host = self.headers.get("host") or self.server
        if not _HOST.fullmatch(host):
            raise Problem(INVALID_HEADER, "the Host header is not of the form host or host:port")
        return f"{self.scheme}://{host}"


@dataclass(frozen=True)
class Answer:
    """What goes back. `value` is the JSON document; None sends no body."""

    status: int
    value: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    """Bytes to send in place of the document."""


async def read(scope: Scope, receive: Receive) -> Request:
    """Reads the request to its end; of a body that is too large only the beginning is kept.

    Raises:
        CallerGone: there is no end.
    """
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1"), value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    chunks: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise CallerGone
        chunk, more = message.get("body", b""), message.get("more_body", False)
        if size <= LARGEST_BODY_BYTES:
            chunks.append(chunk)
        size += len(chunk)
    host, port = scope.get("server") or ("localhost", None)
    server = host if port is None else f"{host}:{port}"
    return Request(
        scope["method"], scope["path"], scope.get("query_string", b""), headers, b"".join(chunks),
        scope.get("scheme", "http"), server,
    )  # fmt: skip


async def send(answer: Answer, send_message: Send) -> None:
    body = b""
    headers = [(name.encode(), value.encode("latin-1")) for name, value in answer.headers.items()]
    if answer.value is not None or answer.raw is not None:
        document = json.dumps(answer.value, ensure_ascii=False, separators=(",", ":")).encode()
        body = document if answer.raw is None else answer.raw
        headers.append((b"content-type", b"application/json"))
    if answer.status != 204:
        headers.append((b"content-length", str(len(body)).encode()))
    await send_message({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send_message({"type": "http.response.body", "body": body})
