"""One object has one resource: who made it, or who adopted it first; the others say so and touch nothing."""

from __future__ import annotations

import pytest

from doubles.rig import Rig
from edge_operator.engine import marker
from edge_operator.kinds import KINDS

from .test_life import made
from .test_policies import CHANGED, adopted

DELETE = {"deletionPolicy": "Delete"}


async def found_elsewhere(rig: Rig) -> str:
    """An object that somebody made by hand; its id."""
    made_by_hand = await rig.outside.weighted_backends.raw.create({"backends": {}, "metadata": "mine"})
    return str(made_by_hand["id"])


def adopt(rig: Rig, name: str, id_: str, **members: object) -> None:
    spec = {"externalID": id_, "metadata": "mine", "backends": [{"ref": {"id": "bkdhr_1"}, "weight": 1}]}
    rig.apply("WeightedBackend", name, {**spec, **DELETE, **members})


@pytest.mark.parametrize("first", ["a", "b"])
@pytest.mark.fault("two resources adopt one object")
async def test_of_two_with_one_external_id_the_younger_stalls_and_names_the_elder(first):
    async with Rig() as rig:
        id_, second = await found_elsewhere(rig), "ab".replace(first, "")
        adopt(rig, first, id_)
        await rig.settle()
        rig.world.advance(2)
        adopt(rig, second, id_)
        await rig.settle()
        assert rig.ready("WeightedBackend", first)
        assert rig.reason("WeightedBackend", second) == "OwnershipConflict"
        assert rig.message("WeightedBackend", second) == (
            f"spec.externalID: {id_} belongs to WeightedBackend default/{first}, which adopted it first; "
            "delete one of the two (deleting this one leaves the object alone)"
        )
        await rig.restart()
        rig.forget()
        await rig.settle()
        assert {call.split()[0] for call in rig.calls} <= {"GET"}
        assert rig.writes == []


async def test_of_two_of_one_second_the_first_by_name_has_it_whoever_was_seen_first():
    async with Rig() as rig:
        id_ = await found_elsewhere(rig)
        adopt(rig, "b", id_)
        await rig.settle(0)
        assert rig.ready("WeightedBackend", "b")
        adopt(rig, "a", id_)
        await rig.settle()
        assert rig.ready("WeightedBackend", "a")
        assert rig.reason("WeightedBackend", "b") == "OwnershipConflict"
        rig.delete("WeightedBackend", "b")
        await rig.settle()
        assert not rig.exists("WeightedBackend", "b")
        assert [doc["id"] for doc in rig.remote("WeightedBackend")] == [id_]
        assert rig.events()[-1].reason == "Retained"
        assert rig.events()[-1].message == (f"{id_} stays in the account: it belongs to WeightedBackend default/a")
        assert rig.ready("WeightedBackend", "a")


async def test_an_object_marked_by_a_living_resource_that_lost_its_status_is_not_adopted():
    """Its index entry has no id meanwhile; the marker says whose it is."""
    async with Rig() as rig:
        await made(rig, "WeightedBackend")
        id_ = rig.id("WeightedBackend")
        rig.annotate("WeightedBackend", paused="true")
        await rig.settle()
        rig.api.patch_status(("WeightedBackend", "default", "example"), None, {"id": None}, "user")
        adopt(rig, "second", id_)
        await rig.settle()
        assert rig.reason("WeightedBackend", "second") == "OwnershipConflict"
        assert rig.message("WeightedBackend", "second") == (
            f"spec.externalID: {id_} belongs to default/example, as its marker says"
        )


async def test_deleting_the_younger_touches_nothing_and_the_elder_goes_as_its_policy_says():
    async with Rig() as rig:
        id_ = await found_elsewhere(rig)
        adopt(rig, "a", id_)
        await rig.settle()
        adopt(rig, "b", id_)
        await rig.settle()
        rig.forget()
        rig.delete("WeightedBackend", "b")
        await rig.settle()
        assert rig.calls == []
        adopt(rig, "b", id_)
        await rig.settle()
        rig.edit("WeightedBackend", "a", deletionPolicy="Retain")
        await rig.settle()
        rig.delete("WeightedBackend", "a")
        await rig.settle()
        assert rig.ready("WeightedBackend", "b"), "the next one has it when the first one went"
        assert [doc["id"] for doc in rig.remote("WeightedBackend")] == [id_]


