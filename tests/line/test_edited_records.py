"""Status and annotations edited by hand: nobody else's object is touched, our own is kept, and there is no second."""

from __future__ import annotations

from typing import Any

import pytest

from doubles.apiserver import Object
from doubles.effects import Fate
from doubles.foreign import FOREIGN, foreign
from doubles.rig import GRACE_SECONDS, Rig
from edge_operator.declare import Token
from edge_operator.engine import marker
from edge_operator.kinds import KINDS

from .test_life import made
from .test_policies import CHANGED, adopted

PAST = "2020-01-01T00:00:00Z"
ALONE, SOLE = "WeightedBackend", "SSHCertificateAuthority"
"""The second one needs nothing else, so that it can be in an account of its own."""


def patch(rig: Rig, kind: str, status: dict[str, Any], name: str = "example") -> None:
    """Edit a status as `kubectl edit --subresource=status` does."""
    rig.api.patch_status((kind, "default", name), None, status, "user")


async def beside(rig: Rig, kind: str) -> tuple[Object, Object]:
    """The kind's example in sync, and an object of somebody else in the same collection."""
    await made(rig, kind)
    (own,) = rig.remote(kind)
    await foreign(rig, kind)
    theirs = next(doc for doc in rig.remote(kind) if doc["description"] == FOREIGN)
    rig.forget()
    return own, theirs


def untouched(rig: Rig, kind: str, *docs: Object) -> bool:
    """Whether these are as they were."""
    return all(doc in rig.remote(kind) for doc in docs)


def ours(rig: Rig, kind: str) -> list[str]:
    return [doc["id"] for doc in rig.remote(kind) if doc["description"] != FOREIGN]


async def quiet(rig: Rig, kind: str) -> None:
    """Drift rounds and a restart find nothing to do."""
    await rig.resync(kind)
    rig.forget()
    await rig.resync(kind)
    assert {call.split()[0] for call in rig.calls} <= {"GET"}
    rig.forget()
    await rig.restart()
    await rig.settle()
    assert (rig.calls, rig.writes) == ([], [])


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.fault("a status is edited to name an object that is nobody's or another cluster's")
async def test_a_status_that_names_a_foreign_object_leads_back_to_our_own(kind, marked):
    async with Rig() as rig:
        own, theirs = await beside(rig, kind)
        if marked:
            theirs = await claimed_elsewhere(rig, kind, theirs)
        patch(rig, kind, {"id": theirs["id"]})
        await rig.resync(kind)
        assert rig.ready(kind), rig.message(kind)
        assert rig.id(kind) == own["id"]
        (told,) = [e for e in rig.events(f"{kind}/example") if theirs["id"] in e.message]
        assert (told.reason, told.warning) == ("OwnershipConflict", True)
        await quiet(rig, kind)
        assert untouched(rig, kind, own, theirs)
        assert ours(rig, kind) == [own["id"]]
        rig.delete(kind)
        await rig.settle()
        assert untouched(rig, kind, theirs)
        assert ours(rig, kind) == []


