"""A connection without owner markers, and one that is changed, while it is not known whether an object was made."""

from __future__ import annotations

import pytest

from doubles.rig import Rig
from edge_operator.declare import Issued, Token
from edge_operator.engine import marker, state
from edge_operator.kinds import KINDS

from .test_answers import needs_only, status
from .test_life import made

KIND = "TLSEdge"
REPLACED = [kind for kind in KINDS if isinstance(KINDS[kind].lifecycle, Token | Issued)]


async def lost(rig: Rig, kind: str = KIND, *, marked: bool = False, arrives: bool = True) -> None:
    """A creation whose answer is lost; the object is there, or it is not."""
    rig.marked = marked
    await needs_only(rig, kind)
    rig.faults(status(502, method="POST", when="after" if arrives else "before", count=1))
    rig.sample(kind)
    await rig.settle(0)
    assert len(rig.remote(kind)) == arrives


async def unknown(rig: Rig, kind: str = KIND, *, arrives: bool = True) -> None:
    """The same, as it ends without markers."""
    await lost(rig, kind, arrives=arrives)
    await rig.settle()
    assert rig.reason(kind) == "CreateOutcomeUnknown", rig.message(kind)


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_lost_answer_is_left_to_a_person_and_nothing_is_made_twice(kind, restarted):
    async with Rig() as rig:
        await unknown(rig, kind)
        if restarted:
            await rig.restart()
        rig.edit(kind, description="edited meanwhile")
        await rig.settle()
        assert rig.reason(kind) == "CreateOutcomeUnknown"
        assert f"take the annotation {state.CLAIM} off" in rig.message(kind)
        assert len(rig.remote(kind)) == 1


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
async def test_without_its_claim_it_is_made_anew(kind, restarted):
    async with Rig() as rig:
        await unknown(rig, kind, arrives=False)
        if restarted:
            await rig.restart()
        rig.annotate(kind, claim=None)
        await rig.settle()
        assert rig.ready(kind), rig.message(kind)
        (there,) = rig.remote(kind)
        assert there["id"] == rig.id(kind)
        assert marker.split(there.get("metadata") or "")[1] is None


@pytest.mark.parametrize("kind", KINDS)
async def test_deletion_waits_for_the_same_word_of_a_person(kind):
    async with Rig() as rig:
        await unknown(rig, kind, arrives=False)
        rig.delete(kind)
        await rig.settle()
        assert rig.reason(kind) == "CreateOutcomeUnknown"
        rig.annotate(kind, claim=None)
        await rig.settle()
        assert rig.api.get((kind, "default", "example")) is None


@pytest.mark.parametrize("kind", REPLACED)
async def test_a_replacement_whose_outcome_is_unknown_leaves_the_old_one_in_use(kind):
    async with Rig() as rig:
        rig.marked = False
        await made(rig, kind)
        old = rig.id(kind)
        rig.faults(status(502, method="POST", when="before", count=1))
        rig.annotate(kind, rotate_requested_at="2026-01-01T00:00:00Z")
        await rig.settle()
        assert rig.reason(kind) == "CreateOutcomeUnknown", rig.message(kind)
        assert rig.id(kind) == old
        assert [doc["id"] for doc in rig.remote(kind)] == [old]
        rig.annotate(kind, claim=None)
        await rig.settle()
        assert rig.ready(kind), rig.message(kind)
        assert rig.id(kind) != old


@pytest.mark.parametrize("kind", KINDS)
async def test_markers_that_are_switched_on_say_nothing_of_what_was_made_without(kind):
    """A search by marker would not find it, and it would be made twice."""
    async with Rig() as rig:
        await unknown(rig, kind)
        rig.marked = True
        await rig.restart()
        await rig.settle()
        assert rig.reason(kind) == "CreateOutcomeUnknown", rig.message(kind)
        assert len(rig.remote(kind)) == 1


@pytest.mark.parametrize("kind", KINDS)
async def test_what_was_made_with_a_marker_is_found_though_they_are_switched_off(kind):
    async with Rig() as rig:
        await lost(rig, kind, marked=True)
        rig.marked = False
        await rig.settle()
        assert rig.ready(kind), rig.message(kind)
        assert [doc["id"] for doc in rig.remote(kind)] == [rig.id(kind)]


@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_switch_in_good_times_makes_nothing_anew_and_comes_to_rest(kind, after):
    async with Rig() as rig:
        rig.marked = not after
        await made(rig, kind)
        id_ = rig.id(kind)
        rig.marked = after
        await rig.resync(kind)
        await rig.resync(kind)
        assert rig.ready(kind), rig.message(kind)
        assert [doc["id"] for doc in rig.remote(kind)] == [id_]
        rig.forget()
        await rig.resync(kind)
        assert not [call for call in rig.calls if not call.startswith("GET")]
        rig.delete(kind)
        await rig.settle()
        assert rig.remote(kind) == []


async def test_a_refused_creation_is_tried_again_whatever_the_markers_are_now():
    async with Rig() as rig:
        rig.marked = False
        await needs_only(rig, KIND)
        rig.faults(status(400, method="POST", count=1))
        rig.sample(KIND)
        await rig.settle()
        assert rig.reason(KIND) == "InvalidSpec"
        rig.marked = True
        rig.edit(KIND, description="better")
        await rig.settle()
        assert rig.ready(KIND), rig.message(KIND)
        assert marker.split(rig.remote(KIND)[0]["metadata"])[1] is not None


# A connection that is changed ------------------------------------------------------------------


@pytest.mark.parametrize("arrives", [False, True])
@pytest.mark.parametrize("kind", KINDS)
async def test_the_connection_is_fixed_once_a_creation_began(kind, arrives):
    """The object may be in the account of the first; a search in another one would find nothing and make a second."""
    async with Rig() as rig:
        await lost(rig, kind, marked=True, arrives=arrives)
        rig.edit(kind, connectionRef={"name": "another"})
        await rig.settle()
        assert rig.reason(kind) == "ImmutableFieldChanged", rig.message(kind)
        assert "through ClusterConnection 'default'" in rig.message(kind)
        assert len(rig.remote(kind)) == arrives
        rig.edit(kind, connectionRef=None)
        await rig.settle()
        assert rig.ready(kind), rig.message(kind)
        assert [doc["id"] for doc in rig.remote(kind)] == [rig.id(kind)]


async def test_the_connection_stays_fixed_though_the_status_is_wiped():
    async with Rig() as rig:
        await made(rig, KIND)
        found = rig.get(KIND)
        rig.api.patch_status((KIND, "default", found["metadata"]["name"]), None, dict.fromkeys(found["status"]), "user")
        rig.edit(KIND, connectionRef={"name": "another"})
        await rig.settle()
        assert rig.reason(KIND) == "ImmutableFieldChanged", rig.message(KIND)
        assert len(rig.remote(KIND)) == 1


async def test_deletion_goes_to_the_account_where_a_creation_began():
    async with Rig(accounts=2) as rig:
        await lost(rig, marked=True)
        rig.edit(KIND, connectionRef={"name": "second"})
        rig.delete(KIND)
        await rig.settle()
        assert rig.api.get((KIND, "default", "example")) is None
        assert rig.remote(KIND) == []
