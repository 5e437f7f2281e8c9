"""Two objects of one resource: a list finds the one too many, and only what is wholly ours goes."""

from __future__ import annotations

from typing import Any

import pytest

from doubles.rig import Rig
from edge_operator.engine import marker
from edge_operator.kinds import KINDS
from edge_operator.ports import Snapshot

from .test_answers import status
from .test_life import made
from .test_policies import adopted

HOST = "SSHHostCertificate"
MADE_BY_THE_SERVICE = {"id", "uri", "created_at", "routes"}


async def doubled(rig: Rig, kind: str, nonce: str | None = None, **change: Any) -> str:
    """Another object like the kind's, with its marker or one of another nonce; its id."""
    (doc,) = (d for d in rig.remote(kind) if d["id"] == rig.id(kind))
    body = {name: value for name, value in doc.items() if name not in MADE_BY_THE_SERVICE}
    user, owner = marker.split(doc["metadata"])
    assert owner is not None
    if nonce is not None:
        who = marker.owner(owner.cluster, owner.uid, nonce, "default", "example")
        body["metadata"] = marker.attach(user, who)
    path = {"edge_id": body.pop("edge_id")} if kind == "HTTPSRoute" else {}
    if kind == "HTTPSRoute":
        body |= {"match": "/other"}
    if "hostports" in body:
        body["hostports"] = ["other.example.com:443"]
    accepted = KINDS[kind].api.create.model_fields
    body = {n: v for n, v in body.items() if n in accepted and v is not None}
    answer = await rig.outside.of(KINDS[kind].api).raw.create({**body, **change}, **path)
    return str(answer["id"])


@pytest.mark.parametrize("nonce", [None, "older"])
@pytest.mark.parametrize("kind", ["WeightedBackend", "TLSEdge", HOST, "APIKey"])
@pytest.mark.fault("a second object of one resource comes to exist")
async def test_a_list_finds_a_further_object_deletes_it_and_says_so(kind, nonce):
    async with Rig() as rig:
        await made(rig, kind)
        before = rig.remote(kind)
        extra = await doubled(rig, kind, nonce)
        await rig.resync(kind)
        assert rig.remote(kind) == before
        assert [(e.reason, e.warning) for e in rig.events()] == [("DuplicateDeleted", True)]
        assert rig.events()[0].message == (
            f"deleted {extra}: marked as this resource's, and neither its object nor a predecessor"
        )
        assert rig.writes == []
        assert [(o.ready, o.duplicates) for k, o in rig.outcomes.items() if k[0] == kind] == [(True, 1)]
        assert sorted({call.split()[0] for call in rig.calls}) == ["DELETE", "GET"]
        rig.forget()
        await rig.resync(kind)
        assert (rig.events(), rig.writes) == ([], [])


async def test_a_further_route_is_found_in_its_edge():
    async with Rig() as rig:
        await made(rig, "HTTPSRoute")
        body = {"match_type": "exact_path", "match": "/other", "metadata": rig.remote("HTTPSRoute")[0]["metadata"]}
        await rig.outside.https_routes.raw.create(body, edge_id=rig.id("HTTPSEdge"))
        await rig.resync("HTTPSRoute")
        assert [doc["id"] for doc in rig.remote("HTTPSRoute")] == [rig.id("HTTPSRoute")]


async def test_what_is_not_wholly_ours_stays():
    """Another cluster's, another resource's, and one without a marker."""
    async with Rig() as rig:
        await made(rig, "WeightedBackend")
        uid = rig.get("WeightedBackend")["metadata"]["uid"]
        for who in (
            marker.owner("another-cluster", uid, "n", "default", "example"),
            marker.owner(rig.cluster.id, "99999999-0000-4000-8000-000000000000", "n", "default", "other"),
            None,
        ):
            body = {"backends": {}, "metadata": marker.attach("", who) if who else "mine"}
            await rig.outside.weighted_backends.raw.create(body)
        await rig.resync("WeightedBackend")
        assert len(rig.remote("WeightedBackend")) == 4
        assert {call.split()[0] for call in rig.calls} == {"GET"}
        assert rig.events() == []


