"""What a schedule or the state machine once found, kept as plain cases. Each says what went wrong."""

from __future__ import annotations

from datetime import timedelta

import pytest

from doubles import adoptions, lives, unmarked
from doubles.crashes import begun, judge, survive
from doubles.effects import Fate
from doubles.foreign import foreign
from doubles.hands import NAMESPACE
from doubles.rig import GRACE_SECONDS, Rig
from doubles.schedules import PAUSED, Disturbance
from edge_operator.engine import marker
from edge_operator.kinds import KINDS

from .test_policies import adopted
from .test_tokens import HOUR, ROTATING, TOKENS

ISSUED_FOR_A_DAY = "SSHUserCertificate"


def scenario(kind: str, name: str) -> lives.Scenario:
    return next(s for s in (*lives.of(kind), *adoptions.of(kind), *unmarked.of(kind)) if s.name == name)


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


# Adoption ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["adopted and deleted", "adopted and deleted, unmarked"])
@pytest.mark.parametrize("kind", KINDS)
async def test_what_was_about_to_be_adopted_is_deleted_with_its_resource(kind, name):
    """It stayed, and an event said that there was none; without markers a creation was asked about that never was."""
    await survive(await begun(kind, scenario(kind, name)), ((1, Fate.DIE_AFTER),))


@pytest.mark.parametrize("kind", KINDS)
async def test_an_adopted_object_whose_status_was_wiped_is_deleted_with_its_resource(kind):
    async with Rig() as rig:
        await adoptions._adopted(kind, rig)
        rig.api.patch_status((kind, NAMESPACE, "example"), None, dict.fromkeys(rig.status(kind)), "user")
        rig.delete(kind)
        await rig.settle()
        assert not rig.exists(kind)
        assert len(rig.remote(kind)) == 3, "those of others"


async def test_a_route_that_was_about_to_be_adopted_goes_by_its_edge_whatever_names_it():
    """By the edge's id, or by its name; without either the route cannot be there."""
    async with Rig() as rig:
        await adoptions._adopted("HTTPSRoute", rig)
        rig.edit("HTTPSRoute", edge={"id": rig.id("HTTPSEdge")})
        rig.api.patch_status(
            ("HTTPSRoute", NAMESPACE, "example"), None, dict.fromkeys(rig.status("HTTPSRoute")), "user"
        )
        rig.delete("HTTPSRoute")
        await rig.settle()
        assert len(rig.remote("HTTPSRoute")) == 3, "those of others"


@pytest.mark.parametrize("kind", KINDS)
async def test_the_first_change_of_an_adopted_object_marks_it_however_late_it_is(kind):
    """Only what differed when it was adopted was marked; an edit of later left it without an owner for ever."""
    life = scenario(kind, "adopted, changed")
    async with Rig() as rig:
        await life.prepare(rig)
        await life.act(rig)
        await rig.settle()
        (there,) = [doc for doc in rig.remote(kind) if doc["id"] == rig.id(kind)]
        _, owner = marker.split(there["metadata"])
        assert owner is not None
        assert (owner.uid, owner.nonce) == (rig.get(kind)["metadata"]["uid"], rig.status(kind)["nonce"])


async def test_an_adoption_asks_nobody_about_a_creation_though_its_status_was_edited():
    """Without markers a claim that is not the recorded one meant a creation that only a person can tell of."""
    async with Rig() as rig:
        rig.marked = False
        await adoptions._adopted("TLSEdge", rig)
        rig.api.patch_status(("TLSEdge", NAMESPACE, "example"), None, {"nonce": None}, "user")
        rig.edit("TLSEdge", description="edited")
        await rig.settle()
        assert rig.ready("TLSEdge"), rig.message("TLSEdge")


@pytest.mark.parametrize("kind", KINDS)
async def test_what_an_observed_resource_differs_in_stays_said_while_it_is_paused_and_after(kind):
    """It was forgotten when it was paused, and afterwards all was said to be as the spec says."""
    await survive(await begun(kind, scenario(kind, "adopted, observed")), ((1, PAUSED),))


async def test_what_was_managed_and_is_only_observed_now_is_not_deleted():
    """Nothing is written under Observe, as its status says; the object was deleted all the same."""
    async with Rig() as rig:
        id_ = await adopted(rig, "TLSEdge", description="changed")
        rig.edit("TLSEdge", managementPolicy="Observe")
        rig.delete("TLSEdge")
        await rig.settle()
        assert not rig.exists("TLSEdge")
        assert [doc["id"] for doc in rig.remote("TLSEdge")] == [id_]
        assert f"{id_} stays in the account: under managementPolicy Observe" in rig.events()[-1].message


async def test_what_is_retained_before_it_is_known_is_not_called_none():
    async with Rig() as rig:
        rig.faults({"kind": "cut", "when": "after", "method": "POST"})
        rig.sample("AgentIngress", deletionPolicy="Retain")
        await rig.settle(0)
        rig.delete("AgentIngress")
        await rig.settle()
        assert not rig.exists("AgentIngress")
        assert rig.events()[-1].message == (
            "a remote object, if there is one, stays in the account, as deletionPolicy says"
        )
