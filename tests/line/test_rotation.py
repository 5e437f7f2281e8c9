"""Tokens rotate by age and on request: both are good during the overlap, whenever the operator dies."""

from __future__ import annotations

import pytest

from doubles.crashes import STEADY, judge
from doubles.effects import Fate
from doubles.foreign import foreign
from doubles.lives import End, Scenario
from doubles.rig import Rig
from doubles.scenarios import effect_of
from edge_operator.kinds import KINDS

from .test_life import made_needs
from .test_tokens import (
    HOUR,
    KEY,
    ROTATING,
    TOKENS,
    held,
    opened_by,
    opens,
    ours,
    rotating,
    secret_of,
)


@pytest.mark.parametrize("kind", TOKENS)
async def test_a_token_rotates_at_its_age_and_both_are_good_during_the_overlap(kind):
    async with Rig() as rig:
        first = await rotating(rig, kind)
        old = held(rig, kind)["token"]
        await rig.sleep(99.9 * HOUR)
        assert (rig.id(kind), rig.calls) == (first, [])
        await rig.sleep(0.2 * HOUR)
        second, data = rig.id(kind), held(rig, kind)
        assert second != first
        assert data == {"token": data["token"], "id": second, "previous-token": old, "previous-id": first}
        assert (opened_by(rig, data["token"]), opened_by(rig, old)) == (second, first)
        assert [effect_of(call) for call in rig.calls] == ["POST"]
        assert [p["id"] for p in rig.status(kind)["previous"]] == [first]
        assert [e.reason for e in rig.events()] == ["TokenIssued"]
        await rig.sleep(9.8 * HOUR)
        assert ours(rig, kind) == [first, second]
        await rig.sleep(0.2 * HOUR)
        assert ours(rig, kind) == [second]
        assert held(rig, kind) == {"token": data["token"], "id": second}
        await judge(rig, kind, STEADY)


async def test_both_keys_call_the_service_during_the_overlap_and_the_old_one_not_after_it():
    async with Rig() as rig:
        await rotating(rig, KEY)
        await rig.sleep(100.1 * HOUR)
        data = held(rig, KEY)
        assert [await opens(rig, data[k]) for k in ("token", "previous-token")] == [True, True]
        await rig.sleep(10 * HOUR)
        assert [await opens(rig, data[k]) for k in ("token", "previous-token")] == [True, False]


@pytest.mark.parametrize("kind", TOKENS)
async def test_the_secret_never_shows_a_key_that_is_deleted(kind):
    """The previous token leaves the Secret before its key goes."""
    async with Rig() as rig:
        first = await rotating(rig, kind)
        await rig.sleep(100.1 * HOUR)
        done = len(rig.effects.log)
        await rig.sleep(10 * HOUR)
        end = [name.split(" for ")[0] for name in rig.effects.log[done:]]
        assert end == [
            f"cluster PUT Secret/{secret_of(kind)}",
            f"DELETE {KINDS[kind].api.path}/{first}",
            f"cluster PATCH {kind}/example status",
        ]


@pytest.mark.parametrize("kind", TOKENS)
async def test_rotations_follow_each_other_for_ever(kind):
    async with Rig() as rig:
        seen = {await rotating(rig, kind)}
        for _ in range(5):
            await rig.sleep(100.1 * HOUR)
            seen.add(rig.id(kind))
        assert len(seen) == 6
        await rig.sleep(20 * HOUR)
        await judge(rig, kind, STEADY)


@pytest.mark.parametrize("kind", TOKENS)
async def test_a_restart_during_the_overlap_ends_it_in_time(kind):
    async with Rig() as rig:
        first = await rotating(rig, kind)
        await rig.sleep(101 * HOUR)
        await rig.restart()
        rig.forget()
        await rig.settle()
        assert (rig.calls, rig.writes) == ([], [])
        assert first in ours(rig, kind)
        await rig.sleep(10 * HOUR)
        await judge(rig, kind, STEADY)


@pytest.mark.parametrize("kind", TOKENS)
async def test_a_predecessor_that_somebody_deleted_ends_like_any_other(kind):
    async with Rig() as rig:
        first = await rotating(rig, kind)
        await rig.sleep(101 * HOUR)
        await rig.outside.of(KINDS[kind].api).raw.delete(first)
        await rig.resync(kind)
        assert rig.ready(kind)
        await rig.sleep(10 * HOUR)
        await judge(rig, kind, STEADY)


@pytest.mark.parametrize("kind", TOKENS)
async def test_deleting_during_an_overlap_deletes_both(kind):
    async with Rig() as rig:
        await rotating(rig, kind)
        await rig.sleep(101 * HOUR)
        assert len(ours(rig, kind)) == 2
        rig.delete(kind)
        await rig.settle()
        await judge(rig, kind, Scenario("gone", None, None, End.GONE))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", TOKENS)
