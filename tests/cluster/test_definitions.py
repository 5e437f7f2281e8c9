"""`kubectl delete crd` on a real API server: resources go, and what they made stays in the account."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.running import SOON, Installation, Operator, Service, World, crds_folder
from edge_operator.derive import samples
from edge_operator.kinds import KINDS
from harness.cluster import Cluster

KIND, SPEC = "WeightedBackend", {"backends": [{"ref": {"id": "bkdhr_1"}, "weight": 1}]}


@pytest.fixture
def restored(crds: Cluster) -> Iterator[Cluster]:
    """A cluster that has all CRDs again afterwards."""
    yield crds
    crds.apply_crds(crds_folder())


@pytest.mark.parametrize("where", ["the whole cluster", "one namespace"])
def test_objects_stay_when_their_definition_goes(
    where: str, restored: Cluster, service: Service, namespace: str, key_file: Path, tmp_path: Path
) -> None:
    """With the right to read the CRD, and without it, where discovery is asked."""
    home = f"operator-{namespace}"
    restored.create_namespace(home)
    installation = Installation(restored, home, watch=() if where == "the whole cluster" else (namespace,))
    world = World(restored, service, namespace)
    with Operator(installation, service.url, key_file, tmp_path / "operator.log") as operator:
        operator.lead()
        world.make(KIND, samples.NAME, SPEC)
        made = world.ready(KIND, samples.NAME)

        restored.kubectl("delete", "crd", KINDS[KIND].crd, "--wait", f"--timeout={SOON:.0f}s")

        assert [o["id"] for o in service.objects(KIND)] == [made["status"]["id"]]
        assert f"{KIND}/{namespace}/{samples.NAME}" in operator.text()
    service.ask("DELETE", f"/backends/weighted/{made['status']['id']}")
    installation.remove()
    restored.clear_namespace(home)
