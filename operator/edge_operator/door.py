"""The door of one account: how many calls at a time and a minute, pauses, a refused key, and whether to act at all.

Every call of an account goes through its door, whichever resource it is for. All times are monotonic seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field

from edge_operator.engine.operations import Shut, Waiting
from edge_operator.engine.reasons import Waits

URGENT, USUAL = 0, 1
urgency: ContextVar[int] = ContextVar("urgency", default=USUAL)
"""Who goes first where calls have to wait for each other: what a person waits for is URGENT."""

UNAVAILABLE_AFTER = 5
"""So many failures in a row, and no answer in between, say that the service is down rather than that a call failed."""
_MINUTE = 60.0
_BURST = 0.25
"""The share of a minute's calls that may go out at once; the rest is spread, so that no minute has too many."""
_LEAST_PER_MINUTE = 6.0
_FORGIVENESS = 1.25
"""What was learned from a 429 grows by this each minute without another."""
_FORGOTTEN_PER_MINUTE = 6_000.0


class NotLeading(Exception):
    """This replica does not lead, or would not for long enough; nothing was sent."""


class Stopping(NotLeading):
    """This replica is about to end; nothing was sent, or it only asked."""


class Halt:
    """The end of all calls when the operator stops: who waits or reads ends at once, who writes gets an answer."""

    def __init__(self) -> None:
        self.begun = False
        self._scopes: set[asyncio.Timeout] = set()

    def begin(self) -> None:
        """Let nobody begin a call any more."""
        if not self.begun:
            self.begun, now = True, asyncio.get_running_loop().time()
            for scope in self._scopes:
                scope.reschedule(now)

    def check(self) -> None:
        """Nothing, unless the operator stops.

        Raises:
            Stopping: it does.
        """
        if self.begun:
            raise Stopping

    @contextlib.asynccontextmanager
    async def interruptible(self) -> AsyncIterator[None]:
        """What is awaited in here ends with Stopping when the operator stops."""
        scope = asyncio.timeout(0 if self.begun else None)
        try:
            async with scope:
                self._scopes.add(scope)
                try:
                    yield
                finally:
                    self._scopes.discard(scope)
        except TimeoutError:
            if scope.expired():
                raise Stopping from None
            raise

    async def sleep(self, seconds: float) -> None:
        """Wait, but not beyond a stop."""
        async with self.interruptible():
            await asyncio.sleep(seconds)


class Pace:
    """At most `per_minute` calls in any minute, the most urgent first; None is no limit until a 429 teaches one."""

    def __init__(
        self,
        monotonic: Callable[[], float],
        per_minute: float | None = None,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._monotonic, self._sleep = monotonic, sleep
        self.per_minute = per_minute
        self._learned: tuple[float, float] | None = None  # calls a minute, and when that was learned
        self._tokens, self._counted_at = float("inf"), monotonic()
        self._begun: deque[float] = deque(maxlen=8_192)
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = itertools.count()
        self._pump: asyncio.Task[None] | None = None

    def limit(self) -> float | None:
        """Calls a minute as things stand."""
        learned = None
        if self._learned is not None:
            base, since = self._learned
            learned = base * _FORGIVENESS ** int((self._monotonic() - since) / _MINUTE)
            if learned > _FORGOTTEN_PER_MINUTE:
                self._learned = learned = None
        return min((x for x in (learned, self.per_minute) if x is not None), default=None)

    def learn(self) -> None:
        """A 429 came: go on a little slower than what was asked for in the last minute."""
        now = self._monotonic()
        lately = sum(1 for at in self._begun if now - at < _MINUTE)
        self._learned = (max(_LEAST_PER_MINUTE, lately * 0.9), now)

    async def turn(self) -> None:
        """Wait until the caller's turn comes."""
        if not self._waiting and self._take():
            return
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (urgency.get(), next(self._order), mine))
        if self._pump is None or self._pump.done():
            self._pump = asyncio.create_task(self._let_in(), name="pace")
        await mine

    async def _let_in(self) -> None:
        while self._waiting:
            if self._waiting[0][2].done():  # its caller gave up
                heapq.heappop(self._waiting)
            elif self._take():
                heapq.heappop(self._waiting)[2].set_result(None)
            else:
                await self._sleep(self._missing_seconds())

    def _take(self) -> bool:
        """Whether there is a call left; it is then used up."""
        limit, now = self.limit(), self._monotonic()
        if limit is None:
            self._tokens, self._counted_at = float("inf"), now
        else:
            most = max(1.0, limit * _BURST)
            gained = (now - self._counted_at) * self._per_second(limit)
            self._tokens, self._counted_at = min(most, self._tokens + gained), now
            if self._tokens < 1.0:
                return False
            self._tokens -= 1.0
        self._begun.append(now)
        return True

    def _missing_seconds(self) -> float:
        limit = self.limit()
        return 0.0 if limit is None else max(0.01, (1.0 - self._tokens) / self._per_second(limit))

    @staticmethod
    def _per_second(limit: float) -> float:
        return max(1.0, limit - max(1.0, limit * _BURST)) / _MINUTE


