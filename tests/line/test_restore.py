"""Copies and backups: a resource that comes back under a new uid finds its object again; a copy makes its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from doubles.apiserver import Object, copied
from doubles.effects import Fate
from doubles.rig import GRACE_SECONDS, Rig
from edge_operator.declare import Token
from edge_operator.engine import marker
from edge_operator.kinds import KINDS

from .test_life import made

OUTPUTS = [kind for kind in KINDS if KINDS[kind].outputs]
TOKENS = [kind for kind in KINDS if isinstance(KINDS[kind].lifecycle, Token)]


def backup(rig: Rig) -> dict[Any, Object]:
    """Everything in the namespace as a backup holds it."""
    return copied(rig.api.objects)


def lose(rig: Rig) -> None:
    """The namespace is lost with all that is in it, and nobody could do anything about it."""
    rig.api.objects.clear()
    rig.api.past.clear()


def restore(rig: Rig, saved: Mapping[Any, Object], *, status: bool = False, secrets: bool = True) -> None:
    """As a backup tool does: new uids; the status only if it is told to; owner references as they were."""
    for key, old in sorted(saved.items(), key=lambda item: item[0][0] != "Secret"):
        if key[0] == "Secret" and not secrets and "ownerReferences" in old["metadata"]:
            continue
        kept = ("labels", "annotations", "finalizers", "ownerReferences")
        body = {k: v for k, v in old.items() if k in ("type", "data", "spec")}
        rig.api.apply(key, {**body, "metadata": {k: old["metadata"][k] for k in kept if k in old["metadata"]}})
        if status and "status" in old:
            rig.api.patch_status(key, None, old["status"], "user")


async def lost_and_restored(rig: Rig, kind: str, **how: bool) -> Object:
    """The kind's example made, lost and restored under a new uid; its remote object as it was."""
    await made(rig, kind)
    (before,) = rig.remote(kind)
    saved = backup(rig)
    lose(rig)
    await rig.restart()
    restore(rig, saved, **how)
    rig.forget()
    return before


