"""Two contenders and more for one lease, in virtual time."""

import asyncio
import contextlib

import pytest

from edge_operator.kube.lease import Leadership, Terms, clock, identity

from .contenders import PATH, TERMS, Process, holder, never_both, two
from .doubles import MemoryAPI, now, run


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
