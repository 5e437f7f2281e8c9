"""Adoption, Observe, pause: each does what it says, and no more."""

from __future__ import annotations

import pytest

from doubles.rig import Rig
from doubles.scenarios import EDITS, NAME
from edge_operator.declare import Managed
from edge_operator.engine import marker
from edge_operator.kinds import KINDS

from .test_life import made

CHANGED = [kind for kind in KINDS if isinstance(KINDS[kind].lifecycle, Managed)]


async def adopted(rig: Rig, kind: str, **policies: str) -> str:
    """Another resource over the object that the example made and then let go; the object's id."""
    await made(rig, kind)
    id_, spec = rig.id(kind), rig.get(kind)["spec"]
    rig.annotate(kind, abandon="true")
    rig.delete(kind)
    await rig.settle()
    path = {"edge_id": rig.id("HTTPSEdge")} if kind == "HTTPSRoute" else {}
    await rig.outside.of(KINDS[kind].api).raw.update(id_, {"metadata": "theirs"}, **path)
    rig.forget()
    rig.apply(kind, NAME, {**spec, "metadata": "theirs", "externalID": id_, "deletionPolicy": "Delete", **policies})
    await rig.settle()
    return id_


@pytest.mark.parametrize("kind", CHANGED)
async def test_an_adoption_writes_nothing_remotely_until_the_spec_differs(kind):
    async with Rig() as rig:
        id_ = await adopted(rig, kind)
        assert rig.ready(kind), rig.message(kind)
        assert rig.id(kind) == id_
        assert {call.split()[0] for call in rig.calls} == {"GET"}
        assert [event.reason for event in rig.events()] == ["Adopted"]
        assert rig.remote(kind)[0]["metadata"] == "theirs"
        rig.forget()
        await rig.restart()
        await rig.settle()
        assert (rig.calls, rig.writes) == ([], [])
        await rig.resync(kind)
        assert {call.split()[0] for call in rig.calls} == {"GET"}
        assert rig.writes == []


@pytest.mark.parametrize("kind", CHANGED)
async def test_an_adopted_object_that_differs_is_changed_and_marked(kind):
    async with Rig() as rig:
        id_ = await adopted(rig, kind, description="not as it is")
        assert rig.ready(kind), rig.message(kind)
        (doc,) = rig.remote(kind)
        assert (doc["id"], doc["description"]) == (id_, "not as it is")
        user, owner = marker.split(doc["metadata"])
        assert user == "theirs"
        assert owner is not None
        assert owner.uid == rig.get(kind)["metadata"]["uid"]
        rig.forget()
        await rig.resync(kind)
        await rig.restart()
        await rig.settle()
        assert {call.split()[0] for call in rig.calls} == {"GET"}
        assert rig.writes == []


@pytest.mark.parametrize("kind", CHANGED)
async def test_an_adopted_object_is_deleted_or_kept_as_its_policy_says(kind):
    for policy, left in (("Delete", 0), ("Retain", 1)):
        async with Rig() as rig:
            await adopted(rig, kind, deletionPolicy=policy)
            rig.delete(kind)
            await rig.settle()
            assert not rig.exists(kind)
            assert len(rig.remote(kind)) == left


async def test_an_object_of_another_living_resource_is_not_adopted():
    async with Rig() as rig:
        await made(rig, "TLSEdge")
        spec = {**rig.get("TLSEdge")["spec"], "externalID": rig.id("TLSEdge"), "deletionPolicy": "Retain"}
        rig.apply("TLSEdge", "second", spec)
        await rig.settle()
        assert rig.reason("TLSEdge", "second") == "OwnershipConflict"
        assert rig.message("TLSEdge", "second").startswith(
            f"spec.externalID: {rig.id('TLSEdge')} belongs to TLSEdge default/example, which made it"
        )
        assert rig.ready("TLSEdge")


async def test_an_object_to_adopt_that_is_not_there_is_said_and_never_created():
    async with Rig() as rig:
        rig.sample("WeightedBackend", externalID="bkdwd_absent", deletionPolicy="Retain")
        await rig.settle()
        assert rig.reason("WeightedBackend") == "RemoteMissing"
        assert rig.message("WeightedBackend") == "spec.externalID: the service has no object bkdwd_absent"
        assert rig.remote("WeightedBackend") == []


async def test_an_adopted_object_that_vanished_is_said_and_never_made_anew():
    async with Rig() as rig:
        id_ = await adopted(rig, "TLSEdge", onRemoteMissing="Recreate")
        await rig.outside.tls_edges.raw.delete(id_)
        await rig.resync("TLSEdge")
        assert rig.reason("TLSEdge") == "RemoteMissing"
        assert rig.remote("TLSEdge") == []
        await rig.restart()
        await rig.settle()
        assert rig.reason("TLSEdge") == "RemoteMissing"


async def test_an_adopted_certificate_without_its_key_is_neither_replaced_nor_deleted():
    async with Rig() as rig:
        await made(rig, "SSHHostCertificate")
        id_, spec = rig.id("SSHHostCertificate"), rig.get("SSHHostCertificate")["spec"]
        rig.annotate("SSHHostCertificate", abandon="true")
        rig.delete("SSHHostCertificate")
        await rig.settle()
        await rig.outside.ssh_host_certificates.raw.update(id_, {"metadata": ""})
        rig.api.delete(("Secret", "default", "example-sshhostcertificate"))
        rig.apply("SSHHostCertificate", NAME, {**spec, "externalID": id_, "deletionPolicy": "Delete"})
        await rig.settle()
        assert rig.reason("SSHHostCertificate") == "InvalidSpec"
        assert [doc["id"] for doc in rig.remote("SSHHostCertificate")] == [id_]


