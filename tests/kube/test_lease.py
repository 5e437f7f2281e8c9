"""Two contenders, frozen processes, lost answers and an API server that is away; all in virtual time."""

import asyncio
import contextlib
import datetime as dt
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from edge_operator.kube import errors
from edge_operator.kube.lease import Leadership, Terms, clock, identity

from .doubles import Hold, MemoryAPI, now, run, settled

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
            wall=lambda: dt.datetime.fromtimestamp(now(), dt.UTC), source=random.Random(5),  # noqa: S311  # repeatable
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


def test_the_first_to_come_leads_at_once_and_the_second_waits() -> None:
    async def scenario() -> None:
        api, first, second = await two()
        assert first.leadership.leading
        await never_both(first, second, 120)
        assert ([("started", 1000.0)], []) == (first.terms, second.terms)
        assert holder(api) == "a"
        assert api.objects[PATH]["spec"]["leaseTransitions"] == 0
        await second.stop()
        await first.stop()

    run(scenario())


def test_a_leader_that_stops_frees_the_lease_and_a_successor_leads_within_two_seconds() -> None:
    async def scenario() -> None:
        api, first, second = await two()
        await asyncio.sleep(33.3)
        await first.stop()
        assert holder(api) == ""
        stopped = now()
        await asyncio.sleep(2)
        assert second.leadership.leading
        assert second.terms[0][1] - stopped < 2
        assert api.objects[PATH]["spec"]["leaseTransitions"] == 1
        await second.stop()

    run(scenario())


def test_a_follower_that_stops_writes_nothing() -> None:
    async def scenario() -> None:
        api, first, second = await two()
        await asyncio.sleep(5)
        before = api.objects[PATH]["metadata"]["resourceVersion"]
        writes = len([line for line in api.log if line.startswith("PUT")])
        await second.stop()
        assert before == api.objects[PATH]["metadata"]["resourceVersion"]
        assert writes == len([line for line in api.log if line.startswith("PUT")])
        await first.stop()

    run(scenario())


def test_a_killed_leaders_successor_waits_out_the_lease_and_not_longer() -> None:
    async def scenario() -> None:
        _, first, second = await two()
        await asyncio.sleep(31)
        killed = now()
        await first.kill()
        await never_both(first, second, TERMS.lease_seconds + TERMS.retry_seconds)
        took = second.terms[0][1] - killed
        assert TERMS.lease_seconds - TERMS.retry_seconds <= took <= TERMS.lease_seconds + TERMS.retry_seconds
        await second.stop()

    run(scenario())


def test_times_written_by_a_wrong_clock_mean_nothing() -> None:
    """A lease whose renewTime is years ago, or ahead, is judged by how long it is seen unchanged."""

    async def scenario() -> None:
        for year in (1990, 2090):
            api = MemoryAPI()
            time = f"{year}-01-01T00:00:00.000000Z"
            spec = {"holderIdentity": "x", "leaseDurationSeconds": 15, "renewTime": time, "acquireTime": time}
            api.put(PATH, {"metadata": {"name": "edge-operator"}, "spec": spec})
            began = now()
            process = Process(api, "b")
            await asyncio.sleep(20)
            assert 15 <= process.terms[0][1] - began <= 17
            await process.stop()

    run(scenario())


def test_a_longer_lease_of_another_is_respected() -> None:
    async def scenario() -> None:
        api = MemoryAPI()
        spec = {"holderIdentity": "x", "leaseDurationSeconds": 60}
        api.put(PATH, {"metadata": {"name": "edge-operator"}, "spec": spec})
        process = Process(api, "b")
        await asyncio.sleep(59)
        assert not process.leadership.leading
        await asyncio.sleep(3)
        assert process.leadership.leading
        await process.stop()

    run(scenario())


def test_a_frozen_leader_knows_at_its_first_moment_awake_that_it_leads_no_more() -> None:
    async def scenario() -> None:
        _, first, second = await two()
        await asyncio.sleep(10)
        first.hold.freeze()
        await asyncio.sleep(40)
        assert second.leadership.leading
        first.hold.thaw()
        assert not first.leadership.still_leading()  # before any code of its own has run
        await never_both(first, second, 60)
        assert [what for what, _ in first.terms] == ["started", "lost"]
        await second.stop()
        await first.stop()

    run(scenario())


