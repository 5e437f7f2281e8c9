"""What the cluster lacks when the operator starts, or loses while it runs: named, waited for, and then there."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from cluster.running import SOON, Installation, Operator, Service, World, clear, crds_folder
from edge_operator.derive import samples
from edge_operator.kinds import KINDS
from harness.cluster import Cluster
from harness.processes import free_port, wait_until

STOP_SECONDS = 2.0
KIND = KINDS["EventDestination"]


@pytest.fixture
def without_definition(crds: Cluster) -> Iterator[Cluster]:
    """The cluster without one of the definitions, which is there again afterwards."""
    crds.kubectl("delete", "crd", KIND.crd, "--timeout=30s")
    yield crds
    define(crds)


def define(cluster: Cluster) -> None:
    cluster.apply(crds_folder() / f"{KIND.plural}.yaml", server_side=True)
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=30s", f"crd/{KIND.crd}")


def test_a_missing_definition_is_named_and_waited_for(
    without_definition: Cluster, installation: Installation, service: Service, key_file: Path, tmp_path: Path
) -> None:
    with Operator(installation, service.url, key_file, tmp_path / "operator.log") as operator:
        operator.start().says(f"CustomResourceDefinition {KIND.crd} is not installed (kubectl apply")
        assert "Traceback" not in operator.text()
        code, took = operator.stop()
        assert (code, took < STOP_SECONDS) == (0, True)

        operator.start().says("is not installed")
        define(without_definition)
        operator.says("the cluster is prepared now", "work begins")
        assert operator.stop()[0] == 0


def test_a_definition_that_goes_while_the_operator_runs_ends_it_with_1_and_the_cause(
    crds: Cluster, installation: Installation, service: Service, key_file: Path, tmp_path: Path
) -> None:
    """Whoever restarts it gets one that waits for the definition."""
    with Operator(installation, service.url, key_file, tmp_path / "operator.log") as operator:
        operator.lead()
        try:
            crds.kubectl("delete", "crd", KIND.crd, "--timeout=30s")
            assert operator.running.wait(SOON) == 1
        finally:
            define(crds)

    assert operator.text().splitlines()[-1].endswith("ERROR   ended because watches ended: 404 page not found")


def test_missing_rights_are_named_and_waited_for(
    crds: Cluster, namespace: str, service: Service, key_file: Path, tmp_path: Path
) -> None:
    """The service account alone, then with the chart's roles."""
    installation = Installation(crds, namespace, grant=False)
    try:
        with Operator(installation, service.url, key_file, tmp_path / "operator.log") as operator:
            operator.start().says("this account may not list tlsedges in the whole cluster (see the chart's roles)")
            installation.grant()
            operator.says("work begins")
            assert operator.stop()[0] == 0
    finally:
        installation.remove()


def test_an_api_server_that_is_away_at_the_start_is_named_and_waited_for(
    crds: Cluster, installation: Installation, service: Service, key_file: Path, tmp_path: Path
) -> None:
    config = tmp_path / "kubeconfig"
    config.write_text(installation.kubeconfig.read_text().replace(crds.server.url, f"https://127.0.0.1:{free_port()}"))
    log = tmp_path / "operator.log"
    with Operator(installation, service.url, key_file, log, kubeconfig=config) as operator:
        operator.start().says("the Kubernetes API does not answer")
        code, took = operator.stop()

    assert (code, took < STOP_SECONDS) == (0, True)


@pytest.fixture
def spaces(crds: Cluster) -> Iterator[list[str]]:
    """Three namespaces."""
    names = [f"space-{secrets.token_hex(4)}" for _ in range(3)]
    for name in names:
        crds.create_namespace(name)
    yield names
    for name in names:
        crds.clear_namespace(name)


def test_an_operator_of_two_namespaces_needs_roles_only_and_leaves_others_alone(
    crds: Cluster, service: Service, key_file: Path, tmp_path: Path, namespace: str, spaces: list[str]
) -> None:
    *watched, other = spaces
    installation = Installation(crds, namespace, watch=watched)
    kinds = {manifest["kind"] for manifest in installation.manifests}
    assert kinds == {"ServiceAccount", "Role", "RoleBinding"}
    worlds = {name: World(crds, service, name) for name in spaces}
    try:
        with Operator(installation, service.url, key_file, tmp_path / "operator.log", resync="1s") as operator:
            operator.lead()
            for name, world in worlds.items():
                for manifest in samples.manifests(KINDS["EventDestination"])[:-1]:
                    crds.apply(manifest, "--namespace", name)
                world.make("EventDestination", "sink", samples.spec(KINDS["EventDestination"]))
                world.make("SSHCertificateAuthority", "fleet", {})
                spec = {"authority": {"name": "fleet"}, "principals": [name], "privateKey": {"algorithm": "ed25519"}}
                world.make("SSHHostCertificate", "web", spec)
            for name in watched:
                worlds[name].ready("EventDestination", "sink")
                worlds[name].ready("SSHHostCertificate", "web")
                wait_until(partial(worlds[name].events, "web"), "events", SOON)
            untouched = worlds[other].get("SSHHostCertificate", "web")
            assert untouched is not None
            assert untouched["status"] == {"observedGeneration": -1}
            assert worlds[other].left() == []
            for name in watched:
                clear(worlds[name])
            assert operator.stop()[0] == 0
            refused = [e.what for e in crds.audit_events(installation.user) if e.code == 403]
            assert refused == []
    finally:
        installation.remove()
