"""Doubles for the client's tests: a service that answers from a table, and one on a real socket that misbehaves."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from edge_operator.api import client, exchange, retry

KEY = "ak_canary_2kF9vQ7pLx"
BASE = "https://api.example.com"
QUICK = exchange.Timeouts(connect_seconds=2, read_seconds=0.3, total_seconds=0.6)


@dataclass
class Service:
    """An httpx transport's handler: records requests, answers with what `answers` yields, then with the last again."""

    answers: list[httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]]
    requests: list[httpx.Request] = field(default_factory=list)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        if not isinstance(answer, httpx.Response):
            return answer(request)
        # A response belongs to one request, so each request gets its own copy.
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    @property
    def last(self) -> httpx.Request:
        return self.requests[-1]

    @property
    def sent(self) -> list[str]:
        return [f"{request.method} {request.url.raw_path.decode()}" for request in self.requests]


def replies(status: int, body: Any = None, **headers: str) -> httpx.Response:
    content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    return httpx.Response(status, content=content, headers={k.replace("_", "-"): v for k, v in headers.items()})


def refusal(status: int, message: str = "", code: str | None = None, **headers: str) -> httpx.Response:
    """An error answer in the service's shape."""
    body: dict[str, Any] = {"status_code": status, "msg": message, "details": {"operation_id": "op_1"}}
    return replies(status, {**body, **({"error_code": code} if code else {})}, **headers)


def client_of(service: Callable[[httpx.Request], httpx.Response], **options: Any) -> client.Client:
    """A client of that double, without repetitions unless they are asked for."""
    options = {"retry": retry.NEVER, **options}
    return client.Client(options.pop("base_url", BASE), KEY, transport=httpx.MockTransport(service), **options)


class Rest:
    """A sleep that takes no time and remembers what was asked for."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@dataclass
class Socket:
    """A listening socket. `received` has one entry for each request that arrived whole."""

    url: str
    received: list[bytes] = field(default_factory=list)
    connections: int = 0
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)
    """Set whenever the socket has closed a connection."""


Conduct = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def listening(conduct: Conduct, *, repeat: bool = False) -> AsyncIterator[Socket]:
    """A server on a real socket that reads a request, then does what `conduct` does, then hangs up."""
    socket = Socket("")
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        socket.connections += 1
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                while True:
                    socket.received.append(await _request(reader))
                    await conduct(reader, writer)
                    if not repeat:
                        break
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            socket.hung_up.set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    socket.url = f"http://{host}:{port}"
    try:
        yield socket
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            length = int(value)
    return head + await reader.readexactly(length)


def subclasses(of: type[Any]) -> Iterator[type[Any]]:
    for below in of.__subclasses__():
        yield below
        yield from subclasses(below)
