"""Which key is next: ready keys by priority, later ones by due time, failing ones by backoff. No await, no clock.

A key is offered, taken and finished. One run answers every offer made before it began; an offer made while it runs
leads to another run afterwards. Nothing but the key is kept: what is known of it lives elsewhere, and a run reads the
newest. A key that is neither ready, running nor due costs nothing.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Hashable
from dataclasses import dataclass
from enum import IntEnum
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

FAIR_SHARE = 8
"""One take in so many goes to the key that has been ready longest, whatever its priority, so that none starves."""


class Priority(IntEnum):
    """Who goes first."""

    EDIT = 0
    """A person waits for a change of it, or for its end."""
    NEW = 1
    """It is to be made."""
    RETRY = 2
    """It was tried, or it waited for something that is there now."""
    RESYNC = 3
    """Nothing is known to have changed."""


@dataclass(frozen=True)
class Backoff:
    """How long a failing key waits: anything up to base * 2^(failures - 1), and never more than the ceiling."""

    base_seconds: float = 1.0
    ceiling_seconds: float = 300.0

    def delay(self, failures: int, source: random.Random) -> float:
        """A delay in seconds after so many failures in a row, with full jitter."""
        exponent = min(failures - 1, 32)
        return source.uniform(0, min(self.ceiling_seconds, self.base_seconds * 2.0**exponent))


@dataclass(frozen=True)
class Snapshot:
    """How much there is to do, for metrics."""

    ready: dict[Priority, int]
    running: int
    scheduled: int
    oldest_seconds: float
    """How long the key that has been ready longest has waited; 0 if none is ready."""


@dataclass(slots=True)
class _Entry:
    running: bool = False
    ready: Priority | None = None
    since: float = 0.0
    due: float | None = None
    due_priority: Priority = Priority.RESYNC


class Schedule(Generic[K]):
    """The order in which keys are worked on. `now` is always the caller's monotonic time, in seconds."""

    def __init__(self, backoff: Backoff, source: random.Random) -> None:
        self._backoff = backoff
        self._random = source
        self._entries: dict[K, _Entry] = {}
        self._ready: dict[Priority, dict[K, float]] = {priority: {} for priority in Priority}
        self._heap: list[tuple[float, int, K]] = []
        self._numbers = itertools.count()
        self._failures: dict[K, int] = {}
        self._takes = 0
        self._running = 0

    def offer(self, key: K, now: float, priority: Priority, due: float | None = None) -> None:
        """Ask for a run of a key, now or when it is due; of several wishes the earliest and the highest win."""
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry()
        if due is None or due <= now:
            self._make_ready(key, entry, priority, now)
        elif entry.ready is None:
            entry.due_priority = priority if entry.due is None else min(priority, entry.due_priority)
            if entry.due is None or due < entry.due:
                entry.due = due
                heapq.heappush(self._heap, (due, next(self._numbers), key))
                self._compact()

    def take(self, now: float) -> K | None:
        """The key to work on next, which is running from now on; None if none is ready."""
        self._promote(now)
        priority = self._choose()
        if priority is None:
            return None
        self._takes += 1
        key = next(iter(self._ready[priority]))
        del self._ready[priority][key]
        entry = self._entries[key]
        entry.running, entry.ready = True, None
        self._running += 1
        return key

    def finish(self, key: K, now: float) -> None:
        """A run has ended; what was offered meanwhile becomes ready now."""
        entry = self._entries[key]
        entry.running = False
        self._running -= 1
        if entry.ready is not None:
            entry.since = now
            self._ready[entry.ready][key] = now
        self._forget_if_idle(key, entry)

    def cancel(self, key: K) -> None:
        """Forget what was offered of a key and how often it failed; a run in progress goes on."""
        self._failures.pop(key, None)
        entry = self._entries.get(key)
        if entry is None:
            return
        if entry.ready is not None:
            self._ready[entry.ready].pop(key, None)
        entry.ready = entry.due = None
        self._forget_if_idle(key, entry)

    def failed(self, key: K) -> float:
        """How long to wait, in seconds, before a key that failed once more is tried again."""
        self._failures[key] = self._failures.get(key, 0) + 1
        return self._backoff.delay(self._failures[key], self._random)

    def succeeded(self, key: K) -> None:
        """Start again from the shortest delay, should the key fail."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """How often in a row the key has failed."""
        return self._failures.get(key, 0)

    def next_due(self) -> float | None:
        """When the next key becomes due; None if none is scheduled."""
        while self._heap and not self._is_live(self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def ready(self, now: float) -> int:
        """How many keys could be taken."""
        self._promote(now)
        return sum(map(len, self._ready.values()))

    @property
    def running(self) -> int:
        """How many keys are being worked on."""
        return self._running

    def snapshot(self, now: float) -> Snapshot:
        """What there is to do."""
        self._promote(now)
        heads = [next(iter(line.values())) for line in self._ready.values() if line]
        return Snapshot(
            ready={priority: len(line) for priority, line in self._ready.items()},
            running=self._running,
            scheduled=len({event[2] for event in self._heap if self._is_live(event)}),
            oldest_seconds=max(0.0, now - min(heads)) if heads else 0.0,
        )

    def _make_ready(self, key: K, entry: _Entry, priority: Priority, now: float) -> None:
        entry.due = None
        if entry.ready is None:
            entry.since = now
        elif priority >= entry.ready:
            return
        elif not entry.running:
            del self._ready[entry.ready][key]
        entry.ready = priority
        if not entry.running:
            self._ready[priority][key] = entry.since

    def _promote(self, now: float) -> None:
        """Make ready what is due."""
        while self._heap and self._heap[0][0] <= now:
            event = heapq.heappop(self._heap)
            if self._is_live(event):
                due, _, key = event
                entry = self._entries[key]
                self._make_ready(key, entry, entry.due_priority, due)

    def _choose(self) -> Priority | None:
        """Whose turn it is: the highest priority, or from time to time the one that has waited longest."""
        waiting = [priority for priority in Priority if self._ready[priority]]
        if not waiting:
            return None
        if self._takes % FAIR_SHARE == FAIR_SHARE - 1:
            return min(waiting, key=lambda priority: next(iter(self._ready[priority].values())))
        return waiting[0]

    def _is_live(self, event: tuple[float, int, K]) -> bool:
        entry = self._entries.get(event[2])
        return entry is not None and entry.due == event[0]

    def _forget_if_idle(self, key: K, entry: _Entry) -> None:
        if not entry.running and entry.ready is None and entry.due is None:
            del self._entries[key]

    def _compact(self) -> None:
        """Drop what was rescheduled or cancelled, once that is most of the heap."""
        if len(self._heap) > 2 * len(self._entries) + 64:
            live = {event[2]: event for event in self._heap if self._is_live(event)}
            self._heap = list(live.values())
            heapq.heapify(self._heap)