@pytest.mark.parametrize("status", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.fault("a backup is restored: new uids, the status gone or kept")
async def test_a_restored_resource_takes_its_object_over_and_marks_it_anew(kind, status):
    async with Rig() as rig:
        before = await lost_and_restored(rig, kind, status=status)
        await rig.settle()
        assert rig.ready(kind), rig.message(kind)
        (doc,) = rig.remote(kind)
        assert doc["id"] == rig.id(kind) == before["id"]
        owner, former = marker.split(doc["metadata"])[1], marker.split(before["metadata"])[1]
        assert owner is not None
        assert former is not None
        assert owner.uid == rig.get(kind)["metadata"]["uid"] != former.uid
        assert "POST" not in {call.split()[0] for call in rig.calls}
        assert "Restored" in [e.reason for e in rig.events(f"{kind}/example")]
        rig.forget()
        await rig.resync()
        await rig.restart()
        await rig.settle()
        assert {call.split()[0] for call in rig.calls} == {"GET"}
        assert rig.writes == []
        rig.delete(kind)
        await rig.settle()
        assert rig.remote(kind) == []


@pytest.mark.parametrize("kind", OUTPUTS)
async def test_a_restored_secret_that_names_the_object_is_taken_over_as_it_is(kind):
    async with Rig() as rig:
        await made(rig, kind)
        name = f"example-{kind.lower()}"
        data = (rig.published(name) or {})["data"]
        saved = backup(rig)
        lose(rig)
        await rig.restart()
        restore(rig, saved)
        await rig.settle()
        secret = rig.published(name)
        assert secret is not None
        assert secret["data"] == data
        assert [o["uid"] for o in secret["metadata"]["ownerReferences"]] == [rig.get(kind)["metadata"]["uid"]]


@pytest.mark.parametrize("kind", OUTPUTS)
async def test_a_restored_resource_without_its_secret_ends_with_one_object_and_a_secret_for_it(kind):
    """A token or a private key cannot be had again, so that another object takes the place."""
    async with Rig() as rig:
        before = await lost_and_restored(rig, kind, secrets=False)
        await rig.settle()
        assert rig.ready(kind), rig.message(kind)
        (doc,) = rig.remote(kind)
        secret = rig.published(f"example-{kind.lower()}")
        assert secret is not None
        assert secret["metadata"]["annotations"]["edge-operator.dev/id"] == doc["id"] == rig.id(kind) != before["id"]


@pytest.mark.parametrize("kind", TOKENS)
async def test_a_restored_secret_of_an_older_token_is_never_passed_off_as_the_current_one(kind):
    async with Rig() as rig:
        rig.sample(kind, rotation=None)
        await rig.settle()
        saved = backup(rig)
        rig.annotate(kind, rotate_requested_at="now")
        await rig.settle()
        lose(rig)
        await rig.restart()
        restore(rig, saved)
        await rig.settle()
        assert rig.reason(kind) == "SecretConflict"
        rig.api.delete(("Secret", "default", f"example-{kind.lower()}"))  # as the garbage collector does
        await rig.settle()
        assert rig.ready(kind), rig.message(kind)
        assert [doc["id"] for doc in rig.remote(kind)] == [rig.id(kind)]


@pytest.mark.parametrize("kind", ["HTTPSRoute", "SSHHostCertificate", "APIKey", "TLSCertificate"])
@pytest.mark.parametrize("status", [False, True])
async def test_a_restore_survives_a_death_at_each_of_its_effects(kind, status):
    """Everything is restored together, so that deaths meet the neighbours too."""
    async with Rig() as rig:
        await lost_and_restored(rig, kind, status=status)
        began = len(rig.effects.log)
        await rig.settle()
        effects = len(rig.effects.log) - began
    assert effects >= 3
    for number in range(1, effects + 1):
        for fate in (Fate.DIE_BEFORE, Fate.DIE_AFTER):
            async with Rig() as rig:
                before = await lost_and_restored(rig, kind, status=status)
                rig.effects.fates = {len(rig.effects.log) + number: fate}
                await rig.settle()
                assert rig.deaths == 1
                assert rig.ready(kind), f"{number} {fate}: {rig.message(kind)}"
                assert [doc["id"] for doc in rig.remote(kind)] == [rig.id(kind)] == [before["id"]], f"{number} {fate}"


@pytest.mark.parametrize("kind", ["WeightedBackend", "SSHHostCertificate", "APIKey"])
async def test_a_restored_resource_that_is_deleted_before_its_first_pass_leaves_nothing(kind):
    async with Rig() as rig:
        await lost_and_restored(rig, kind)
        rig.delete(kind)
        await rig.settle()
        assert not rig.exists(kind)
        assert rig.remote(kind) == []


async def test_a_restore_where_the_object_is_gone_makes_a_new_one_after_the_search():
    async with Rig() as rig:
        await made(rig, "WeightedBackend")
        saved = backup(rig)
        await rig.outside.weighted_backends.raw.delete(rig.id("WeightedBackend"))
        lose(rig)
        await rig.restart()
        restore(rig, saved, status=True)
        began = rig.world.elapsed
        await rig.settle()
        assert rig.ready("WeightedBackend")
        assert [doc["id"] for doc in rig.remote("WeightedBackend")] == [rig.id("WeightedBackend")]
        assert rig.world.elapsed - began >= GRACE_SECONDS


@pytest.mark.parametrize("status", [False, True])
@pytest.mark.fault("a backup is restored into another cluster")
async def test_what_is_restored_into_another_cluster_makes_its_own_and_leaves_the_first_alone(status):
    async with Rig() as rig:
        before = await lost_and_restored(rig, "WeightedBackend", status=status)
        rig.cluster.id = "another-cluster"
        await rig.settle()
        assert rig.ready("WeightedBackend"), rig.message("WeightedBackend")
        assert rig.id("WeightedBackend") != before["id"]
        assert before in rig.remote("WeightedBackend")
        assert len(rig.remote("WeightedBackend")) == 2


@pytest.mark.parametrize("fate", [None, Fate.DIE_AFTER])
@pytest.mark.parametrize("lives", [True, False])
@pytest.mark.fault("a resource is copied with its annotations and its status")
async def test_a_copy_under_another_name_makes_its_own_object_even_with_a_copied_status(lives, fate):
    """Were the status believed, the copy would replace and then delete the original's object."""
    async with Rig() as rig:
        await made(rig, "SSHHostCertificate")
        original = rig.get("SSHHostCertificate")
        meta = {name: original["metadata"][name] for name in ("annotations", "finalizers")}
        key = ("SSHHostCertificate", "default", "copy")
        rig.api.apply(key, {"spec": original["spec"], "metadata": meta})
        previous = [{"id": original["status"]["id"], "deleteAfter": "2020-01-01T00:00:00Z"}]
        rig.api.patch_status(key, None, {**original["status"], "previous": previous}, "user")
        if not lives:
            rig.api.objects.pop(("SSHHostCertificate", "default", "example"))
        await rig.restart()
        if fate is not None:
            rig.effects.fates = {len(rig.effects.log) + 2: fate}  # 1: the status is cleared, 2: the claim
        await rig.settle()
        assert rig.ready("SSHHostCertificate", "copy"), rig.message("SSHHostCertificate", "copy")
        assert rig.id("SSHHostCertificate", "copy") != original["status"]["id"]
        rig.delete("SSHHostCertificate", "copy")
        await rig.settle()
        assert [doc["id"] for doc in rig.remote("SSHHostCertificate")] == [original["status"]["id"]]


async def test_a_restored_status_whose_object_lost_its_marker_is_for_a_person_to_decide():
    async with Rig() as rig:
        await made(rig, "WeightedBackend")
        id_ = rig.id("WeightedBackend")
        await rig.outside.weighted_backends.raw.update(id_, {"metadata": "mine"})
        saved = backup(rig)
        lose(rig)
        await rig.restart()
        restore(rig, saved, status=True)
        await rig.settle()
        assert rig.reason("WeightedBackend") == "OwnershipConflict"
        assert rig.message("WeightedBackend") == (
            f"the status that was restored names {id_}, which exists and carries no marker of anybody; create this "
            f"resource anew: with spec.externalID (such as {id_}) to adopt one, without the annotation "
            "edge-operator.dev/claim to have one of its own"
        )
        rig.delete("WeightedBackend")
        await rig.settle()
        assert not rig.exists("WeightedBackend")
        assert [doc["id"] for doc in rig.remote("WeightedBackend")] == [id_]


async def test_of_several_objects_of_former_selves_the_one_of_the_claim_is_taken():
    async with Rig() as rig:
        before = await lost_and_restored(rig, "WeightedBackend")
        who = marker.owner(rig.cluster.id, "99999999-0000-4000-8000-000000000000", "n", "default", "example")
        older = await rig.outside.weighted_backends.raw.create({"backends": {}, "metadata": marker.attach("", who)})
        await rig.settle()
        assert rig.id("WeightedBackend") == before["id"]
        assert older["id"] in [doc["id"] for doc in rig.remote("WeightedBackend")]


async def test_of_several_objects_of_former_selves_and_none_of_the_claim_a_person_has_to_choose():
    async with Rig() as rig:
        await made(rig, "WeightedBackend")
        saved = backup(rig)
        await rig.outside.weighted_backends.raw.delete(rig.id("WeightedBackend"))
        ids = []
        for number in range(2):
            uid = f"99999999-0000-4000-8000-00000000000{number}"
            who = marker.owner(rig.cluster.id, uid, "n", "default", "example")
            body = {"backends": {}, "metadata": marker.attach("", who)}
            ids.append((await rig.outside.weighted_backends.raw.create(body))["id"])
        lose(rig)
        await rig.restart()
        restore(rig, saved)
        await rig.settle()
        assert rig.reason("WeightedBackend") == "OwnershipConflict"
        assert all(id_ in rig.message("WeightedBackend") for id_ in ids)
        assert len(rig.remote("WeightedBackend")) == 2


async def test_a_resource_that_was_kept_and_restored_has_its_object_and_its_secret_again():
    async with Rig() as rig:
        await made(rig, "APIKey")
        rig.edit("APIKey", deletionPolicy="Retain")
        await rig.settle()
        id_, spec = rig.id("APIKey"), rig.get("APIKey")["spec"]
        claim = rig.get("APIKey")["metadata"]["annotations"]
        rig.delete("APIKey")
        await rig.settle()
        rig.api.apply(("APIKey", "default", "example"), {"spec": spec, "metadata": {"annotations": claim}})
        await rig.settle()
        assert rig.ready("APIKey"), rig.message("APIKey")
        assert rig.id("APIKey") == id_
        assert len(rig.remote("APIKey")) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.fault("a user takes claim and status away")
async def test_a_resource_that_lost_claim_and_status_searches_before_it_creates(kind):
    """Somebody edited both away; the finalizer tells that there was something."""
    async with Rig() as rig:
        await made(rig, kind)
        (before,) = rig.remote(kind)
        await rig.restart()
        rig.annotate(kind, claim=None)
        gone = {name: None for name in rig.status(kind) if name not in ("conditions", "observedGeneration")}
        rig.api.patch_status((kind, "default", "example"), None, gone, "user")
        await rig.settle()
        assert rig.ready(kind), rig.message(kind)
        assert [doc["id"] for doc in rig.remote(kind)] == [rig.id(kind)] == [before["id"]]


async def test_a_restored_adoption_is_an_adoption_again_and_gets_its_secret_back():
    async with Rig() as rig:
        await made(rig, "SSHHostCertificate")
        id_, spec = rig.id("SSHHostCertificate"), rig.get("SSHHostCertificate")["spec"]
        rig.edit("SSHHostCertificate", deletionPolicy="Retain")
        await rig.settle()
        rig.delete("SSHHostCertificate")
        await rig.settle()
        spec = {**spec, "externalID": id_, "deletionPolicy": "Retain"}
        rig.apply("SSHHostCertificate", "example", spec)
        await rig.settle()
        assert rig.ready("SSHHostCertificate"), rig.message("SSHHostCertificate")
        assert rig.id("SSHHostCertificate") == id_


async def test_without_markers_a_restored_resource_creates_nothing_until_a_person_has_looked():
    async with Rig() as rig:
        rig.marked = False
        before = await lost_and_restored(rig, "FailoverBackend", status=True)
        await rig.settle()
        assert rig.reason("FailoverBackend") == "CreateOutcomeUnknown"
        assert rig.remote("FailoverBackend") == [before]
        rig.annotate("FailoverBackend", claim=None)
        rig.api.patch_status(("FailoverBackend", "default", "example"), None, {"id": None}, "user")
        await rig.settle()
        assert rig.ready("FailoverBackend"), rig.message("FailoverBackend")
        assert len(rig.remote("FailoverBackend")) == 2


async def test_without_markers_a_copy_of_a_resource_that_lives_makes_its_own_object():
    async with Rig() as rig:
        rig.marked = False
        await made(rig, "WeightedBackend")
        original = rig.get("WeightedBackend")
        copy = {"spec": original["spec"], "metadata": {"annotations": original["metadata"]["annotations"]}}
        rig.api.apply(("WeightedBackend", "default", "copy"), copy)
        await rig.settle()
        assert rig.ready("WeightedBackend", "copy"), rig.message("WeightedBackend", "copy")
        assert len(rig.remote("WeightedBackend")) == 2
