"""A stop: whatever waits or only reads ends at once, whatever writes comes to its end and is recorded."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import httpx
import pytest

from doubles import lives
from doubles.crashes import OVERLAP_SECONDS, begun, judge
from doubles.frozen import thaw
from doubles.lives import Scenario
from doubles.wire import Handled
from edge_operator.api.client import Client
from edge_operator.door import Door, Halt, Pace, Stopping
from edge_operator.engine.operations import Waiting
from edge_operator.kinds import KINDS
from edge_operator.remote import ManagementAPI

KIND = "FailoverBackend"
STOPPED = [
    pytest.param(kind, scenario, id=f"{kind}: {scenario}")
    for kind in (KIND, "APIKey", "SSHHostCertificate", "HTTPSEdge")
    for scenario in lives.of(kind)
]


async def soon() -> None:
    """Let everything go as far as it gets without time."""
    for _ in range(20):
        await asyncio.sleep(0)


async def never(_: float = 0) -> None:
    await asyncio.Event().wait()


class Service:
    """Answers nothing until it is told to."""

    def __init__(self, **limits: Any) -> None:
        self.asked: list[str] = []
        self.go_on = asyncio.Event()
        self.door = Door(lambda: 1000.0, **limits)
        client = Client(
            "https://api.test", "key", transport=Handled(self._answer), gate=self.door.gate, sleep=self.door.halt.sleep
        )
        self.remote = ManagementAPI(client, self.door)

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(f"{request.method} {request.url.path}")
        await self.go_on.wait()
        return httpx.Response(201, json={"id": "bkdfo_1"})

    def create(self) -> asyncio.Task[Any]:
        return asyncio.create_task(self.remote.create(KINDS[KIND], {}, {"metadata": ""}))


@pytest.mark.fault("a stop while a long backlog waits for the limit of calls a minute")
async def test_a_paced_backlog_ends_at_once():
    """No time passes at all."""
    service = Service()
    service.door.pace = Pace(lambda: 1000.0, 6, sleep=never)
    await service.door.pace.turn()
    waiting = [service.create() for _ in range(5)]
    reading = asyncio.create_task(service.remote.read(KINDS[KIND], "bkdfo_1", {}))
    await soon()
    assert (service.asked, [w for w in waiting if w.done()]) == ([], [])

    service.door.halt.begin()
    ends = await asyncio.gather(*waiting, reading, return_exceptions=True)

    assert {type(end) for end in ends} == {Stopping}
    assert service.asked == []


@pytest.mark.fault("a stop while the service hangs")
async def test_reads_end_and_a_creation_gets_its_answer():
    service = Service(concurrency=3)
    creating, reading = service.create(), asyncio.create_task(service.remote.read(KINDS[KIND], "bkdfo_1", {}))
    listing = asyncio.create_task(service.remote.listing(KINDS[KIND].api, 0.0))
    await soon()
    behind = service.create()
    await soon()
    assert len(service.asked) == 3

    service.door.halt.begin()
    await soon()

    assert (creating.done(), reading.done(), listing.done(), behind.done()) == (False, True, True, True)
    service.go_on.set()
    assert await creating == {"id": "bkdfo_1"}
    ends = await asyncio.gather(reading, listing, behind, return_exceptions=True)
    assert {type(end) for end in ends} == {Stopping}
    assert len(service.asked) == 3
    for later in (service.remote.check, lambda: service.remote.client):
        with pytest.raises(Stopping):
            later()


async def test_a_call_that_would_be_repeated_is_not():
    """Neither the pause between two attempts is waited for, nor is there another attempt."""
    halt, asked = Halt(), list[str]()
    door = Door(lambda: 1000.0, halt=halt)

    async def refuse(request: httpx.Request) -> httpx.Response:
        asked.append(request.method)
        return httpx.Response(503)

    client = Client(
        "https://api.test", "key", transport=Handled(refuse), gate=door.gate, sleep=lambda _: halt.sleep(60)
    )
    calling = asyncio.create_task(ManagementAPI(client, door).update(KINDS[KIND], "bkdfo_1", {}, {}))
    await soon()
    halt.begin()

    with pytest.raises(Stopping):
        await calling
    assert asked == ["PATCH"]


async def test_without_a_stop_nothing_ends():
    halt = Halt()
    with pytest.raises(TimeoutError):
        async with halt.interruptible():
            raise TimeoutError
    halt.begin()
    halt.begin()
    with pytest.raises(Stopping):
        async with halt.interruptible():
            await asyncio.sleep(60)
    with pytest.raises(Waiting):
        async with halt.interruptible():
            raise Waiting(None, "its own error")  # type: ignore[arg-type]


@pytest.mark.fault("a stop at any effect")
@pytest.mark.parametrize(("kind", "scenario"), STOPPED)
async def test_a_stop_at_each_effect(kind: str, scenario: Scenario):
    """What was under way is recorded, nothing else is asked of the service, and a new process ends the work."""
    life = await begun(kind, scenario)
    for number, _ in enumerate(life.effects, 1):
        async with thaw(life.frozen) as rig:
            rig.effects.meddling[number] = lambda rig=rig: rig.process.remote.door.halt.begin()
            await scenario.act(rig)
            await rig.settle()
            for _ in range(3 if scenario.rounds else 0):
                with contextlib.suppress(Stopping):
                    await rig.resync(*scenario.rounds)
                    continue
                await rig.restart()
            met, after = rig.effects.log[number - 1], rig.effects.log[number : rig.stopped_after]
            assert [name for name in after if not name.startswith("cluster")] == [], f"after a stop at {met}"
            if met.startswith("POST"):
                assert any(" status" in name for name in after), f"{met} is not recorded: {after}"
            if rig.process.remote.door.halt.begun:
                await rig.restart()
                await rig.settle()
            if rig.exists(kind) and "previous" in rig.status(kind):
                await rig.sleep(OVERLAP_SECONDS)
            await judge(rig, kind, scenario)
