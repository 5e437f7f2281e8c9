"""A CRD that is removed takes its resources with it, and leaves what they made where it is."""

from __future__ import annotations

import pytest

from doubles.rig import Rig
from edge_operator.kinds import KINDS

from .test_life import made


@pytest.mark.parametrize("kind", KINDS)
async def test_a_resource_that_goes_with_its_definition_leaves_its_object_and_says_so(kind):
    async with Rig() as rig:
        await made(rig, kind)
        id_, before = rig.id(kind), rig.remote(kind)
        rig.api.remove_definition(kind)
        await rig.settle()
        assert not rig.exists(kind)
        assert (rig.calls, rig.remote(kind)) == ([], before)
        (event,) = [e for e in rig.events(f"{kind}/example") if e.reason == "Retained"]
        assert event.message == (
            f"{id_} stays in the account, because the CustomResourceDefinition {KINDS[kind].crd} is being removed, and "
            "with it every resource; spec.externalID adopts it again"
        )
        if KINDS[kind].outputs:
            secret = rig.published(f"example-{kind.lower()}")
            assert secret is not None
            assert "ownerReferences" not in secret["metadata"]


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.fault("CRDs are removed under living resources")
async def test_all_definitions_removed_at_once_leave_everything_in_the_account(order):
    async with Rig() as rig:
        for kind in KINDS:
            rig.sample(kind)
        await rig.settle()
        before = rig.everything_remote()
        rig.forget()
        for kind in [*KINDS][::order]:
            rig.api.remove_definition(kind)
        await rig.settle()
        assert [key for key in rig.api.objects if key[0] in KINDS] == []
        assert (rig.calls, rig.everything_remote()) == ([], before)


async def test_the_definition_of_what_others_still_use_can_be_removed():
    async with Rig() as rig:
        await made(rig, "TLSEdge")
        rig.api.remove_definition("WeightedBackend")
        await rig.settle()
        assert not rig.exists("WeightedBackend")
        assert len(rig.remote("WeightedBackend")) == 1
        assert rig.exists("TLSEdge")


async def test_what_was_deleted_before_its_definition_is_deleted_as_it_was_asked_for():
    async with Rig() as rig:
        await made(rig, "WeightedBackend")
        rig.faults({"kind": "status", "status": 503})
        rig.delete("WeightedBackend")
        await rig.settle(5)
        rig.world.advance(2)
        rig.api.remove_definition("WeightedBackend")
        rig.faults()
        await rig.settle()
        assert not rig.exists("WeightedBackend")
        assert rig.remote("WeightedBackend") == []


async def test_an_unknown_creation_is_not_searched_for_when_the_definition_goes():
    async with Rig() as rig:
        rig.apply("WeightedBackend", "example", {"backends": [{"ref": {"id": "bkdhr_1"}, "weight": 1}]})
        rig.faults({"kind": "cut", "when": "after", "method": "POST", "count": 1})
        await rig.settle(1)
        rig.forget()
        rig.api.remove_definition("WeightedBackend")
        await rig.settle(0)
        assert not rig.exists("WeightedBackend")
        assert rig.calls == []
        assert rig.events()[-1].message.startswith("a remote object, if there is one, stays in the account")


async def test_a_paused_resource_holds_the_removal_up_and_says_so():
    async with Rig() as rig:
        await made(rig, "TLSEdge")
        rig.annotate("TLSEdge", paused="true")
        rig.api.remove_definition("TLSEdge")
        await rig.settle()
        assert rig.message("TLSEdge") == "paused by annotation; take it off to go on"
        rig.annotate("TLSEdge", paused=None)
        await rig.settle()
        assert not rig.exists("TLSEdge")
        assert len(rig.remote("TLSEdge")) == 1