async def test_a_rotation_that_is_asked_for_happens_once_for_each_value(kind):
    async with Rig() as rig:
        rig.sample(kind, rotation=None)
        await rig.settle()
        await foreign(rig, kind)
        seen = [rig.id(kind)]
        for value in ("2026-01-01T00:00:00Z", "again"):
            rig.annotate(kind, rotate_requested_at=value)
            await rig.settle()
            seen.append(rig.id(kind))
            assert rig.status(kind)["lastHandledRotateAt"] == value
            rig.forget()
            await rig.restart()
            await rig.settle()
            await rig.resync(kind)
            assert [effect_of(call) for call in rig.calls if not call.startswith("GET")] == []
        assert len(set(seen)) == 3
        await judge(rig, kind, STEADY)


@pytest.mark.parametrize("kind", TOKENS)
async def test_a_rotation_that_is_asked_for_keeps_the_overlap_that_the_spec_gives(kind):
    async with Rig() as rig:
        first = await rotating(rig, kind)
        old = held(rig, kind)["token"]
        rig.annotate(kind, rotate_requested_at="now")
        await rig.settle()
        data = held(rig, kind)
        assert (data["previous-token"], data["previous-id"]) == (old, first)
        assert set(ours(rig, kind)) == {first, rig.id(kind)}
        await rig.sleep(10.1 * HOUR)
        await judge(rig, kind, STEADY)


@pytest.mark.parametrize("kind", TOKENS)
async def test_a_second_rotation_during_an_overlap_shows_the_newest_predecessor(kind):
    async with Rig() as rig:
        first = await rotating(rig, kind)
        rig.annotate(kind, rotate_requested_at="1")
        await rig.settle()
        second = rig.id(kind)
        await rig.sleep(5 * HOUR)
        rig.annotate(kind, rotate_requested_at="2")
        await rig.settle()
        third = rig.id(kind)
        assert ours(rig, kind) == [first, second, third]
        assert held(rig, kind)["previous-id"] == second
        await rig.sleep(6 * HOUR)
        assert ours(rig, kind) == [second, third]
        assert held(rig, kind)["previous-id"] == second
        await rig.sleep(6 * HOUR)
        await judge(rig, kind, STEADY)


@pytest.mark.parametrize("kind", TOKENS)
async def test_a_request_that_is_there_from_the_start_makes_one_token(kind):
    async with Rig() as rig:
        await made_needs(rig, kind)
        rig.apply(kind, "example", rig.sample(kind)["spec"], rotate_requested_at="early")
        await rig.settle()
        assert len(rig.remote(kind)) == 1
        assert rig.status(kind)["lastHandledRotateAt"] == "early"


@pytest.mark.parametrize("kind", TOKENS)
async def test_an_interval_that_is_added_counts_from_the_tokens_birth(kind):
    async with Rig() as rig:
        rig.sample(kind, rotation=None)
        await rig.settle()
        first = rig.id(kind)
        await rig.sleep(60 * HOUR)
        rig.edit(kind, **ROTATING)
        await rig.settle()
        assert rig.id(kind) == first
        await rig.sleep(39 * HOUR)
        assert rig.id(kind) == first
        await rig.sleep(2 * HOUR)
        assert rig.id(kind) != first


@pytest.mark.parametrize("kind", TOKENS)
@pytest.mark.parametrize("moment", ["the POST", "the Secret"])
async def test_a_crash_in_a_rotation_keeps_the_overlap(kind, moment):
    """Users of the old token have the time that they were promised, whenever the operator died."""
    async with Rig() as rig:
        first = await rotating(rig, kind)
        old = held(rig, kind)["token"]
        rig.effects.fates = {len(rig.effects.log) + {"the POST": 2, "the Secret": 3}[moment]: Fate.DIE_AFTER}
        await rig.sleep(100.1 * HOUR)
        assert rig.deaths == 1
        data = held(rig, kind)
        assert rig.ready(kind), rig.message(kind)
        assert data["id"] == rig.id(kind) != first
        assert (data["previous-token"], data["previous-id"]) == (old, first)
        assert ours(rig, kind) == [first, rig.id(kind)]
        assert opened_by(rig, old) == first
        await rig.sleep(9 * HOUR)
        assert opened_by(rig, old) == first
        await rig.sleep(1.5 * HOUR)
        await judge(rig, kind, STEADY)


@pytest.mark.parametrize("kind", TOKENS)
@pytest.mark.parametrize("effect", [1, 2, 3, 4])
async def test_a_crash_in_a_rotation_that_was_asked_for_ends_with_one_successor(kind, effect):
    async with Rig() as rig:
        first = await rotating(rig, kind)
        old = held(rig, kind)["token"]
        rig.effects.fates = {len(rig.effects.log) + effect: Fate.DIE_AFTER}
        rig.annotate(kind, rotate_requested_at=rig.world.now().isoformat())
        await rig.settle()
        assert rig.deaths == 1
        posts = [sent for sent in rig.sent if sent.method == "POST"]
        assert len(posts) == (2 if effect == 2 else 1), "what is in the Secret is a rotation that happened"
        data = held(rig, kind)
        assert (data["previous-token"], data["previous-id"]) == (old, first)
        assert opened_by(rig, data["token"]) == rig.id(kind)
        assert ours(rig, kind) == [first, rig.id(kind)]
        await rig.sleep(10.1 * HOUR)
        await judge(rig, kind, STEADY)