@pytest.mark.parametrize("kind", CHANGED)
async def test_what_another_resource_made_is_not_adopted_although_its_marker_was_lost(kind):
    async with Rig() as rig:
        await made(rig, kind)
        id_ = rig.id(kind)
        path = {"edge_id": rig.id("HTTPSEdge")} if kind == "HTTPSRoute" else {}
        collection = rig.outside.of(KINDS[kind].api).raw
        await collection.update(id_, {"metadata": ""}, **path)
        rig.apply(kind, "second", {**rig.get(kind)["spec"], "externalID": id_, **DELETE, "description": "second's"})
        await rig.settle()
        assert rig.reason(kind, "second") == "OwnershipConflict"
        assert f"{id_} belongs to {kind} default/example, which made it" in rig.message(kind, "second")
        rig.delete(kind, "second")
        await rig.settle()
        assert [doc["id"] for doc in rig.remote(kind)] == [id_]


async def test_what_a_dead_resource_left_may_be_adopted():
    async with Rig() as rig:
        await made(rig, "TLSEdge")
        id_, spec = rig.id("TLSEdge"), rig.get("TLSEdge")["spec"]
        rig.annotate("TLSEdge", abandon="true")
        rig.delete("TLSEdge")
        await rig.settle()
        rig.apply("TLSEdge", "heir", {**spec, "externalID": id_, **DELETE})
        await rig.settle()
        assert rig.ready("TLSEdge", "heir"), rig.message("TLSEdge", "heir")
        assert rig.id("TLSEdge", "heir") == id_


async def test_an_object_that_another_cluster_marked_meanwhile_is_left_to_it():
    """Two operators that each heal their marker would fight for ever."""
    async with Rig() as rig:
        await made(rig, "TLSEdge")
        id_ = rig.id("TLSEdge")
        who = marker.owner("another-cluster", "99999999-0000-4000-8000-000000000000", "n", "prod", "db")
        await rig.outside.tls_edges.raw.update(id_, {"metadata": marker.attach("", who), "description": "theirs"})
        await rig.resync("TLSEdge")
        assert rig.reason("TLSEdge") == "OwnershipConflict"
        assert rig.message("TLSEdge").startswith(f"{id_} is marked as that of prod/db of another cluster (another-")
        rig.forget()
        rig.delete("TLSEdge")
        await rig.settle()
        assert not rig.exists("TLSEdge")
        assert [call.split()[0] for call in rig.calls] == ["GET"]
        assert [doc["description"] for doc in rig.remote("TLSEdge")] == ["theirs"]


@pytest.mark.fault("a status is edited to name the object of another resource")
async def test_a_status_that_was_edited_to_name_anothers_object_harms_neither():
    async with Rig() as rig:
        await made(rig, "WeightedBackend")
        spec = rig.get("WeightedBackend")["spec"]
        rig.apply("WeightedBackend", "second", spec)
        await rig.settle()
        theirs, own = rig.id("WeightedBackend"), rig.id("WeightedBackend", "second")
        key = ("WeightedBackend", "default", "second")
        rig.api.patch_status(key, None, {"id": theirs}, "user")
        await rig.resync("WeightedBackend")
        assert rig.ready("WeightedBackend", "second"), rig.message("WeightedBackend", "second")
        assert rig.id("WeightedBackend", "second") == own
        assert {doc["id"] for doc in rig.remote("WeightedBackend")} == {theirs, own}
        rig.api.patch_status(key, None, {"id": theirs}, "user")
        rig.delete("WeightedBackend", "second")
        await rig.settle()
        assert not rig.exists("WeightedBackend", "second")
        assert [doc["id"] for doc in rig.remote("WeightedBackend")] == [theirs]
        assert rig.ready("WeightedBackend")


async def test_an_adopted_object_is_still_deleted_where_the_policy_says_so():
    async with Rig() as rig:
        await adopted(rig, "TLSEdge", deletionPolicy="Delete")
        rig.delete("TLSEdge")
        await rig.settle()
        assert rig.remote("TLSEdge") == []
