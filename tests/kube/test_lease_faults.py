"""Leadership when things go wrong: frozen processes, lost answers, a lease that others touch, an API server away."""

import asyncio

import pytest

from edge_operator.kube import errors

from .contenders import PATH, TERMS, Process, holder, never_both, two
from .doubles import MemoryAPI, now, run


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


@pytest.mark.fault("a leader frozen at any point of its renewal")
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


@pytest.mark.fault("a leader that is cut off from the API server")
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


@pytest.mark.fault("requests to the API server that hang")
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


@pytest.mark.fault("a renewal of the Lease whose answer is lost")
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


@pytest.mark.fault("an acquisition of the Lease whose answer is lost")
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


@pytest.mark.fault("a Lease that somebody else took")
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


@pytest.mark.fault("a Lease that was deleted")
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
