"""A reverse proxy in front of the API server or the service, which can hold an answer back.

A process that is killed while it waits for the answer to a request that was carried out is a process killed right after
that effect. So nothing in the operator has to know of crash tests.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Self

import aiohttp
from aiohttp import web

from edge_operator.declare import GROUP
from edge_operator.kinds import KINDS

WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
HOP_BY_HOP = frozenset({"transfer-encoding", "connection", "keep-alive", "content-length"})
_RESOURCE = re.compile(
    rf"^/apis/{re.escape(GROUP)}/[^/]+/namespaces/[^/]+/(?P<plural>[^/]+)/[^/]+(?P<status>/status)?$"
)
_SECRET = re.compile(r"^/api/v1/namespaces/[^/]+/secrets(/(?P<name>[^/]+))?$")
_COLLECTIONS = sorted(
    ((re.compile("^" + re.sub(r"\{\w+\}", "[^/]+", kind.api.path) + "(/|$)"), kind) for kind in KINDS.values()),
    key=lambda pair: -len(pair[1].api.path),
)
_BY_PLURAL = {kind.plural: kind for kind in KINDS.values()}


@dataclass
class Effects:
    """What was done, by kind, in order: {"TLSEdge": ["claim", "POST", "status"]}. One list for both gates.

    Every kind has one resource at a time, so its kind names it.
    """

    done: dict[str, list[str]] = field(default_factory=dict)
    held: Counter[str] = field(default_factory=Counter)
    hold_at: int = 0
    """The answer to the effect of this number, of each kind, is held back; 0 for none."""

    def begin(self, hold_at: int = 0) -> None:
        """Forget what was done, and hold from now on."""
        self.hold_at = 0
        self.done, self.held = {}, Counter()
        self.hold_at = hold_at

    def note(self, method: str, path: str, body: bytes) -> bool:
        """Note an effect; whether its answer is to be held."""
        kind, what = about(method, path, body)
        if not kind:
            return False
        self.done.setdefault(kind, []).append(what)
        if len(self.done[kind]) != self.hold_at:
            return False
        self.held[kind] += 1
        return True


def about(method: str, path: str, body: bytes) -> tuple[str, str]:
    """Kind and name of an effect; empty for what is none, such as an Event, a Lease or a read."""
    if method not in WRITES:
        return "", ""
    if found := _RESOURCE.match(path):
        what = "status" if found["status"] else "claim" if b"/claim" in body else "release"
        return _BY_PLURAL[found["plural"]].name, what
    if found := _SECRET.match(path):
        name = found["name"] or json.loads(body)["metadata"]["name"]
        kind = next((k.name for k in KINDS.values() if name.endswith(f"-{k.name.lower()}")), "")
        return kind, f"Secret {method}" if kind else ""
    kind = next((k.name for pattern, k in _COLLECTIONS if pattern.match(path)), "")
    return kind, method if kind else ""


class Gate:
    """Listens on loopback, in a thread of its own, and passes everything on. A context manager."""

    def __init__(self, target: str, effects: Effects, tls: ssl.SSLContext | None = None) -> None:
        self.target, self.effects, self._tls = target, effects, tls
        self.url = ""
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stop: asyncio.Event = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="gate", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10), "the gate did not open"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{path:.*}", self._pass)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        connector = aiohttp.TCPConnector(ssl=self._tls or True, limit=0)
        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False) as self._session:
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            host, port = runner.addresses[0][:2]
            self.url = f"http://{host}:{port}"
            self._ready.set()
            await self._stop.wait()
            await runner.cleanup()
        await asyncio.sleep(0.25)  # aiohttp: TLS connections take a moment to close

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = {k: v for k, v in request.headers.items() if k.lower() not in HOP_BY_HOP}
        try:
            return await self._exchange(request, headers, body)
        except aiohttp.ClientError:
            if request.transport is not None:
                request.transport.abort()  # what is behind is away: so are we
            raise

    async def _exchange(self, request: web.Request, headers: dict[str, str], body: bytes) -> web.StreamResponse:
        url = self.target + request.raw_path
        async with self._session.request(
            request.method, url, headers=headers, data=body or None, allow_redirects=False
        ) as answer:
            kept = {k: v for k, v in answer.headers.items() if k.lower() not in HOP_BY_HOP}
            if "watch" not in request.query:
                content = await answer.read()
                if answer.ok and self.effects.note(request.method, request.path, body):
                    await asyncio.Event().wait()
                return web.Response(status=answer.status, headers=kept, body=content)
            stream = web.StreamResponse(status=answer.status, headers=kept)
            await stream.prepare(request)
            async for chunk in answer.content.iter_any():
                await stream.write(chunk)
            return stream
