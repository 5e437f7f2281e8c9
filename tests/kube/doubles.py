"""A loop whose time passes by itself, and an API server in memory: versions, conflicts, pages, watches, faults."""

from __future__ import annotations

import asyncio
import copy
import itertools
import selectors
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from typing import Any

from edge_operator.kube import errors

JSON = dict[str, Any]


class _Selector(selectors.DefaultSelector):
    """Instead of waiting for the time to pass, it lets it pass."""

    def __init__(self) -> None:
        super().__init__()
        self.passed = 0.0

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise RuntimeError("everything waits for something that never happens")
        self.passed += timeout
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop in which a sleep of an hour takes no time, and everything happens in one order."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return 1000.0 + self._virtual.passed


def run(scenario: Coroutine[Any, Any, Any]) -> None:
    """Run a scenario in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(scenario)


def now() -> float:
    """The virtual time."""
    return asyncio.get_running_loop().time()


async def settled() -> None:
    """Return when everything that can happen without time passing has happened."""
    for _ in range(50):
        await asyncio.sleep(0)


class Hold:
    """Stops a process in its tracks: whatever it awaits through this comes back only once it is thawed."""

    def __init__(self) -> None:
        self._thawed = asyncio.Event()
        self._thawed.set()

    def freeze(self) -> None:
        self._thawed.clear()

    def thaw(self) -> None:
        self._thawed.set()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self._thawed.wait()

    async def wait(self) -> None:
        await self._thawed.wait()


class MemoryAPI:
    """What the parts of `kube` ask of the API server, held in memory. `log` says what was asked of it.

    `fault` is asked before each request, and may raise or wait; `after` once it has taken effect, as an answer that is
    lost would be.
    """

    def __init__(self) -> None:
        self.objects: dict[str, JSON] = {}
        self.log: list[str] = []
        self.fault: Callable[[str], Awaitable[None]] = _nothing
        self.after: Callable[[str], Awaitable[None]] = _nothing
        self.page_size = 3
        self.forgotten = 0
        """Watches cannot begin at a version up to this one."""
        self._versions = itertools.count(1)
        self._version = 0
        self._history: list[tuple[int, str, str, JSON]] = []
        self._changed = asyncio.Event()
        self._closing = 0

    async def get(self, path: str) -> JSON:
        await self._enter(f"GET {path}")
        found = self._at(path)
        await self.after(f"GET {path}")
        return copy.deepcopy(found)

    async def create(self, path: str, body: JSON) -> JSON:
        await self._enter(f"POST {path}")
        target = f"{path}/{body['metadata']['name']}"
        if target in self.objects:
            raise errors.AlreadyExists(f"POST {path}: 409 AlreadyExists", status=409)
        stored = self.put(target, body)
        await self.after(f"POST {path}")
        return stored

    async def replace(self, path: str, body: JSON) -> JSON:
        await self._enter(f"PUT {path}")
        version = body["metadata"].get("resourceVersion")
        if version not in (None, self._at(path)["metadata"]["resourceVersion"]):
            raise errors.Conflict(f"PUT {path}: 409 Conflict", status=409)
        stored = self.put(path, body)
        await self.after(f"PUT {path}")
        return stored

    async def merge_patch(self, path: str, body: JSON) -> JSON:
        await self._enter(f"PATCH {path}")
        stored = self.put(path, {**self._at(path), **body})
        await self.after(f"PATCH {path}")
        return stored

    async def pages(self, path: str, *, metadata_only: bool, **query: str) -> AsyncGenerator[JSON]:
        assert metadata_only
        items = [copy.deepcopy(value) for key, value in sorted(self.objects.items()) if _is_in(key, path)]
        version = str(self._version)
        for start in range(0, len(items) or 1, self.page_size):
            await self._enter(f"LIST {path}")
            yield {"metadata": {"resourceVersion": version}, "items": items[start : start + self.page_size]}

    async def watch(
        self, path: str, *, resource_version: str, metadata_only: bool, **query: str
    ) -> AsyncGenerator[tuple[str, JSON]]:
        assert metadata_only
        await self._enter(f"WATCH {path}")
        position, generation = int(resource_version), self._closing
        if position < self.forgotten:
            raise errors.Gone(f"WATCH {path}: 410 Expired", status=410)
        while generation == self._closing:
            for version, type_, key, value in self._history:
                if version > position:
                    position = version
                    if _is_in(key, path):
                        yield type_, copy.deepcopy(value)
            await self._changed.wait()

    def put(self, path: str, body: JSON) -> JSON:
        """Store an object as somebody else would."""
        type_ = "MODIFIED" if path in self.objects else "ADDED"
        value = copy.deepcopy(body)
        value["metadata"]["resourceVersion"] = str(self._next())
        self.objects[path] = value
        self._happened(type_, path, value)
        return copy.deepcopy(value)

    def remove(self, path: str) -> None:
        """Delete an object as somebody else would."""
        value = self.objects.pop(path)
        value["metadata"]["resourceVersion"] = str(self._next())
        self._happened("DELETED", path, value)

    def bookmark(self) -> None:
        """Say to all watches how far time has got."""
        self._happened("BOOKMARK", "*", {"metadata": {"resourceVersion": str(self._next())}})

    def end_watches(self) -> None:
        """End all watches, as the API server does every few minutes."""
        self._closing += 1
        self._wake()

    def _at(self, path: str) -> JSON:
        if path not in self.objects:
            raise errors.NotFound(f"{path}: 404 NotFound", status=404)
        return self.objects[path]

    async def _enter(self, what: str) -> None:
        self.log.append(what)
        await asyncio.sleep(0)
        await self.fault(what)

    def _next(self) -> int:
        self._version = next(self._versions)
        return self._version

    def _happened(self, type_: str, path: str, value: JSON) -> None:
        self._history.append((self._version, type_, path, value))
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _is_in(key: str, collection: str) -> bool:
    """Whether an object belongs to a collection, be it of a namespace or of the whole cluster."""
    if key == "*":
        return True
    own = key.rsplit("/", 1)[0]
    parts = own.split("/")
    return collection in (own, "/".join([*parts[:-3], parts[-1]]))


async def _nothing(what: str) -> None:
    """No fault."""
