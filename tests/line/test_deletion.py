"""Deletion: who waits for whom, what stays, and that nothing is left."""

from __future__ import annotations

import itertools

import pytest

from doubles.rig import Rig
from edge_operator.kinds import KINDS

from .test_life import made

APPLICATION = ("HTTPSRoute", "TLSEdge", "SSHHostCertificate", "EventDestination")


async def test_a_deletion_waits_for_dependants_and_names_them():
    async with Rig() as rig:
        await made(rig, "TLSEdge")
        rig.delete("WeightedBackend")
        await rig.settle()
        assert rig.reason("WeightedBackend") == "DeletionBlocked"
        assert rig.message("WeightedBackend") == "still used by TLSEdge/example; delete them first"
        assert rig.condition("WeightedBackend", type_="Reconciling") is not None
        assert rig.calls == []
        assert rig.reason("TLSEdge") == "ReferenceNotReady"
        rig.forget()
        rig.delete("TLSEdge")
        await rig.settle()
        assert not rig.exists("WeightedBackend")
        assert [call.split("/")[2] for call in rig.calls] == ["tls", "weighted"]


async def test_at_most_five_dependants_are_named():
    async with Rig() as rig:
        rig.apply("FailoverBackend", "child", {"backends": [{"id": "bkdhr_1"}]})
        for number in range(7):
            ref = [{"kind": "FailoverBackend", "name": "child"}]
            rig.apply("FailoverBackend", f"parent-{number}", {"backends": ref})
        await rig.settle()
        rig.delete("FailoverBackend", "child")
        await rig.settle()
        named = ", ".join(f"FailoverBackend/parent-{number}" for number in range(5))
        assert rig.message("FailoverBackend", "child") == f"still used by {named} and 2 more; delete them first"


@pytest.mark.parametrize("order", [1, -1])
async def test_a_whole_application_deleted_at_once_goes_in_order_and_leaves_nothing(order):
    async with Rig() as rig:
        for kind in APPLICATION:
            rig.sample(kind)
        await rig.settle()
        rig.forget()
        keys = [key for key in rig.api.objects if key[0] in KINDS][::order]
        for key in keys:
            rig.api.delete(key)
        await rig.settle()
        assert [key for key in rig.api.objects if key[0] in KINDS] == []
        assert rig.everything_remote() == []
        assert {call.split()[0] for call in rig.calls} == {"DELETE"}
        assert {call.split()[2] for call in rig.calls} == {"204"}, "nothing was tried that had to fail"
        assert len(rig.calls) == len(keys)


async def test_every_order_of_deleting_two_leaves_nothing():
    for first, second in itertools.permutations(["HTTPSEdge", "HTTPSRoute", "WeightedBackend"], 2):
        async with Rig() as rig:
            await made(rig, "HTTPSRoute")
            for kind in (first, second):
                rig.delete(kind)
                await rig.settle()
            rest = [kind for kind in ("HTTPSRoute", "HTTPSEdge", "WeightedBackend") if rig.exists(kind)]
            for kind in rest:
                if not rig.get(kind)["metadata"].get("deletionTimestamp"):
                    rig.delete(kind)
            await rig.settle()
            assert rig.remote("HTTPSRoute") == rig.remote("HTTPSEdge") == rig.remote("WeightedBackend") == []


@pytest.mark.parametrize("kind", KINDS)
async def test_retain_leaves_the_object_and_the_secret(kind):
    async with Rig() as rig:
        await made(rig, kind)
        rig.edit(kind, deletionPolicy="Retain")
        await rig.settle()
        assert rig.calls == []
        id_ = rig.id(kind)
        rig.delete(kind)
        await rig.settle()
        assert not rig.exists(kind)
        assert rig.calls == []
        assert [doc["id"] for doc in rig.remote(kind)] == [id_]
        assert rig.events()[-1].reason == "Retained"
        if KINDS[kind].outputs:
            secret = rig.published(f"example-{kind.lower()}")
            assert secret is not None
            assert "ownerReferences" not in secret["metadata"]


@pytest.mark.parametrize("kind", KINDS)
async def test_an_abandoned_resource_goes_at_once_and_says_so(kind):
    async with Rig() as rig:
        await made(rig, kind)
        id_ = rig.id(kind)
        rig.faults({"kind": "status", "status": 500})
        rig.delete(kind)
        await rig.settle(5)
        assert rig.reason(kind) == "ServiceUnavailable"
        rig.annotate(kind, abandon="true")
        await rig.settle()
        assert not rig.exists(kind)
        rig.faults()
        assert [doc["id"] for doc in rig.remote(kind)] == [id_]
        (event,) = [e for e in rig.events() if e.reason == "Abandoned"]
        assert id_ in event.message
        assert event.warning


async def test_a_deletion_under_pause_waits_and_says_so():
    async with Rig() as rig:
        await made(rig, "TLSEdge")
        rig.annotate("TLSEdge", paused="true")
        rig.delete("TLSEdge")
        await rig.settle()
        assert rig.exists("TLSEdge")
        assert (rig.reason("TLSEdge"), rig.message("TLSEdge")) == (
            "DeletionBlocked",
            "paused by annotation; take it off to go on",
        )
        rig.annotate("TLSEdge", paused=None)
        await rig.settle()
        assert not rig.exists("TLSEdge")
        assert rig.remote("TLSEdge") == []


async def test_an_object_that_the_service_still_uses_blocks_and_goes_when_it_is_free():
    async with Rig() as rig:
        await made(rig, "WeightedBackend")
        body = {"hostports": ["manual.example.com:443"], "backend": {"backend_id": rig.id("WeightedBackend")}}
        user = await rig.outside.tls_edges.raw.create(body)
        rig.delete("WeightedBackend")
        await rig.settle()
        assert rig.reason("WeightedBackend") == "DeletionBlocked"
        assert user["id"] in rig.message("WeightedBackend")
        await rig.outside.tls_edges.raw.delete(user["id"])
        await rig.sleep(400)
        assert not rig.exists("WeightedBackend")


async def test_one_that_is_gone_already_is_deleted_without_a_word():
    async with Rig() as rig:
        await made(rig, "TLSEdge")
        await rig.outside.tls_edges.raw.delete(rig.id("TLSEdge"))
        rig.delete("TLSEdge")
        await rig.settle()
        assert not rig.exists("TLSEdge")


async def test_a_resource_that_never_got_an_object_goes_at_once():
    async with Rig() as rig:
        rig.sample("TLSEdge", backend={"ref": {"kind": "WeightedBackend", "name": "absent"}})
        await rig.settle()
        rig.delete("TLSEdge")
        await rig.settle()
        assert not rig.exists("TLSEdge")
        assert rig.calls == [call for call in rig.calls if "/edges" not in call]


async def test_a_deletion_right_after_an_unknown_creation_searches_first():
    """No id is no proof that there is nothing to delete."""
    async with Rig() as rig:
        rig.apply("WeightedBackend", "example", {"backends": [{"ref": {"id": "bkdhr_1"}, "weight": 1}]})
        rig.faults({"kind": "cut", "when": "after", "method": "POST", "count": 1})
        await rig.settle(1)
        assert len(rig.remote("WeightedBackend")) == 1
        assert "id" not in rig.status("WeightedBackend")
        rig.delete("WeightedBackend")
        await rig.settle()
        assert rig.remote("WeightedBackend") == []
        assert not rig.exists("WeightedBackend")