async def claimed_elsewhere(rig: Rig, kind: str, doc: Object) -> Object:
    """The object with the marker of another cluster."""
    who = marker.owner("another-cluster", "99999999-0000-4000-8000-000000000000", "n", "prod", "db")
    path = {"edge_id": rig.id("HTTPSEdge")} if kind == "HTTPSRoute" else {}
    collection = rig.outside.of(KINDS[kind].api).raw
    await collection.update(doc["id"], {"metadata": marker.attach("", who)}, **path)
    return next(d for d in rig.remote(kind) if d["id"] == doc["id"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.fault("a status is edited to name a foreign object, and the resource deleted")
async def test_a_deletion_after_such_an_edit_takes_our_own_and_leaves_the_foreign_one(kind):
    async with Rig() as rig:
        _, theirs = await beside(rig, kind)
        patch(rig, kind, {"id": theirs["id"]})
        rig.delete(kind)
        await rig.settle()
        assert not rig.exists(kind)
        assert untouched(rig, kind, theirs)
        assert ours(rig, kind) == []
        event = rig.events(f"{kind}/example")[-1]
        assert event.reason == "Retained"
        assert f"{theirs['id']} stays in the account" in event.message


async def test_where_our_own_is_gone_a_foreign_object_in_the_status_is_for_a_person_to_decide():
    async with Rig() as rig:
        own, theirs = await beside(rig, ALONE)
        await rig.outside.weighted_backends.raw.delete(own["id"])
        patch(rig, ALONE, {"id": theirs["id"]})
        await rig.settle()
        assert rig.reason(ALONE) == "OwnershipConflict"
        assert rig.message(ALONE).startswith(
            f"the status names {theirs['id']}, which exists and carries no marker of anybody; create this resource anew"
        )
        await rig.resync(ALONE)
        assert {call.split()[0] for call in rig.calls} == {"GET"}
        rig.delete(ALONE)
        await rig.settle()
        assert not rig.exists(ALONE)
        assert untouched(rig, ALONE, theirs)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.fault("status.previous is edited to name a foreign object")
async def test_a_predecessor_that_is_not_ours_is_not_deleted(kind):
    for deleted in (False, True):
        async with Rig() as rig:
            own, theirs = await beside(rig, kind)
            patch(rig, kind, {"previous": [{"id": theirs["id"], "deleteAfter": PAST}]})
            if deleted:
                rig.delete(kind)
            await rig.settle()
            assert untouched(rig, kind, theirs)
            assert ours(rig, kind) == ([] if deleted else [own["id"]])
            if not deleted:
                assert rig.ready(kind)
                assert "previous" not in rig.status(kind)
                assert any(theirs["id"] in e.message for e in rig.events(f"{kind}/example"))
                await quiet(rig, kind)


@pytest.mark.parametrize("kind", [k for k in KINDS if isinstance(KINDS[k].lifecycle, Token)])
@pytest.mark.fault("a recorded predecessor is edited away")
async def test_a_predecessor_that_was_edited_away_goes_with_the_resource_all_the_same(kind):
    async with Rig() as rig:
        rig.sample(kind, rotation={"interval": "100h", "overlap": "10h"})
        await rig.settle()
        rig.annotate(kind, rotate_requested_at="once")
        await rig.settle()
        assert len(rig.remote(kind)) == 2
        patch(rig, kind, {"previous": None})
        rig.delete(kind)
        await rig.settle()
        assert rig.remote(kind) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.fault("the claim of a living resource is written over another one's")
async def test_the_claim_of_a_living_resource_over_a_recorded_one_changes_nothing(kind):
    async with Rig() as rig:
        await made(rig, kind)
        (own,) = rig.remote(kind)
        secret = rig.published(f"example-{kind.lower()}")
        if kind == ALONE:
            rig.sample(kind, "other")
        else:
            await made(rig, ALONE)
        await rig.settle()
        theirs = rig.get(ALONE, "other" if kind == ALONE else "example")
        annotations = theirs["metadata"]["annotations"]
        rig.forget()
        rig.api.apply((kind, "default", "example"), {"metadata": {"annotations": annotations}})
        await rig.settle(1)
        assert rig.ready(kind), "while it is searched for what may have been made under the claim that was lost"
        await rig.settle()
        assert rig.ready(kind), rig.message(kind)
        assert {call.split()[0] for call in rig.calls} == {"GET"}
        assert rig.writes == [f"PATCH {kind}/example finalizer, claim {rig.status(kind)['nonce']}"]
        assert own in rig.remote(kind)
        assert rig.published(f"example-{kind.lower()}") == secret
        assert rig.get(kind)["metadata"]["annotations"]["edge-operator.dev/claim"] == (
            f"{rig.get(kind)['metadata']['uid']}.{rig.status(kind)['nonce']}"
        )
        await quiet(rig, kind)


@pytest.mark.parametrize("kind", ["WeightedBackend", "APIKey", "SSHHostCertificate"])
@pytest.mark.fault("the claim of a living resource is written over one under way")
async def test_the_claim_of_a_living_resource_over_a_creation_under_way_does_not_double_it(kind):
    async with Rig() as rig:
        await made(rig, kind)
        await made(rig, "TLSEdge")
        theirs = rig.get("TLSEdge")["metadata"]["annotations"]
        (own,) = rig.remote(kind)
        gone = {name: None for name in rig.status(kind) if name not in ("conditions", "observedGeneration")}
        patch(rig, kind, gone)  # as if the process had died before it wrote
        rig.api.apply((kind, "default", "example"), {"metadata": {"annotations": theirs}})
        await rig.restart()
        await rig.settle()
        assert rig.ready(kind), rig.message(kind)
        assert ours(rig, kind) == [rig.id(kind)] == [own["id"]]
        await quiet(rig, kind)


@pytest.mark.parametrize("claim", [None, "99999999-0000-4000-8000-000000000001.theirs"])
@pytest.mark.fault("the claim of a successor under way is overwritten or taken off")
async def test_a_successor_whose_claim_was_lost_is_found_before_another_is_made(claim):
    async with Rig() as rig:
        rig.sample(SOLE, onRemoteMissing="Recreate")
        await rig.settle()
        await rig.outside.ssh_certificate_authorities.raw.delete(rig.id(SOLE))
        rig.effects.meddling[len(rig.effects.log) + 3] = lambda: rig.annotate(SOLE, claim=claim)
        rig.effects.fates = {len(rig.effects.log) + 3: Fate.DIE_BEFORE}
        await rig.resync(SOLE)
        await rig.settle()
        await rig.resync(SOLE)
        assert rig.deaths == 1
        assert rig.ready(SOLE), rig.message(SOLE)
        assert [doc["id"] for doc in rig.remote(SOLE)] == [rig.id(SOLE)]
        await quiet(rig, SOLE)


@pytest.mark.parametrize("kind", ["WeightedBackend", "SSHCertificateAuthority"])
async def test_a_foreign_claim_does_not_keep_a_deletion_from_our_object(kind):
    async with Rig() as rig:
        await made(rig, kind)
        await made(rig, "TLSEdge" if kind != "TLSEdge" else ALONE)
        theirs = rig.get("TLSEdge")["metadata"]["annotations"]
        rig.delete("TLSEdge")
        rig.api.apply((kind, "default", "example"), {"metadata": {"annotations": theirs}})
        rig.delete(kind)
        await rig.settle()
        assert not rig.exists(kind)
        assert rig.remote(kind) == []


async def second_account(rig: Rig) -> str:
    """A resource whose object is in the second account; its id."""
    rig.sample(SOLE, "example", connectionRef={"name": "second"})
    await rig.settle()
    assert rig.ready(SOLE), rig.message(SOLE)
    assert len(rig.held(SOLE, 1)) == 1
    rig.forget()
    return rig.id(SOLE)


@pytest.mark.fault("the annotation claimed-through is edited, and the resource deleted")
async def test_an_edited_connection_leads_no_deletion_into_another_account():
    async with Rig(accounts=2) as rig:
        await second_account(rig)
        rig.annotate(SOLE, claimed_through="ClusterConnection/default")
        await rig.settle()
        assert rig.ready(SOLE), rig.message(SOLE)
        assert (rig.calls, rig.writes) == ([], [])
        rig.delete(SOLE)
        await rig.settle()
        assert not rig.exists(SOLE)
        assert rig.held(SOLE, 1) == []


@pytest.mark.parametrize("seal", [None, "edited"])
async def test_without_a_seal_an_object_that_is_not_where_the_annotation_leads_holds_the_deletion_up(seal):
    async with Rig(accounts=2) as rig:
        id_ = await second_account(rig)
        words = rig.status(SOLE)["seal"].split()
        patch(rig, SOLE, {"seal": f"{words[0]} ClusterConnection/default" if seal else None})
        rig.annotate(SOLE, claimed_through="ClusterConnection/default")
        rig.delete(SOLE)
        await rig.settle()
        assert rig.reason(SOLE) == "OwnershipConflict"
        assert rig.message(SOLE) == (
            f"{id_} is not in the account of ClusterConnection/default, where the annotation edge-operator.dev/"
            "claimed-through leads; spec.connectionRef names Connection/second. Set the annotation to the connection "
            "that the object was made through, or edge-operator.dev/abandon to true to leave it where it is"
        )
        patch(rig, SOLE, {"seal": None})
        rig.annotate(SOLE, claimed_through="Connection/second")
        await rig.settle()
        assert not rig.exists(SOLE)
        assert rig.held(SOLE, 1) == []


@pytest.mark.parametrize("deleted", [False, True])
async def test_a_manifest_of_another_account_over_a_recorded_resource_touches_neither_account(deleted):
    async with Rig(accounts=2) as rig:
        id_ = await second_account(rig)
        rig.sample(SOLE, "other")
        await rig.settle()
        theirs = rig.get(SOLE, "other")
        rig.forget()
        change = {"spec": theirs["spec"], "metadata": {"annotations": theirs["metadata"]["annotations"]}}
        rig.api.apply((SOLE, "default", "example"), change)
        if deleted:
            rig.delete(SOLE)
        await rig.settle()
        assert rig.reason(SOLE) == "ImmutableFieldChanged"
        assert f"{id_} was made through Connection/second" in rig.message(SOLE)
        assert rig.calls == []
        rig.edit(SOLE, connectionRef={"name": "second"})
        await rig.settle()
        if deleted:
            assert rig.held(SOLE, 1) == []
        else:
            assert rig.ready(SOLE), rig.message(SOLE)
            assert [doc["id"] for doc in rig.held(SOLE, 1)] == [id_]
        assert len(rig.held(SOLE, 0)) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.fault("the seal of a status is taken off")
async def test_a_seal_that_is_missing_costs_one_read_and_one_write(kind):
    async with Rig() as rig:
        await made(rig, kind)
        before = rig.status(kind)
        patch(rig, kind, {"seal": None})
        rig.process.dirty = {key: None for key in rig.process.dirty if key[0] == kind}
        await rig.settle()
        assert [call.split()[0] for call in rig.calls] == ["GET"]
        assert rig.writes == [f"PATCH {kind}/example status"]
        assert rig.status(kind) == before
        await quiet(rig, kind)


@pytest.mark.parametrize("member", ["nonce", "path", "status"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.fault("parts of a status are edited or taken off")
async def test_an_edited_record_of_our_own_object_is_found_again(kind, member):
    async with Rig() as rig:
        await made(rig, kind)
        (own,) = rig.remote(kind)
        edits: dict[str, Any] = {
            "nonce": {"nonce": "edited"},
            "path": {"path": {"edge_id": "edghts_edited"}},
            "status": dict.fromkeys(rig.status(kind)),
        }
        patch(rig, kind, edits[member])
        await rig.settle()
        assert rig.ready(kind), rig.message(kind)
        assert [doc["id"] for doc in rig.remote(kind)] == [rig.id(kind)] == [own["id"]]
        await quiet(rig, kind)


@pytest.mark.parametrize("kind", ["APIKey", "SSHCertificateAuthority"])
async def test_an_edited_id_of_nothing_leads_back_to_our_own(kind):
    async with Rig() as rig:
        await made(rig, kind)
        (own,) = rig.remote(kind)
        patch(rig, kind, {"id": own["id"][:-3] + "xyz"})
        await rig.settle()
        assert rig.ready(kind), rig.message(kind)
        assert ours(rig, kind) == [rig.id(kind)] == [own["id"]]
        await quiet(rig, kind)


async def test_where_nothing_is_left_of_an_edited_record_the_object_counts_as_missing():
    async with Rig() as rig:
        await made(rig, "SSHCertificateAuthority")
        await rig.outside.ssh_certificate_authorities.raw.delete(rig.id("SSHCertificateAuthority"))
        patch(rig, "SSHCertificateAuthority", {"nonce": "edited"})
        await rig.settle()
        assert rig.reason("SSHCertificateAuthority") == "RemoteMissing"
        assert rig.remote("SSHCertificateAuthority") == []


async def test_a_route_is_not_moved_into_an_edge_that_an_edited_status_names():
    async with Rig() as rig:
        await made(rig, "HTTPSRoute")
        own, theirs = await beside(rig, "HTTPSEdge")
        (route,) = rig.remote("HTTPSRoute")
        patch(rig, "HTTPSEdge", {"id": theirs["id"]})
        await rig.settle()
        assert rig.ready("HTTPSRoute"), rig.message("HTTPSRoute")
        assert rig.remote("HTTPSRoute") == [route]
        assert rig.id("HTTPSEdge") == own["id"]
        assert untouched(rig, "HTTPSEdge", theirs)


@pytest.mark.fault("the status of an adopted object is edited")
async def test_an_adoption_goes_on_with_the_object_that_the_spec_names():
    for deleted in (False, True):
        async with Rig() as rig:
            id_ = await adopted(rig, "TLSEdge")
            (own,) = rig.remote("TLSEdge")
            await foreign(rig, "TLSEdge")
            theirs = next(doc for doc in rig.remote("TLSEdge") if doc["description"] == FOREIGN)
            patch(rig, "TLSEdge", {"id": theirs["id"]})
            if deleted:
                rig.delete("TLSEdge")
            await rig.settle()
            assert untouched(rig, "TLSEdge", theirs)
            if deleted:
                assert not rig.exists("TLSEdge")
                assert own not in rig.remote("TLSEdge")
            else:
                assert rig.ready("TLSEdge"), rig.message("TLSEdge")
                assert rig.id("TLSEdge") == id_
                assert own in rig.remote("TLSEdge")


@pytest.mark.parametrize("kind", CHANGED)
async def test_an_adopted_object_goes_as_its_policy_says_though_the_status_was_taken_off(kind):
    async with Rig() as rig:
        id_ = await adopted(rig, kind, deletionPolicy="Delete")
        patch(rig, kind, dict.fromkeys(rig.status(kind)))
        rig.delete(kind)
        await rig.settle()
        assert not rig.exists(kind)
        assert rig.remote(kind) == []
        assert rig.events(f"{kind}/example")[-1].message == f"deleted {id_}"


# Without owner markers ------------------------------------------------------------------------------


@pytest.mark.fault("a status is edited where objects carry no owner marker")
async def test_without_markers_an_edited_status_is_for_a_person_to_decide():
    async with Rig() as rig:
        rig.marked = False
        own, theirs = await beside(rig, ALONE)
        patch(rig, ALONE, {"id": theirs["id"]})
        await rig.resync(ALONE)
        assert rig.reason(ALONE) == "OwnershipConflict"
        assert "take status.seal off" in rig.message(ALONE)
        assert {call.split()[0] for call in rig.calls} <= {"GET"}
        rig.delete(ALONE)
        await rig.settle()
        assert rig.exists(ALONE)
        assert untouched(rig, ALONE, own, theirs)
        patch(rig, ALONE, {"id": own["id"], "seal": None})
        await rig.settle()
        assert not rig.exists(ALONE)
        assert untouched(rig, ALONE, theirs)
        assert ours(rig, ALONE) == []


async def test_without_markers_a_status_without_a_seal_is_believed():
    async with Rig() as rig:
        rig.marked = False
        await made(rig, ALONE)
        before = rig.status(ALONE)
        patch(rig, ALONE, {"seal": None})
        await rig.settle()
        assert rig.calls == []
        assert rig.status(ALONE) == before


# What is said at the end ----------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["Retain", "abandon"])
async def test_what_stays_is_named_with_its_predecessors(policy):
    async with Rig() as rig:
        rig.sample("APIKey", rotation={"interval": "100h", "overlap": "10h"})
        await rig.settle()
        former = rig.id("APIKey")
        rig.annotate("APIKey", rotate_requested_at="once")
        await rig.settle()
        if policy == "abandon":
            rig.annotate("APIKey", abandon="true")
        else:
            rig.edit("APIKey", deletionPolicy="Retain")
        id_ = rig.id("APIKey")
        rig.delete("APIKey")
        await rig.settle()
        assert f"{id_}, and {former} before it, stay in the account" in rig.events("APIKey/example")[-1].message
        assert len(rig.remote("APIKey")) == 2


async def test_nothing_is_not_called_none():
    async with Rig() as rig:
        rig.faults({"kind": "cut", "when": "after", "method": "POST"})
        rig.sample(SOLE, deletionPolicy="Retain")
        await rig.settle(1)
        rig.delete(SOLE)
        await rig.settle(GRACE_SECONDS)
        assert rig.events()[-1].message == (
            "a remote object, if there is one, stays in the account, as deletionPolicy says"
        )


@pytest.mark.parametrize("kind", CHANGED)
@pytest.mark.fault("a managed resource is turned to Observe and deleted")
async def test_under_observe_nothing_is_deleted_whatever_was_before(kind):
    async with Rig() as rig:
        id_ = await adopted(rig, kind, deletionPolicy="Delete")
        rig.edit(kind, managementPolicy="Observe")
        await rig.settle()
        rig.forget()
        rig.delete(kind)
        await rig.settle()
        assert not rig.exists(kind)
        assert rig.calls == []
        assert [doc["id"] for doc in rig.remote(kind)] == [id_]
        (event,) = [e for e in rig.events(f"{kind}/example") if e.reason == "Retained"]
        assert event.message == (
            f"{id_} stays in the account: under managementPolicy Observe nothing is written or deleted there; with "
            "Manage, deletionPolicy decides"
        )
