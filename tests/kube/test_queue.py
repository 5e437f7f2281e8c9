"""The workers: in virtual time, so that nothing waits."""

import asyncio
import contextlib
import logging
import random
from collections import Counter
from collections.abc import AsyncIterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_operator.kube.queue import Backoff, Priority, WorkQueue

from .doubles import now, run, settled

EDIT, _, RETRY, RESYNC = Priority


class Work:
    """What is done with each key: it takes a while, and is remembered."""

    def __init__(self, seconds: float = 1.0) -> None:
        self.seconds = seconds
        self.begun: list[tuple[float, str]] = []
        self.active: Counter[str] = Counter()
        self.most = 0
        self.ended = 0

    async def __call__(self, key: str) -> None:
        self.begun.append((now() - 1000.0, key))
        self.active[key] += 1
        assert self.active[key] == 1, f"two workers on {key}"
        self.most = max(self.most, self.active.total())
        try:
            await asyncio.sleep(self.seconds)
            self.ended += 1
        finally:
            self.active[key] -= 1


@contextlib.asynccontextmanager
async def working(work: Work, workers: int = 2, **more: float) -> AsyncIterator[WorkQueue[str]]:
    queue = WorkQueue(
        work, workers=workers, backoff=Backoff(**more), monotonic=now, source=random.Random(3)  # repeatable
    )  # fmt: skip
    task = asyncio.ensure_future(queue.run())
    await settled()
    try:
        yield queue
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def test_no_more_keys_are_worked_on_than_there_are_workers() -> None:
    async def scenario() -> None:
        work = Work()
        async with working(work, workers=3) as queue:
            for number in range(10):
                queue.offer(f"k{number}", priority=EDIT)
            await asyncio.sleep(20)
        assert (3, 10) == (work.most, work.ended)

    run(scenario())


def test_a_key_offered_while_it_is_worked_on_is_worked_on_again_and_never_by_two() -> None:
    async def scenario() -> None:
        work = Work()
        async with working(work) as queue:
            queue.offer("a", priority=EDIT)
            await asyncio.sleep(0.5)
            queue.offer("a", priority=EDIT)
            queue.offer("a", priority=RESYNC)
            await asyncio.sleep(10)
        assert [(0.0, "a"), (1.0, "a")] == work.begun

    run(scenario())


def test_a_key_is_worked_on_when_it_is_due() -> None:
    async def scenario() -> None:
        work = Work(0)
        async with working(work) as queue:
            for key, due in {"late": 1090.0, "soon": 1007.0, "later": 1091.0}.items():
                queue.offer(key, priority=RESYNC, due=due)
            queue.offer("late", priority=RETRY, due=1030.0)
            await asyncio.sleep(100)
        assert [(7.0, "soon"), (30.0, "late"), (91.0, "later")] == work.begun

    run(scenario())


def test_keys_that_are_due_together_are_worked_on_together() -> None:
    async def scenario() -> None:
        work = Work()
        async with working(work, workers=3) as queue:
            for key in "abc":
                queue.offer(key, priority=RETRY, due=1010.0)
            await asyncio.sleep(20)
        assert 3 == work.most

    run(scenario())


def test_a_thousand_due_keys_need_one_timer() -> None:
    async def scenario() -> None:
        work = Work(0)
        async with working(work) as queue:
            before = len(asyncio.all_tasks())
            for number in range(1000):
                queue.offer(f"k{number}", priority=RESYNC, due=1010.0 + number)
            loop = asyncio.get_running_loop()
            assert len([timer for timer in loop._scheduled if not timer.cancelled()]) == 1  # type: ignore[attr-defined]
            assert len(asyncio.all_tasks()) == before

    run(scenario())


def test_a_paused_queue_begins_nothing_and_loses_nothing() -> None:
    async def scenario() -> None:
        work = Work()
        async with working(work) as queue:
            queue.offer("running", priority=EDIT)
            await settled()
            queue.pause()
            queue.offer("ready", priority=EDIT)
            queue.offer("due", priority=EDIT, due=1005.0)
            await asyncio.sleep(50)
            assert [(0.0, "running")] == work.begun
            queue.resume()
            await asyncio.sleep(5)
        assert [(50.0, "ready"), (50.0, "due")] == work.begun[1:]

    run(scenario())


