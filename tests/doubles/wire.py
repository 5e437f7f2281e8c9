"""The network between the real client and the real reference API, both in this process."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from doubles.effects import Effects, Fate
from doubles.world import FakeWorld

LATENCY_SECONDS = 0.01


@dataclass(frozen=True)
class Exchanged:
    """One request and how it ended; `status` is 0 where no answer came."""

    method: str
    path: str
    body: Any = field(repr=False)
    status: int
    answer: Any = field(default=None, repr=False)

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.status}"


class Wire(httpx.AsyncBaseTransport):
    """Carries requests, logs them, and loses what the test wants lost. Time passes with each."""

    def __init__(self, app: Any, effects: Effects, world: FakeWorld, journal: list[Any]) -> None:
        self._inner = httpx.ASGITransport(app=app)
        self._effects, self._world, self._journal = effects, world, journal
        self.log: list[Exchanged] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        name = f"{request.method} {request.url.path}"
        self._world.advance(LATENCY_SECONDS)
        fate = self._effects.begin(name) if request.method != "GET" else None
        if fate is Fate.CUT_BEFORE:
            self._keep(request, None)
            raise httpx.ReadError("the connection was cut", request=request)
        response = await self._inner.handle_async_request(request)
        await response.aread()
        self._keep(request, response)
        self._world.advance(LATENCY_SECONDS)
        self._effects.end(fate, name)
        match fate:
            case Fate.CUT_AFTER:
                raise httpx.ReadError("the connection was cut", request=request)
            case Fate.FAULT_AFTER:
                return httpx.Response(503, request=request)
            case Fate.GARBAGE_AFTER if response.content:
                return httpx.Response(response.status_code, content=b'{"id": "unfin', request=request)
        return response

    def _keep(self, request: httpx.Request, response: httpx.Response | None) -> None:
        body = json.loads(request.content) if request.content else None
        answer = json.loads(response.content) if response is not None and response.content else None
        path = request.url.raw_path.decode()
        exchanged = Exchanged(request.method, path, body, response.status_code if response else 0, answer)
        self.log.append(exchanged)
        self._journal.append(exchanged)


class Handled(httpx.AsyncBaseTransport):
    """A transport that one function answers for: something between us and the service."""

    def __init__(self, handle: Callable[[httpx.Request], Awaitable[httpx.Response]]) -> None:
        self._handle = handle

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await self._handle(request)
