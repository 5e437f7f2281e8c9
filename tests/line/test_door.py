"""The door of an account: what is let through, when, and in which order. No test waits: the clock is the test's."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from edge_operator.door import UNAVAILABLE_AFTER, URGENT, Door, NotLeading, Pace, urgency
from edge_operator.engine.operations import Shut, Stalled, Waiting
from edge_operator.engine.reasons import Stalls, Waits


class Clock:
    """A clock that moves when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        assert seconds > 0
        await asyncio.sleep(0)
        self.now += seconds


async def times(pace: Pace, clock: Clock, calls: int) -> list[float]:
    """When each of so many calls got its turn."""
    out = []
    for _ in range(calls):
        await pace.turn()
        out.append(clock.now - 1000.0)
    return out


async def test_without_a_limit_nobody_waits():
    clock = Clock()
    assert [0.0] * 500 == await times(Pace(clock, sleep=clock.sleep), clock, 500)


@pytest.mark.parametrize("per_minute", [6, 60, 120, 1000])
async def test_no_minute_has_more_calls_than_allowed_and_a_backlog_uses_what_it_may(per_minute: int):
    clock = Clock()
    clock.now += 500  # an idle time saves up a burst and no more
    found = await times(Pace(clock, per_minute, sleep=clock.sleep), clock, per_minute * 3)
    for first, last in zip(found, found[per_minute:], strict=False):
        assert last - first >= 60.0 - 1e-6
    assert found[-1] - found[0] <= 60 * 4.2, "three minutes' worth of calls"
    assert all(a <= b for a, b in pairwise(found))


async def test_the_most_urgent_goes_first():
    clock, order = Clock(), list[str]()
    pace = Pace(clock, 6, sleep=clock.sleep)
    await pace.turn()

    async def call(name: str, *, urgent: bool) -> None:
        if urgent:
            urgency.set(URGENT)
        await pace.turn()
        order.append(name)

    usual = [asyncio.create_task(call(f"usual {n}", urgent=False)) for n in range(3)]
    await asyncio.sleep(0)
    await asyncio.gather(*usual, asyncio.create_task(call("edit", urgent=True)))
    assert ["edit", "usual 0", "usual 1", "usual 2"] == order


async def test_whoever_gives_up_takes_no_turn():
    clock = Clock()
    pace = Pace(clock, 6, sleep=clock.sleep)
    await pace.turn()
    waiting = [asyncio.create_task(pace.turn()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    before = clock.now
    await asyncio.gather(*waiting[1:])
    assert clock.now - before < 3 * 12.0


async def test_a_429_teaches_a_slower_pace_that_is_forgotten_again():
    clock = Clock()
    door = Door(clock, adaptive=True)
    for _ in range(120):
        await door.pace.turn()
    assert door.pace.limit() is None
    door.pause(1)
    assert door.pace.limit() == pytest.approx(108)
    clock.now += 60
    assert door.pace.limit() == pytest.approx(135)
    clock.now += 3600
    assert door.pace.limit() is None


async def test_what_is_configured_bounds_what_is_learned():
    clock = Clock()
    door = Door(clock, adaptive=True)
    door.allow(concurrency=4, per_minute=30, call_seconds=5)
    door.pause(1)
    assert door.pace.limit() == 6.0, "nothing was asked for in the last minute"
    clock.now += 3600
    assert door.pace.limit() == 30.0


async def test_a_shut_door_says_why_and_lets_nobody_in():
    door = Door(Clock(), shut=Shut(Stalls.REFERENCE_NOT_PERMITTED, "not here"))
    with pytest.raises(Stalled, match="not here"):
        await door.gate("GET", "/x")


async def test_only_a_leader_writes_and_everybody_reads():
    door = Door(Clock(), may_act=lambda _: False)
    await door.gate("GET", "/x")
    with pytest.raises(NotLeading):
        await door.gate("DELETE", "/x")


async def test_a_refused_key_is_probed_with_growing_pauses_by_one_call_each():
    clock, changes = Clock(), list[str | None]()
    door = Door(clock)
    door.on_change = lambda: changes.append(door.refused)
    await door.gate("GET", "/x")
    assert door.refuse("no") == 5.0
    with pytest.raises(Waiting) as found:
        await door.gate("GET", "/x")
    assert Waits.CONNECTION_NOT_READY is found.value.reason
    assert found.value.after_seconds == 5.0
    clock.now += 5
    await door.gate("GET", "/x")
    with pytest.raises(Waiting):
        await door.gate("GET", "/x")
    assert door.refuse("no") == 10.0
    assert changes == ["no"], "the second refusal is no news"
    door.answered()
    await door.gate("GET", "/x")
    assert changes == ["no", None]


async def test_an_operation_that_is_not_offered_is_told_once():
    changes = list[set[str]]()
    door = Door(Clock())
    door.on_change = lambda: changes.append(set(door.unsupported))
    for _ in range(3):
        door.lacks("PUT /edges/tls/{id}/ip_restriction")
    assert changes == [{"PUT /edges/tls/{id}/ip_restriction"}]


async def test_one_failure_is_a_calls_and_several_in_a_row_are_the_services():
    changes = list[str | None]()
    door = Door(Clock())
    door.on_change = lambda: changes.append(door.unavailable)
    for _ in range(UNAVAILABLE_AFTER - 1):
        door.failed("the service answers 503")
    door.answered()
    for _ in range(UNAVAILABLE_AFTER + 3):
        door.failed("the service answers 503")
    door.answered()
    assert changes == ["the service answers 503", None]
