"""Replicas that contend for a lease in virtual time: frozen, cut off, stopped or killed as a test likes."""

import asyncio
import contextlib
import datetime as dt
import random
from collections.abc import Awaitable, Callable
from typing import Any

from edge_operator.kube import errors
from edge_operator.kube.lease import Leadership, Terms

from .doubles import Hold, MemoryAPI, now, settled

TERMS = Terms()
PATH = "/apis/coordination.k8s.io/v1/namespaces/edge/leases/edge-operator"


class Process:
    """One replica: it has a clock of its own, may be frozen, cut off from the API server, stopped or killed."""

    def __init__(self, api: MemoryAPI, name: str, terms: Terms = TERMS) -> None:
        self.api = api
        self.hold = Hold()
        self.cut_off = False
        self.promised = 0.0
        """When the last effect ends that this process was allowed to begin."""
        self.terms: list[tuple[str, float]] = []
        self.leadership = Leadership(
            self, "edge", "edge-operator", holder=name, terms=terms, monotonic=now, sleep=self.hold.sleep,
            wall=lambda: dt.datetime.fromtimestamp(now(), dt.UTC), source=random.Random(5),  # repeatable
        )  # fmt: skip
        self.task = asyncio.ensure_future(self.leadership.run(self._started, self._lost))

    async def _started(self) -> None:
        self.terms.append(("started", now()))

    async def _lost(self) -> None:
        assert not self.leadership.leading
        self.terms.append(("lost", now()))

    async def get(self, path: str) -> Any:
        return await self._reach(lambda: self.api.get(path))

    async def create(self, path: str, body: Any) -> Any:
        return await self._reach(lambda: self.api.create(path, body))

    async def replace(self, path: str, body: Any) -> Any:
        return await self._reach(lambda: self.api.replace(path, body))

    async def _reach(self, request: Callable[[], Awaitable[Any]]) -> Any:
        await self.hold.wait()
        if self.cut_off:
            raise errors.Unreachable("no route", sent=False)
        answer = await request()
        await self.hold.wait()
        return answer

    async def stop(self) -> None:
        """SIGTERM."""
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.task

    async def kill(self) -> None:
        """SIGKILL: nothing more is written."""
        self.cut_off = True
        self.hold.thaw()
        await self.stop()


def holder(api: MemoryAPI) -> str:
    return str(api.objects[PATH]["spec"]["holderIdentity"])


async def two() -> tuple[MemoryAPI, Process, Process]:
    """A leader and a follower."""
    api = MemoryAPI()
    leader = Process(api, "a")
    await settled()
    return api, leader, Process(api, "b")


async def never_both(first: Process, second: Process, seconds: float) -> None:
    """Let time pass, looking all the while whether an effect that one may begin outlasts the other's taking over."""
    for _ in range(int(seconds * 10)):
        await asyncio.sleep(0.1)
        for process, other in ((first, second), (second, first)):
            assert not process.leadership.leading or now() > other.promised
            for effect_seconds in (0, 4, 12):
                if process.leadership.still_leading(effect_seconds):
                    process.promised = max(process.promised, now() + effect_seconds)