async def test_nothing_goes_while_a_claim_is_unspent():
    """Its POST may be under way, and an older one's object may be the one that a dead process recorded nowhere."""
    async with Rig() as rig:
        await made(rig, HOST)
        extra = await doubled(rig, HOST, "older")
        rig.faults(status(400, method="POST"))
        rig.edit(HOST, principals=["web-9.example.com"])
        await rig.settle()
        assert rig.reason(HOST) == "InvalidSpec"
        await rig.resync(HOST)
        assert extra in [doc["id"] for doc in rig.remote(HOST)]


async def test_a_recorded_predecessor_stays_until_its_time_is_over():
    async with Rig() as rig:
        rig.sample("APIKey", rotation={"interval": "720h", "overlap": "1h"})
        await rig.settle()
        rig.annotate("APIKey", rotate_requested_at="now")
        await rig.settle(10)
        assert len(rig.remote("APIKey")) == 2
        rig.forget()
        listing = await rig.process.remote.listing(KINDS["APIKey"].api, rig.world.elapsed)
        (owned,) = listing.owned.values()
        assert len(owned) == 2
        await rig.reconcile(rig.get("APIKey"), Snapshot(listing.began, listing.objects[rig.id("APIKey")], owned))
        assert len(rig.remote("APIKey")) == 2
        assert rig.events() == []


async def test_paused_and_observed_resources_delete_nothing():
    async with Rig() as rig:
        await made(rig, "TLSEdge")
        extra = await doubled(rig, "TLSEdge")
        rig.annotate("TLSEdge", paused="true")
        await rig.settle()
        await rig.resync("TLSEdge")
        assert extra in [doc["id"] for doc in rig.remote("TLSEdge")]
    async with Rig() as rig:
        await adopted(rig, "TLSEdge", description="so that it is marked")
        rig.edit("TLSEdge", managementPolicy="Observe")
        await rig.settle()
        extra = await doubled(rig, "TLSEdge")
        await rig.resync("TLSEdge")
        assert extra in [doc["id"] for doc in rig.remote("TLSEdge")]


async def test_a_further_object_that_another_resource_adopted_stays():
    async with Rig() as rig:
        await made(rig, "WeightedBackend")
        rig.annotate("WeightedBackend", paused="true")
        extra = await doubled(rig, "WeightedBackend", "older")
        spec = {**rig.get("WeightedBackend")["spec"], "externalID": extra, "deletionPolicy": "Retain"}
        rig.apply("WeightedBackend", "second", spec)
        rig.annotate("WeightedBackend", paused=None)
        await rig.settle()
        await rig.resync("WeightedBackend")
        assert extra in [doc["id"] for doc in rig.remote("WeightedBackend")]
        assert "DuplicateDeleted" not in [e.reason for e in rig.events()]


async def test_where_the_object_at_hand_lost_its_marker_nothing_goes_before_it_has_one_again():
    async with Rig() as rig:
        await made(rig, "WeightedBackend")
        extra = await doubled(rig, "WeightedBackend")
        await rig.outside.weighted_backends.raw.update(rig.id("WeightedBackend"), {"metadata": ""})
        await rig.resync("WeightedBackend")
        assert [e.reason for e in rig.events()] == ["DriftCorrected"]
        assert extra in [doc["id"] for doc in rig.remote("WeightedBackend")]
        await rig.resync("WeightedBackend")
        assert [doc["id"] for doc in rig.remote("WeightedBackend")] == [rig.id("WeightedBackend")]


async def test_a_list_from_before_the_last_write_deletes_nothing():
    """It may show what has been the object at hand since."""
    async with Rig() as rig:
        await made(rig, "WeightedBackend")
        extra = await doubled(rig, "WeightedBackend")
        listing = await rig.process.remote.listing(KINDS["WeightedBackend"].api, rig.world.elapsed)
        (owned,) = listing.owned.values()
        rig.edit("WeightedBackend", description="newer than the list")
        await rig.settle()
        found = Snapshot(listing.began, listing.objects[rig.id("WeightedBackend")], owned)
        await rig.reconcile(rig.get("WeightedBackend"), found)
        assert extra in [doc["id"] for doc in rig.remote("WeightedBackend")]
