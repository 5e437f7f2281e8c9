"""The reference API for a test, in this process or in one of its own, spoken to with plain httpx and plain JSON."""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import httpx

from edge_operator.server import app as server
from edge_operator.server.settings import ServerSettings
from edge_operator.server.world import World
from wire.transcript import ABSENT

TOKEN: Final = "3BQ1admin0key0for0the0tests_123456789012345678901"
BASE: Final = "http://api.test"
HEADERS: Final = {"Authorization": f"Bearer {TOKEN}", "Service-Version": "2"}
_STARTED_IN_SECONDS: Final = 90


class Api:
    """Sends requests as a caller that knows the document would, and judges what holds for every answer."""

    def __init__(self, client: httpx.AsyncClient, base: str) -> None:
        self.client, self.base = client, base

    async def call(
        self, method: str, path: str, body: Any = ABSENT, headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """The answer. A header with an empty value is left out."""
        sent = {**HEADERS, **({} if body is ABSENT else {"Content-Type": "application/json"}), **(headers or {})}
        content = body if isinstance(body, bytes) else None if body is ABSENT else json.dumps(body).encode()
        response = await self.client.request(
            method, path, content=content, headers={name: value for name, value in sent.items() if value}
        )
        assert list(malformed(response)) == [], f"{method} {path}: {response.status_code} {response.text[:500]}"
        return response

    async def ok(self, method: str, path: str, body: Any = ABSENT, headers: Mapping[str, str] | None = None) -> Any:
        """The JSON of an answer that has to be a success."""
        response = await self.call(method, path, body, headers)
        assert response.is_success, f"{method} {path}: {response.status_code} {response.text[:500]}"
        return response.json() if response.content else None

    async def everything(self, path: str, items: str) -> list[dict[str, Any]]:
        """All items of a list, page after page, never away from the host that was asked."""
        found: list[dict[str, Any]] = []
        uri: str | None = self.base + path
        seen: set[str] = set()
        while uri is not None:
            assert uri.startswith(self.base + "/"), f"{uri} leads away from {self.base}"
            assert uri not in seen, f"{uri} was read before"
            seen.add(uri)
            page = await self.ok("GET", uri)
            found += page[items]
            uri = page["next_page_uri"]
        return found


def malformed(response: httpx.Response) -> Iterator[str]:
    """What is wrong with any answer: successes without a body are 204, all others are JSON, errors have one shape."""
    if response.status_code == 204:
        if response.content or "content-type" in response.headers:
            yield "an answer 204 has no body"
        return
    if response.headers.get("content-type") != "application/json":
        yield f"content-type is {response.headers.get('content-type')!r}"
        return
    answer = response.json()
    if not response.is_success:
        yield from _not_an_error(response.status_code, answer)


def _not_an_error(status: int, answer: Any) -> Iterator[str]:
    """Assumed: Error body."""
    if not isinstance(answer, dict):
        yield "an error is an object"
        return
    members = {"status_code", "msg", "details", *(["error_code"] if status != 404 else [])}
    if answer.keys() != members:
        yield f"an error with status {status} has the members {sorted(members)}, not {sorted(answer)}"
        return
    if answer["status_code"] != status:
        yield f"status_code is {answer['status_code']!r}, the status is {status}"
    if not isinstance(answer["msg"], str) or not answer["msg"]:
        yield "msg is not a text"
    if not re.fullmatch(r"op_[0-9A-Za-z]{27}", answer["details"].get("operation_id", "")):
        yield f"details is {answer['details']!r}"
    if any(not isinstance(value, str) for value in answer["details"].values()):
        yield "details holds something that is no string"
    if status != 404 and not re.fullmatch(r"ERR_[A-Z0-9_]+", str(answer["error_code"])):
        yield f"error_code is {answer['error_code']!r}"


@contextlib.asynccontextmanager
async def serving(world: World | None = None, **settings: Any) -> AsyncIterator[Api]:
    """The reference API in this process, with an empty account in memory unless the settings say otherwise."""
    app = server.create_app(ServerSettings(**{"seed_api_key": TOKEN, "control": True, **settings}), world=world)
    try:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
            yield Api(client, BASE)
    finally:
        app.close()


class Process:
    """`edge-operator serve-api` as a process of its own."""

    def __init__(self, database: Path, *options: str) -> None:
        command = Path(sys.executable).with_name("edge-operator")
        clean = {name: value for name, value in os.environ.items() if not name.startswith("EDGE_OPERATOR_")}
        arguments = ["serve-api", "--listen", "127.0.0.1:0", "--database", str(database), *options]
        self._child = subprocess.Popen(
            [str(command), *arguments],
            env={**clean, "EDGE_OPERATOR_SEED_API_KEY": TOKEN},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.base = self._ready()

    def _ready(self) -> str:
        """The address in the one line that the server prints when it is ready."""
        assert self._child.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._child.stdout, selectors.EVENT_READ)
            line = self._child.stdout.readline() if selector.select(_STARTED_IN_SECONDS) else ""
        found = re.search(r"http://\S+", line)
        if found is None:
            self.kill()
            raise AssertionError(f"the server did not say where it listens: {line!r}")
        return found[0].rstrip("/")

    def kill(self) -> None:
        """As `kill -9` does it."""
        self._child.kill()
        self._gone()

    def stop(self) -> int:
        """As an orchestrator does it: SIGTERM, then its exit code."""
        self._child.send_signal(signal.SIGTERM)
        return self._gone()

    def _gone(self) -> int:
        code = self._child.wait(timeout=_STARTED_IN_SECONDS)
        assert self._child.stdout is not None
        self._child.stdout.close()
        return code


@contextlib.asynccontextmanager
async def process(database: Path, *options: str) -> AsyncIterator[tuple[Api, Process]]:
    """The reference API as a process; it is gone at the end, however it ended."""
    child = Process(database, *options)
    try:
        async with httpx.AsyncClient(base_url=child.base, timeout=30) as client:
            yield Api(client, child.base), child
    finally:
        if child._child.poll() is None:
            child.kill()


def now() -> float:
    """Seconds since the epoch, for comparing with the server's clock on the same machine."""
    return time.time()