def test_a_leader_frozen_at_any_point_never_leads_beside_its_successor() -> None:
    """The freeze begins at every step of the renewal, before and after the request and its answer."""

    async def scenario(step: int, seconds: float) -> None:
        _, first, second = await two()
        await asyncio.sleep(9.99)
        for _ in range(step):
            await asyncio.sleep(0.001)
        first.hold.freeze()
        await never_both(first, second, seconds)
        first.hold.thaw()
        await never_both(first, second, 30)
        assert first.leadership.leading or second.leadership.leading
        await second.stop()
        await first.stop()

    for step in range(0, 30, 3):
        for seconds in (3, 9.5, 12, 14.9, 16, 31):
            run(scenario(step, seconds))


def test_a_late_write_of_a_frozen_leader_changes_nothing() -> None:
    """The renewal that was on its way when the process froze arrives after the successor took over."""

    async def scenario() -> None:
        api, first, second = await two()
        gate = asyncio.Event()

        async def hold_first_put(what: str) -> None:
            if what.startswith("PUT") and not gate.is_set() and not second.leadership.leading and now() < 1006:
                first.hold.freeze()
                await gate.wait()

        api.fault = hold_first_put
        await asyncio.sleep(40)
        assert second.leadership.leading
        gate.set()
        first.hold.thaw()
        await asyncio.sleep(5)
        assert holder(api) == "b"
        assert not first.leadership.leading
        await second.stop()
        await first.stop()

    run(scenario())


def test_a_leader_cut_off_gives_up_before_anybody_can_take_over() -> None:
    async def scenario() -> None:
        _, first, second = await two()
        await asyncio.sleep(20.5)
        first.cut_off = True
        await never_both(first, second, 30)
        lost, taken = first.terms[1][1], second.terms[0][1]
        assert taken - lost >= TERMS.lease_seconds - TERMS.renew_deadline_seconds - TERMS.retry_seconds
        first.cut_off = False
        await never_both(first, second, 30)
        assert second.leadership.leading
        await second.stop()
        await first.stop()

    run(scenario())


def test_an_api_server_that_is_away_shortly_costs_no_leadership() -> None:
    async def scenario() -> None:
        _, first, second = await two()
        await asyncio.sleep(20.5)
        first.cut_off = second.cut_off = True
        await asyncio.sleep(7)
        first.cut_off = second.cut_off = False
        await never_both(first, second, 30)
        assert first.terms == [("started", 1000.0)]
        await second.stop()
        await first.stop()

    run(scenario())


def test_requests_that_hang_are_given_up_and_tried_again() -> None:
    async def scenario() -> None:
        api, first, second = await two()

        async def hang(what: str) -> None:
            if 1010 < now() < 1013 and what.startswith("PUT"):
                await asyncio.sleep(3600)

        api.fault = hang
        await never_both(first, second, 60)
        assert ([("started", 1000.0)], []) == (first.terms, second.terms)
        assert first.leadership.leading
        await second.stop()
        await first.stop()

    run(scenario())


def test_a_renewal_whose_answer_is_lost_is_noticed_and_costs_nothing() -> None:
    async def scenario() -> None:
        api, first, second = await two()
        lost = iter((True, False, False))

        async def lose(what: str) -> None:
            if what.startswith("PUT") and now() > 1010 and next(lost, False):
                raise errors.Unreachable("cut", sent=True)

        api.after = lose
        await never_both(first, second, 60)
        assert first.terms == [("started", 1000.0)]
        await second.stop()
        await first.stop()

    run(scenario())


def test_an_acquisition_whose_answer_is_lost_is_recognised_as_ours() -> None:
    async def scenario() -> None:
        api = MemoryAPI()
        lost = iter((True,))

        async def lose(what: str) -> None:
            if what.startswith("POST") and next(lost, False):
                raise errors.Unreachable("cut", sent=True)

        api.after = lose
        process = Process(api, "a")
        await asyncio.sleep(1.5)
        assert process.leadership.leading
        await process.stop()

    run(scenario())


def test_a_lease_that_is_freed_although_its_renewal_was_cut_off_by_the_exit() -> None:
    async def scenario() -> None:
        api, first, second = await two()
        entered = asyncio.Event()

        async def slow(what: str) -> None:
            if what.startswith("PUT") and now() > 1005 and not entered.is_set():
                entered.set()
                await asyncio.sleep(1)

        api.after = slow
        await entered.wait()
        await first.stop()
        assert holder(api) == ""
        await second.stop()

    run(scenario())