def test_draining_lets_the_runs_in_progress_end_and_begins_no_other() -> None:
    async def scenario() -> None:
        work = Work(seconds=3)
        queue = WorkQueue(work, workers=2, monotonic=now)
        running = asyncio.ensure_future(queue.run())
        for key in "abcd":
            queue.offer(key, priority=EDIT)
        await asyncio.sleep(1)
        assert await queue.drain(10)
        await running
        assert (["a", "b"], 2, 1003.0) == ([key for _, key in work.begun], work.ended, now())

    run(scenario())


def test_draining_says_so_when_a_run_takes_too_long() -> None:
    async def scenario() -> None:
        work = Work(seconds=60)
        async with working(work) as queue:
            queue.offer("a", priority=EDIT)
            await settled()
            assert not await queue.drain(5)
            assert now() == 1005.0
        assert (0, 0) == (work.ended, work.active.total())

    run(scenario())


def test_draining_an_idle_queue_takes_no_time_and_ends_its_workers() -> None:
    async def scenario() -> None:
        queue = WorkQueue(Work(), monotonic=now)
        running = asyncio.ensure_future(queue.run())
        await settled()
        queue.offer("later", priority=RESYNC, due=5000.0)
        assert await queue.drain(1)
        await running
        assert now() == 1000.0

    run(scenario())


def test_what_raises_is_tried_again_later_and_later_and_says_nothing_of_its_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        async with working(Failing(), base_seconds=4.0) as queue:
            queue.offer("a", priority=EDIT)
            queue.offer("b", priority=EDIT)
            await asyncio.sleep(3600)
            assert queue.failures("a") > 5
            assert "b" in Failing.done

    class Failing(Work):
        done: tuple[str, ...] = ()

        async def __call__(self, key: str) -> None:
            if key == "a":
                raise ValueError(f"canary-{7000 + 261}")
            Failing.done += (key,)

    with caplog.at_level(logging.ERROR):
        run(scenario())
    assert "ValueError" in caplog.text
    assert "canary-7261" not in caplog.text


def test_backoff_doubles_until_the_key_succeeds() -> None:
    queue: WorkQueue[str] = WorkQueue(Work(), backoff=Backoff(1.0, 300.0), source=random.Random(1))  # repeatable
    delays = [queue.failed("a") for _ in range(12)]
    assert max(delays[:3]) <= 4.0 < max(delays)
    queue.succeeded("a")
    assert queue.failed("a") <= 1.0


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 5), st.sampled_from("abcdef"), st.sampled_from(Priority),
            st.one_of(st.none(), st.integers(0, 20)), st.sampled_from(["offer", "offer", "pause", "resume"]),
        ),
        max_size=40,
    ),
    st.integers(1, 4),
)  # fmt: skip
def test_every_offer_is_followed_by_a_run_that_began_after_it(
    script: list[tuple[int, str, Priority, int | None, str]], workers: int
) -> None:
    async def scenario() -> None:
        work = Work(seconds=1.5)
        offers: dict[str, float] = {}
        async with working(work, workers=workers) as queue:
            for wait, key, priority, due, verb in script:
                await asyncio.sleep(wait)
                if verb == "pause":
                    queue.pause()
                elif verb == "resume":
                    queue.resume()
                else:
                    queue.offer(key, priority=priority, due=None if due is None else now() + due)
                    offers[key] = now() - 1000.0
            queue.resume()
            await asyncio.sleep(600)
            assert queue.snapshot().running == 0
            assert sum(queue.snapshot().ready.values()) == queue.snapshot().scheduled == 0
        last = {key: began for began, key in work.begun}
        assert all(last[key] >= offered for key, offered in offers.items())
        assert work.most <= workers

    run(scenario())