@dataclass
class Door:
    """Lets calls through, or says why not.

    `may_act(seconds)` says whether this replica leads for at least that long. `on_change` is told when something of
    `shut`, `refused`, `unavailable` or a pause begins or ends, `on_recovery` when the key is accepted again.
    """

    monotonic: Callable[[], float]
    may_act: Callable[[float], bool] = lambda _: True
    call_seconds: float = 30.0
    concurrency: int = 16
    probe_seconds: float = 5.0
    probe_limit_seconds: float = 300.0
    default_pause_seconds: float = 5.0
    adaptive: bool = False
    """Whether a 429 teaches a slower pace, besides the pause that it asks for."""
    paused_until: float = 0.0
    shut: Shut | None = None
    """Why nobody may call, for whoever looks after the connection to set."""
    refused: str | None = None
    """Why the key is refused, while it is."""
    unavailable: str | None = None
    """What the service answers instead of an answer, while it does so to everybody."""
    halt: Halt = field(default_factory=Halt)
    """Shared by the doors of one process."""
    unsupported: set[str] = field(default_factory=set)
    """Operations that the service turned out not to offer: {"DELETE /edges/https/{id}/mutual_tls"}."""
    on_change: Callable[[], None] = lambda: None
    on_recovery: Callable[[], None] = lambda: None
    _probe_at: float = 0.0
    _probe_wait: float = 0.0
    _failures: int = 0

    def __post_init__(self) -> None:
        self.slots = asyncio.Semaphore(self.concurrency)
        self.pace = Pace(self.monotonic)

    def allow(self, concurrency: int, per_minute: float | None, call_seconds: float) -> None:
        """Other limits from now on; calls that are under way keep theirs."""
        if concurrency != self.concurrency:
            self.concurrency, self.slots = concurrency, asyncio.Semaphore(concurrency)
        self.pace.per_minute, self.call_seconds = per_minute, call_seconds

    def check(self) -> None:
        """Nothing, where a call would be let through now; asked before anything is done that a call has to follow.

        Raises:
            Stopping: this replica ends.
            Waiting: the service asked for a pause, or refuses the key and the next probe is not due.
            Waiting, Stalled: as `shut` says.
        """
        self.halt.check()
        if self.shut is not None:
            raise self.shut.as_error()
        now = self.monotonic()
        if now < self.paused_until:
            raise Waiting(Waits.RATE_LIMITED, "the service asked for a pause", after_seconds=self.paused_until - now)
        if self.refused is not None and now < self._probe_at:
            raise Waiting(Waits.CONNECTION_NOT_READY, self.refused, after_seconds=self._probe_at - now)

    async def gate(self, method: str, path: str) -> None:
        """Let an attempt through, or say why not. Awaited before each attempt.

        Raises:
            NotLeading: this replica may not act, or ends.
            Waiting, Stalled: as `check` says.
        """
        del path
        self.check()
        async with self.halt.interruptible():
            await self.pace.turn()
        self.check()
        if method != "GET" and not self.may_act(self.call_seconds):
            raise NotLeading
        if self.refused is not None:
            self._probe_at = self.monotonic() + self._probe_wait  # this attempt is the one probe

    @property
    def probe_in_seconds(self) -> float:
        """How long until a refused key may be tried again."""
        return max(0.0, self._probe_at - self.monotonic())

    def pause(self, seconds: float | None) -> float:
        """Hold all calls back, as a 429 asked; the pause in seconds."""
        wait = self.default_pause_seconds if seconds is None else max(seconds, 0.1)
        news = self.paused_until <= self.monotonic()
        self.paused_until = max(self.paused_until, self.monotonic() + wait)
        if self.adaptive:
            self.pace.learn()
        if news:
            self.on_change()
        return wait

    def refuse(self, why: str) -> float:
        """The key is not accepted; seconds until the next probe."""
        self._probe_wait = min(max(self._probe_wait * 2, self.probe_seconds), self.probe_limit_seconds)
        news, self.refused = self.refused is None, why
        self._probe_at = self.monotonic() + self._probe_wait
        if news:
            self.on_change()
        return self._probe_wait

    def failed(self, what: str) -> None:
        """A call had no answer, or an error of the service's own for one."""
        self._failures += 1
        if self._failures >= UNAVAILABLE_AFTER and self.unavailable is None:
            self.unavailable = what
            self.on_change()

    def answered(self) -> None:
        """The service accepted the key and answered."""
        self._failures = 0
        news = self.unavailable is not None or self.refused is not None
        recovered, self.refused, self.unavailable = self.refused is not None, None, None
        if news:
            self._probe_wait = 0.0
            self.on_change()
        if recovered:
            self.on_recovery()

    def lacks(self, operation: str) -> None:
        """The service turned out not to offer an operation: "PUT /edges/https/{id}/tls_termination"."""
        if operation not in self.unsupported:
            self.unsupported.add(operation)
            self.on_change()

    def probe_now(self) -> None:
        """Something changed about the key: the next attempt goes out."""
        self._probe_at = self._probe_wait = 0.0