def test_a_lease_that_somebody_else_took_ends_the_term_at_the_next_renewal() -> None:
    async def scenario() -> None:
        api, first, second = await two()
        await second.stop()
        await asyncio.sleep(4.5)
        spec = {**api.objects[PATH]["spec"], "holderIdentity": "thief"}
        api.put(PATH, {"metadata": {"name": "edge-operator"}, "spec": spec})
        await asyncio.sleep(TERMS.retry_seconds)
        assert [what for what, _ in first.terms] == ["started", "lost"]
        assert not first.leadership.leading
        await first.stop()
        assert holder(api) == "thief"

    run(scenario())


def test_a_lease_that_somebody_freed_ends_the_term_too_because_another_may_have_seen_it_free() -> None:
    async def scenario() -> None:
        api, first, second = await two()
        await second.stop()
        await asyncio.sleep(4.5)
        spec = {**api.objects[PATH]["spec"], "holderIdentity": ""}
        api.put(PATH, {"metadata": {"name": "edge-operator"}, "spec": spec})
        await asyncio.sleep(10)
        assert [what for what, _ in first.terms] == ["started", "lost", "started"]
        await first.stop()

    run(scenario())


def test_a_lease_that_was_deleted_is_made_anew_within_the_term() -> None:
    async def scenario() -> None:
        api, first, second = await two()
        await second.stop()
        await asyncio.sleep(4.5)
        api.remove(PATH)
        await asyncio.sleep(30)
        assert first.terms == [("started", 1000.0)]
        assert holder(api) == "a"
        await first.stop()

    run(scenario())


def test_of_many_contenders_at_once_one_leads() -> None:
    async def scenario() -> None:
        api = MemoryAPI()
        crowd = [Process(api, f"p{n}") for n in range(8)]
        await asyncio.sleep(60)
        assert sum(p.leadership.leading for p in crowd) == 1
        for process in crowd:
            await process.stop()

    run(scenario())


def test_an_effect_is_allowed_only_if_it_ends_before_anybody_can_take_over() -> None:
    async def scenario() -> None:
        _, first, second = await two()
        most = TERMS.lease_seconds - TERMS.margin_seconds
        assert first.leadership.still_leading(most - 0.01)
        assert not first.leadership.still_leading(most)
        assert not second.leadership.still_leading(0)
        await asyncio.sleep(1.5)
        assert not first.leadership.still_leading(most - 1.49)
        await second.stop()
        await first.stop()
        assert not first.leadership.still_leading(0)

    run(scenario())


def test_a_term_counts_from_before_the_request_that_renewed_it() -> None:
    """Others may have seen the renewal long before its answer reached us."""

    async def scenario() -> None:
        api = MemoryAPI()

        async def slow(what: str) -> None:
            await asyncio.sleep(4)

        api.after = slow
        process = Process(api, "a")
        await asyncio.sleep(8.5)
        assert process.leadership.leading
        assert not process.leadership.still_leading(TERMS.lease_seconds - TERMS.margin_seconds - 8.5)
        await process.kill()

    run(scenario())


def test_a_process_frozen_beyond_its_renew_deadline_begins_no_effect_although_the_lease_still_runs() -> None:
    async def scenario() -> None:
        _, first, second = await two()
        first.hold.freeze()
        await asyncio.sleep(TERMS.renew_deadline_seconds + 1)
        assert not first.leadership.leading
        assert not second.leadership.leading
        first.hold.thaw()
        await second.stop()
        await first.stop()

    run(scenario())


def test_what_on_started_raises_frees_the_lease_and_comes_out() -> None:
    async def scenario() -> None:
        api = MemoryAPI()
        lost = []

        async def fail() -> None:
            raise LookupError("no such thing")

        async def on_lost() -> None:
            lost.append(now())

        leadership = Leadership(api, "edge", "edge-operator", monotonic=now)
        with pytest.raises(LookupError):
            await leadership.run(fail, on_lost)
        assert len(lost) == 1
        assert holder(api) == ""

    run(scenario())


def test_on_started_may_last_and_is_ended_when_leadership_is() -> None:
    async def scenario() -> None:
        api = MemoryAPI()
        ended = []

        async def act() -> None:
            try:
                await asyncio.sleep(3600)
            finally:
                ended.append(now())

        async def nothing() -> None:
            pass

        leadership = Leadership(api, "edge", "edge-operator", monotonic=now)
        task = asyncio.ensure_future(leadership.run(act, nothing))
        await asyncio.sleep(100)
        assert leadership.leading
        assert ended == []
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert ended == [1100.0]

    run(scenario())


def test_terms_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="lease_seconds should exceed"):
        Terms(lease_seconds=10, renew_deadline_seconds=10)


def test_the_clock_goes_on_and_identities_differ() -> None:
    assert clock() <= clock()
    assert identity() != identity()
