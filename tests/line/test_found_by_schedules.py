"""What a schedule or the state machine once found, kept as plain cases. Each says what went wrong."""

from __future__ import annotations

from datetime import timedelta

import pytest

from doubles import lives
from doubles.crashes import begun, judge, survive
from doubles.effects import Fate
from doubles.foreign import foreign
from doubles.rig import GRACE_SECONDS, Rig
from doubles.schedules import PAUSED, Disturbance
from edge_operator.kinds import KINDS

from .test_tokens import HOUR, ROTATING, TOKENS

ISSUED_FOR_A_DAY = "SSHUserCertificate"


def scenario(kind: str, name: str) -> lives.Scenario:
    return next(s for s in lives.of(kind) if s.name == name)


@pytest.mark.parametrize("kind", TOKENS)
async def test_a_paused_resource_whose_predecessor_is_due_is_not_tried_again_without_end(kind):
    """Its due time had passed, so that the next pass was due at once, and so was the one after it."""
    await survive(await begun(kind, scenario(kind, "rotation asked for")), ((4, PAUSED),))


@pytest.mark.parametrize("behind", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_claim_is_not_used_again_on_the_word_of_a_resource_that_was_read_too_late(kind, behind):
    """The cache still showed the claim without its id, and the object had vanished: two were made."""
    await survive(await begun(kind, scenario(kind, "vanish")), ((3, Fate.DIE_AFTER),), stale=behind)


@pytest.mark.parametrize("kind", TOKENS)
async def test_a_token_in_use_is_not_deleted_on_the_word_of_a_resource_that_was_read_too_late(kind):
    """The object was only found, as it seemed, and due for rotation: it made way, in the middle of its life."""
    await survive(await begun(kind, scenario(kind, "rotation")), ((3, Fate.DIE_AFTER),), stale=1)


TWICE: tuple[tuple[Disturbance, Disturbance], ...] = (
    (Fate.DIE_AFTER, Fate.CUT_AFTER),
    (Fate.GARBAGE_AFTER, Fate.CUT_AFTER),
    (Fate.DIE_AFTER, Fate.FAULT_AFTER),
    (Fate.DIE_AFTER, Fate.CUT_BEFORE),
)


@pytest.mark.parametrize(("first", "second"), TWICE, ids=str)
@pytest.mark.parametrize("kind", TOKENS)
@pytest.mark.parametrize("later", [4, 5, 6, 7])
async def test_what_has_to_make_way_is_not_recorded_whatever_becomes_of_its_deletion(kind, first, second, later):
    """The answer to its DELETE was lost, its id was recorded as the current one, and it was gone."""
    life = await begun(kind, scenario(kind, "rotation asked for"))
    await survive(life, ((2, first), (later, second)), stale=1)


async def test_a_clock_far_ahead_of_the_services_issues_no_certificate_after_the_other():
    """By our clock each one was due for renewal when it was made, and so was its successor, without end."""
    async with Rig() as rig:
        rig.world.step(timedelta(days=3))
        rig.sample(ISSUED_FOR_A_DAY)
        await rig.settle()
        assert rig.reason(ISSUED_FOR_A_DAY) == "LifetimeTooShort"
        assert len(rig.remote(ISSUED_FOR_A_DAY)) == 1
        rig.world.step(timedelta(days=-3))
        await rig.sleep(2 * GRACE_SECONDS)
        await foreign(rig, ISSUED_FOR_A_DAY)
        rig.wake_all()
        await rig.settle()
        await judge(rig, ISSUED_FOR_A_DAY)


@pytest.mark.parametrize("kind", TOKENS)
async def test_a_clock_far_ahead_of_the_services_rotates_no_token_after_the_other(kind):
    async with Rig() as rig:
        rig.world.step(timedelta(hours=200))
        rig.sample(kind, **ROTATING)
        await rig.settle()
        assert rig.reason(kind) == "LifetimeTooShort"
        assert len(rig.remote(kind)) == 1
        rig.world.step(timedelta(hours=-200))
        await rig.sleep(HOUR)
        await foreign(rig, kind)
        rig.wake_all()
        await rig.settle()
        await judge(rig, kind)