async def test_an_external_id_of_another_kind_is_refused():
    async with Rig() as rig:
        rig.sample("WeightedBackend", externalID="bkdfo_1", deletionPolicy="Retain")
        await rig.settle()
        assert rig.message("WeightedBackend") == "spec.externalID: 'bkdfo_1' should start with bkdwd_"


@pytest.mark.parametrize("kind", CHANGED)
async def test_observe_reports_paths_that_differ_and_writes_nothing_remotely(kind):
    edit = EDITS[kind][0]
    async with Rig() as rig:
        await adopted(rig, kind, managementPolicy="Observe", **edit.members)
        assert rig.reason(kind) == "Observed"
        drift = rig.condition(kind, type_="DriftDetected")
        assert drift is not None
        named = drift["message"].removeprefix("the service holds something else at ").split(", ")
        assert [path.split(".")[1] for path in named] == list(edit.members)
        assert {call.split()[0] for call in rig.calls} == {"GET"}
        assert all("finalizer" not in said for said in rig.writes)
        rig.forget()
        await rig.restart()
        await rig.settle()
        assert rig.writes == [], "what differs stays said"
        rig.apply(kind, NAME, {**rig.get(kind)["spec"], **{m: _sample(rig, kind)[m] for m in edit.members}})
        await rig.settle()
        assert rig.condition(kind, type_="DriftDetected") is None
        rig.forget()
        await rig.restart()
        await rig.settle()
        assert (rig.calls, rig.writes) == ([], []), "in sync costs nothing"


def _sample(rig: Rig, kind: str) -> dict:
    from edge_operator.derive import samples

    return samples.spec(KINDS[kind])


async def test_an_observed_object_that_vanished_is_said():
    async with Rig() as rig:
        id_ = await adopted(rig, "TLSEdge", managementPolicy="Observe")
        await rig.outside.tls_edges.raw.delete(id_)
        await rig.resync("TLSEdge")
        assert rig.reason("TLSEdge") == "RemoteMissing"


async def test_an_observed_resource_goes_and_leaves_its_object():
    async with Rig() as rig:
        id_ = await adopted(rig, "TLSEdge", managementPolicy="Observe")
        rig.delete("TLSEdge")
        await rig.settle()
        assert not rig.exists("TLSEdge")
        assert [doc["id"] for doc in rig.remote("TLSEdge")] == [id_]


async def test_from_observe_to_manage_and_a_restart_later_all_is_quiet():
    async with Rig() as rig:
        await adopted(rig, "TLSEdge", managementPolicy="Observe", description="wished")
        rig.edit("TLSEdge", managementPolicy="Manage")
        await rig.settle()
        assert rig.ready("TLSEdge")
        assert rig.reason("TLSEdge") == "Available"
        assert rig.remote("TLSEdge")[0]["description"] == "wished"
        rig.forget()
        await rig.restart()
        await rig.settle()
        assert (rig.calls, rig.writes) == ([], [])


@pytest.mark.parametrize("kind", KINDS)
async def test_what_is_paused_is_left_alone_and_catches_up_afterwards(kind):
    edit = EDITS[kind][0]
    async with Rig() as rig:
        await made(rig, kind)
        rig.annotate(kind, paused="true")
        await rig.settle()
        rig.edit(kind, **edit.members)
        await rig.settle()
        assert rig.calls == []
        assert rig.condition(kind, type_="Paused") is not None
        assert (rig.condition(kind) or {})["status"] == "True"
        assert not rig.ready(kind), "nobody may think that the newest spec is in sync"
        rig.forget()
        await rig.restart()
        await rig.settle()
        assert (rig.calls, rig.writes) == ([], [])
        rig.annotate(kind, paused=None)
        await rig.settle()
        assert rig.ready(kind)
        assert rig.condition(kind, type_="Paused") is None


async def test_a_resource_that_is_paused_from_the_start_says_so():
    async with Rig() as rig:
        rig.apply("FailoverBackend", NAME, {"backends": [{"id": "bkdhr_1"}]}, paused="true")
        await rig.settle()
        assert rig.reason("FailoverBackend") == "Progressing"
        assert rig.calls == []
        assert rig.writes == ["PATCH FailoverBackend/example status"]


async def test_a_look_that_is_asked_for_is_taken_once():
    async with Rig() as rig:
        await made(rig, "TLSEdge")
        for value in ("one", "two"):
            rig.forget()
            rig.annotate("TLSEdge", reconcile_requested_at=value)
            await rig.settle()
            assert [call.split()[0] for call in rig.calls] == ["GET"]
            assert rig.status("TLSEdge")["lastHandledReconcileAt"] == value
        rig.forget()
        await rig.restart()
        await rig.settle()
        assert (rig.calls, rig.writes) == ([], [])


async def test_what_a_user_never_mentioned_is_left_alone():
    """A module that somebody else switched on, of which the spec says nothing, stays."""
    async with Rig() as rig:
        await made(rig, "HTTPSEdge")
        rig.edit("HTTPSEdge", mutualTLS=None)
        await rig.settle()
        body = {"certificate_authority_ids": ["ca_theirs"]}
        await rig.outside.https_edges.raw.put_module(rig.id("HTTPSEdge"), "mutual_tls", body)
        rig.forget()
        await rig.resync("HTTPSEdge")
        rig.edit("HTTPSEdge", description="and an edit")
        await rig.settle()
        assert [call.split()[0] for call in rig.calls if not call.startswith("GET")] == ["PATCH"]
        assert rig.remote("HTTPSEdge")[0]["mutual_tls"] is not None
