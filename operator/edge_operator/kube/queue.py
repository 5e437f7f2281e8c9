"""Workers that carry out what the schedule says: at most so many at once, and never two on one key.

There is no task, timer or coroutine for a key: a fixed number of workers, and one timer for whatever is due first.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
import traceback
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, Protocol, TypeVar

from edge_operator.kube.schedule import Backoff, Priority, Schedule, Snapshot

__all__ = ["Backoff", "Priority", "Snapshot", "WorkQueue"]

K = TypeVar("K", bound=Hashable)
_log = logging.getLogger(__name__)


class Cancelable(Protocol):
    """What a timer gives back."""

    def cancel(self) -> None:
        """Forget the call."""


class CallLater(Protocol):
    """The event loop's `call_later`, or a test's."""

    def __call__(self, delay: float, callback: Callable[[], None], /) -> Cancelable:
        """Call once, after a delay in seconds."""


class WorkQueue(Generic[K]):
    """A keyed, level-triggered queue. `offer` keys from anywhere in the loop; `run` works on them until cancelled.

    A run answers every offer made before it began; an offer made meanwhile leads to another run. What raises counts as
    a failure and is retried: a worker's function is expected to deal with its errors by itself.
    """

    def __init__(
        self,
        work: Callable[[K], Awaitable[None]],
        *,
        workers: int = 16,
        backoff: Backoff | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        source: random.Random | None = None,
        call_later: CallLater | None = None,
    ) -> None:
        self._work = work
        self._workers = workers
        self._monotonic = monotonic
        self._call_later = call_later
        self._schedule: Schedule[K] = Schedule(backoff or Backoff(), source or random.Random())  # noqa: S311  # jitter
        self._idle: deque[asyncio.Future[None]] = deque()
        self._timer: Cancelable | None = None
        self._timer_due = 0.0
        self._paused = False
        self._draining = False
        self._at_rest: list[asyncio.Future[None]] = []

    def offer(self, key: K, *, priority: Priority, due: float | None = None) -> None:
        """Ask for a run of a key: now, or when the monotonic clock says `due`; the earliest wish wins."""
        self._schedule.offer(key, self._monotonic(), priority, due)
        self._kick()

    def cancel(self, key: K) -> None:
        """Forget what was offered of a key and how often it failed; a run in progress goes on."""
        self._schedule.cancel(key)

    def failed(self, key: K) -> float:
        """How long to wait, in seconds, before a key that failed once more is offered again; with jitter."""
        return self._schedule.failed(key)

    def succeeded(self, key: K) -> None:
        """Start again from the shortest delay, should the key fail."""
        self._schedule.succeeded(key)

    def failures(self, key: K) -> int:
        """How often in a row the key has failed."""
        return self._schedule.failures(key)

    def pause(self) -> None:
        """Begin nothing until `resume`; offers are kept."""
        self._paused = True

    def resume(self) -> None:
        """Go on."""
        self._paused = False
        self._kick()

    def snapshot(self) -> Snapshot:
        """How much there is to do, for metrics."""
        return self._schedule.snapshot(self._monotonic())

    async def run(self) -> None:
        """Work until cancelled, or until drained."""
        self._draining = False
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._worker())
            self._kick()

    async def drain(self, timeout_seconds: float) -> bool:
        """Begin nothing more and let the runs in progress end; whether they all did in time.

        Afterwards the workers are gone and `run` returns; what did not end in time is left to its canceller.
        """
        self._draining = True
        self._arm()
        while self._idle:
            self._wake(self._idle.popleft())
        if self._schedule.running:
            at_rest = asyncio.get_running_loop().create_future()
            self._at_rest.append(at_rest)
            try:
                async with asyncio.timeout(timeout_seconds):
                    await at_rest
            except TimeoutError:
                return False
        return True

    async def _worker(self) -> None:
        while not self._draining:
            key = None if self._paused else self._schedule.take(self._monotonic())
            if key is None:
                await self._until_kicked()
            else:
                await self._carry_out(key)

    async def _carry_out(self, key: K) -> None:
        """One run. Of what it raises, the kind and the place are logged, not the text, which may quote a secret."""
        try:
            await self._work(key)
        except Exception as error:  # noqa: BLE001  # a worker outlives what its work raises
            where = "".join(traceback.format_tb(error.__traceback__))
            _log.error("work on %s raised %s and is tried again, at\n%s", key, type(error).__name__, where)
            now = self._monotonic()
            self._schedule.offer(key, now, Priority.RETRY, now + self._schedule.failed(key))
        finally:
            self._schedule.finish(key, self._monotonic())
            if not self._schedule.running:
                while self._at_rest:
                    self._wake(self._at_rest.pop())
            self._kick()

    async def _until_kicked(self) -> None:
        """Wait for something to do; whoever kicks takes this worker off the list."""
        kicked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._idle.append(kicked)
        try:
            await kicked
        finally:
            if kicked in self._idle:
                self._idle.remove(kicked)

    def _kick(self) -> None:
        """Wake as many idle workers as there are ready keys, and set the timer for the next one."""
        for _ in range(min(len(self._idle), self._schedule.ready(self._monotonic()))):
            self._wake(self._idle.popleft())
        self._arm()

    def _arm(self) -> None:
        """Have the one timer go off when the next key is due."""
        due = None if self._draining else self._schedule.next_due()
        if self._timer is not None:
            if due is not None and self._timer_due <= due:
                return
            self._timer.cancel()
            self._timer = None
        if due is not None:
            later = self._call_later or asyncio.get_running_loop().call_later
            self._timer_due = due
            self._timer = later(max(0.0, due - self._monotonic()), self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._kick()

    @staticmethod
    def _wake(future: asyncio.Future[None]) -> None:
        if not future.done():
            future.set_result(None)
