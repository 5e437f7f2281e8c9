"""Two resources want one thing, and others write to what is ours: each keeps what it has, and says what is wrong."""

from __future__ import annotations

import pytest

from doubles.effects import Fate
from doubles.rig import Rig
from edge_operator.kinds import KINDS

PUBLISHING = [name for name, kind in KINDS.items() if kind.outputs]


@pytest.mark.fault("two resources name one Secret")
@pytest.mark.parametrize("kind", PUBLISHING)
async def test_of_two_resources_with_one_secret_the_second_makes_nothing_and_says_so(kind: str):
    async with Rig() as rig:
        rig.sample(kind, secretName="shared")
        await rig.settle()
        first, held = rig.id(kind), rig.published("shared")
        spec = rig.get(kind)["spec"]
        rig.apply(kind, "second", spec)
        await rig.settle()
        assert rig.reason(kind, "second") == "SecretConflict"
        assert "'shared'" in rig.message(kind, "second")
        assert [doc["id"] for doc in rig.remote(kind)] == [first]
        assert rig.published("shared") == held
        rig.delete(kind, "second")
        await rig.settle()
        assert not rig.exists(kind, "second")
        assert (rig.published("shared"), rig.ready(kind)) == (held, True)


@pytest.mark.fault("every write conflicts, many times in a row")
@pytest.mark.parametrize("kind", ["WeightedBackend", "APIKey", "SSHHostCertificate"])
async def test_a_storm_of_conflicts_ends_with_one_object(kind: str):
    async with Rig() as rig:
        rig.effects.fates = dict.fromkeys(range(1, 40, 2), Fate.CONFLICT)
        rig.sample(kind)
        await rig.settle(2000)
        assert rig.ready(kind), rig.message(kind)
        assert [doc["id"] for doc in rig.remote(kind)] == [rig.id(kind)]


@pytest.mark.fault("a Secret that somebody else owns")
@pytest.mark.parametrize("owned", [False, True])
@pytest.mark.parametrize("kind", PUBLISHING)
async def test_a_secret_of_somebody_else_is_left_alone_and_nothing_is_made(kind: str, owned: bool):
    async with Rig() as rig:
        owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "another"}
        theirs = {"metadata": {"ownerReferences": [owner]}} if owned else {}
        key = ("Secret", "default", "taken")
        rig.api.apply(key, {"type": "Opaque", "data": {"token": "theirs"}, **theirs})
        held = rig.published("taken")
        rig.sample(kind, secretName="taken")
        await rig.settle()
        assert rig.reason(kind) == "SecretConflict"
        assert "'taken'" in rig.message(kind)
        assert (rig.remote(kind), rig.published("taken")) == ([], held)
        rig.api.delete(key)
        rig.wake_all()
        await rig.settle()
        assert rig.ready(kind), rig.message(kind)
        assert len(rig.remote(kind)) == 1
        rig.api.apply(key, {"data": {"token": "theirs"}, "metadata": {"ownerReferences": [owner], "labels": {}}})
        rig.delete(kind)
        await rig.settle()
        assert rig.remote(kind) == []
        assert rig.published("taken") is not None
