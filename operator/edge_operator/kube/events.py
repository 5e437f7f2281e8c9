"""Kubernetes Events about resources: written beside the work, never in its way.

They are core/v1 Events with counts and times, which is what `kubectl describe` sorts and shows best. What is said again
within the hour is counted up by a patch instead of written anew. Queue and rate are bounded; what does not fit is
dropped and counted.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import itertools
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from edge_operator.declare import GROUP, VERSION
from edge_operator.kube import errors, lease, paths

_log = logging.getLogger(__name__)
JSON = dict[str, Any]
Outcome = Literal["created", "counted", "dropped", "failed"]

COMPONENT = "edge-operator"
MESSAGE_BYTES = 1024
REMEMBER = 1_000
"""How many different events are remembered, so that they can be counted up."""
REMEMBER_SECONDS = 3300.0
"""How long an event is counted up after it was written last; the API server keeps it for an hour."""
ATTEMPTS = 3


class Objects(Protocol):
    """What is needed of the API."""

    async def create(self, path: str, body: JSON) -> JSON:
        """The created object."""

    async def merge_patch(self, path: str, body: JSON) -> JSON:
        """The patched object."""


@dataclass(frozen=True)
class Limits:
    """How much is written at most."""

    pending: int = 1_000
    """Events that wait to be written."""
    per_second: float = 20.0
    """Events written in the long run."""
    burst: int = 100
    """Events written at once after a quiet time."""
    per_object: int = 20
    """Different events of one object in a row, after which it gets one in `object_seconds`."""
    object_seconds: float = 30.0


@dataclass
class _Said:
    """One thing that is said of one object, however often."""

    about: JSON
    type: str
    reason: str
    message: str
    first: str
    last: str
    pending: int = 0
    """How often it was said since it was written last."""
    count: int = 0
    name: str = ""
    """The name of the Event, once there is one."""
    written_at: float = 0.0


@dataclass
class _Bucket:
    """Tokens that refill with time."""

    size: float
    per_second: float
    tokens: float = field(init=False)
    at: float

    def __post_init__(self) -> None:
        self.tokens = self.size

    def wait(self, now: float) -> float:
        """How long until there is a token, in seconds; 0 takes one."""
        self.tokens = min(self.size, self.tokens + (now - self.at) * self.per_second)
        self.at = now
        if self.tokens >= 1:
            self.tokens -= 1
            return 0.0
        return max(0.001, (1 - self.tokens) / self.per_second)


class Recorder:
    """Takes events from anywhere in the loop and writes them in `run`. `event` never waits and never raises."""

    def __init__(
        self,
        api: Objects,
        *,
        instance: str = "",
        limits: Limits | None = None,
        on_outcome: Callable[[Outcome], None] = lambda _: None,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._api = api
        self._instance = instance or lease.identity()
        self._limits = limits or Limits()
        self._tell = on_outcome
        self._monotonic = monotonic
        self._wall = wall
        self._sleep = sleep
        self._said: OrderedDict[tuple[str, ...], _Said] = OrderedDict()
        self._objects: OrderedDict[str, _Bucket] = OrderedDict()
        self._rate = _Bucket(self._limits.burst, self._limits.per_second, monotonic())
        self._queue: asyncio.Queue[tuple[str, ...]] = asyncio.Queue()
        self._unwritten = 0
        self._all_written = asyncio.Event()
        self._all_written.set()
        self._hurry = False
        self._numbers = itertools.count(time.time_ns())

    def event(
        self,
        kind: str,
        metadata: Mapping[str, Any],
        type_: Literal["Normal", "Warning"],
        reason: str,
        message: str,
        *,
        api_version: str = f"{GROUP}/{VERSION}",
    ) -> None:
        """Say something about an object, by its metadata. The message is cut at 1,024 bytes."""
        about = {
            "apiVersion": api_version,
            "kind": kind,
            "name": metadata["name"],
            "namespace": metadata.get("namespace", ""),
            "uid": metadata.get("uid", ""),
        }
        message = _cut(message)
        key = (kind, about["namespace"], about["name"], about["uid"], type_, reason, message)
        now = _stamp(self._wall())
        said = self._said.get(key)
        if said is None or self._is_over(said):
            if self._unwritten >= self._limits.pending or not self._object_may_speak("/".join(key[:4])):
                self._tell("dropped")
                return
            said = self._said[key] = _Said(about, type_, reason, message, first=now, last=now)
        said.last = now
        said.pending += 1
        self._said.move_to_end(key)
        if said.pending == 1:
            self._unwritten += 1
            self._all_written.clear()
            self._queue.put_nowait(key)

    async def run(self) -> None:
        """Write events until cancelled. Nothing that goes wrong with one comes out of it."""
        while True:
            key = await self._queue.get()
            while not self._hurry and (seconds := self._rate.wait(self._monotonic())):
                await self._sleep(seconds)
            said = self._said[key]
            pending, said.pending = said.pending, 0
            try:
                self._tell(await self._write(said, pending))
            finally:
                self._forget_old()
                self._unwritten -= 1
                if not self._unwritten:
                    self._all_written.set()

    async def flush(self, timeout_seconds: float) -> bool:
        """Write what is pending as fast as possible; whether all of it was written in time. `run` has to be running."""
        self._hurry = True
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._all_written.wait()
        except TimeoutError:
            return False
        finally:
            self._hurry = False
        return True

    async def _write(self, said: _Said, times: int) -> Outcome:
        """Create the Event, or count it up where there is one; a busy API server is tried again, nothing else is."""
        said.count += times
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return await self._create_or_count(said)
            except (errors.TooManyRequests, errors.Unavailable, errors.Unreachable) as error:
                _log.debug("an Event could not be written: %s", error)
                if attempt < ATTEMPTS and not self._hurry:
                    await self._sleep(float(attempt))
            except errors.KubeError as error:
                _log.debug("an Event is refused: %s", error)
                break
        return "failed"

    async def _create_or_count(self, said: _Said) -> Outcome:
        collection = paths.resource("", "v1", "events", said.about["namespace"] or "default")
        if said.name:
            try:
                await self._api.merge_patch(
                    f"{collection}/{said.name}", {"count": said.count, "lastTimestamp": said.last}
                )
            except errors.NotFound:
                said.count, said.first = 1, said.last
            else:
                said.written_at = self._monotonic()
                return "counted"
        name = f"{said.about['name'][:200]}.{next(self._numbers):x}"
        await self._api.create(collection, self._body(said, name))
        said.name, said.written_at = name, self._monotonic()
        return "created"

    def _body(self, said: _Said, name: str) -> JSON:
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": said.about["namespace"] or "default"},
            "involvedObject": {k: v for k, v in said.about.items() if v},
            "type": said.type,
            "reason": said.reason,
            "message": said.message,
            "count": said.count,
            "firstTimestamp": said.first,
            "lastTimestamp": said.last,
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "reportingInstance": self._instance,
        }

    def _is_over(self, said: _Said) -> bool:
        """Whether the API server may have dropped an Event by now, so that a new one is due."""
        return bool(said.name and not said.pending and self._monotonic() - said.written_at > REMEMBER_SECONDS)

    def _object_may_speak(self, name: str) -> bool:
        """Whether an object has not said too many different things of late."""
        bucket = self._objects.get(name)
        if bucket is None:
            self._objects[name] = bucket = _Bucket(
                self._limits.per_object, 1 / self._limits.object_seconds, self._monotonic()
            )
            if len(self._objects) > REMEMBER:
                self._objects.popitem(last=False)
        self._objects.move_to_end(name)
        return not bucket.wait(self._monotonic())

    def _forget_old(self) -> None:
        """Forget what was said longest ago, but nothing that is still to be written."""
        while len(self._said) > REMEMBER:
            key = next(iter(self._said))
            if self._said[key].pending:
                return
            del self._said[key]


def _cut(message: str) -> str:
    """At most 1,024 bytes of a message, ending in "…" where something is missing."""
    raw = message.encode()
    if len(raw) <= MESSAGE_BYTES:
        return message
    return raw[: MESSAGE_BYTES - 3].decode(errors="ignore") + "…"


def _stamp(when: dt.datetime) -> str:
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")
