"""The chart on a real API server: its pods run as local processes, under exactly the rights that it gives them."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from chart.chart import CHART, render
from cluster.running import Service, World
from edge_operator.declare import GROUP
from edge_operator.kinds import KINDS
from harness.cluster import Cluster, CommandError
from harness.helm import Helm
from harness.kubelet import FakeKubelet
from harness.processes import free_port, wait_until

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "docs" / "samples"
WAIT = ("--wait", "--timeout", "120s")


@dataclass
class Release:
    """A release of the chart with the reference API, in a namespace whose pods run."""

    helm: Helm
    namespace: str
    folder: Path
    name: str = "edge"
    api: int = field(default_factory=free_port)

    def values(self, **more: Any) -> list[str | Path]:
        """Options with values. Every pod has the same address here, so the operator's port differs with each call:
        an upgrade runs two of it at a time.
        """
        api, health = self.api, free_port()
        given = {
            "api": {"url": f"http://127.0.0.1:{api}"},
            "referenceAPI": {"enabled": True, "port": api},
            "port": health,
            "readinessProbe": {"periodSeconds": 1, "timeoutSeconds": 3, "failureThreshold": 3},
            **more,
        }
        file = self.folder / "values.json"
        file.write_text(json.dumps(given))
        return ["--values", file]

    def install(self, **more: Any) -> str:
        """Install the chart, whose CRDs somebody applied before, and wait."""
        return self.helm(
            "install", self.name, CHART, "--take-ownership", *WAIT, *self.values(**more), namespace=self.namespace
        )

    def upgrade(self, **more: Any) -> str:
        return self.helm("upgrade", self.name, CHART, *WAIT, *self.values(**more), namespace=self.namespace)

    def uninstall(self) -> str:
        return self.helm("uninstall", self.name, *WAIT, namespace=self.namespace)


@pytest.fixture
def release(helm: Helm, crds: Cluster, namespace: str, kubelet: FakeKubelet, tmp_path: Path) -> Iterator[Release]:
    """A release that is gone afterwards, because roles and CRDs are the whole cluster's."""
    found = Release(helm, namespace, tmp_path)
    yield found
    helm("uninstall", found.name, "--ignore-not-found", namespace=namespace)


def chart_of(folder: Path, *manifests: str | Path) -> Path:
    """A user's chart with resources of ours."""
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: mine\nversion: 0.1.0\n")
    for number, manifest in enumerate(manifests):
        target = folder / "templates" / f"{number}.yaml"
        if isinstance(manifest, Path):
            shutil.copy(manifest, target)
        else:
            target.write_text(manifest)
    return folder


def test_every_object_is_accepted_without_a_warning(control_plane: Cluster, namespace: str) -> None:
    values = {"metrics": {"service": {"enabled": True}}, "networkPolicy": {"enabled": True}}
    more = {"podDisruptionBudget": {"enabled": True}, "referenceAPI": {"enabled": True}}
    for manifest in render({**values, **more}, "--namespace", namespace):
        text = json.dumps(manifest)
        control_plane.kubectl("apply", "--dry-run=server", "--warnings-as-errors", "-f", "-", input=text)


def test_a_namespace_that_enforces_the_restricted_standard_takes_the_pods(
    control_plane: Cluster, namespace: str
) -> None:
    control_plane.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    found = [m for m in render({"referenceAPI": {"enabled": True}}) if m["kind"] == "Deployment"]

    for deployment in found:
        pod = {"apiVersion": "v1", "kind": "Pod", **deployment["spec"]["template"]}
        pod["metadata"] = {"name": "pod", "labels": pod["metadata"]["labels"]}
        pod["spec"]["serviceAccountName"] = "default"
        control_plane.kubectl("apply", "--dry-run=server", "-n", namespace, "-f", "-", input=json.dumps(pod))
    assert len(found) == 2


def test_install_upgrade_and_uninstall(release: Release, crds: Cluster, namespace: str) -> None:
    release.install()
    crds.apply(SAMPLES / "sshcertificateauthority.yaml", "-n", namespace)
    crds.kubectl("wait", "--for=condition=Ready", "sshca/example", "--timeout=60s", "-n", namespace)
    key = crds.kubectl("get", "secret", "edge-edge-operator-reference-api", "-n", namespace, "-o", "jsonpath={.data}")

    release.upgrade(extraEnv=[{"name": "EDGE_OPERATOR_LOG_LEVEL", "value": "debug"}])

    again = crds.kubectl("get", "secret", "edge-edge-operator-reference-api", "-n", namespace, "-o", "jsonpath={.data}")
    assert key == again, "an upgrade keeps the key of the reference API"
    deployment = json.loads(crds.kubectl("get", "deployment", "edge-edge-operator", "-n", namespace, "-o", "json"))
    env = {
        entry["name"]: entry.get("value") for entry in deployment["spec"]["template"]["spec"]["containers"][0]["env"]
    }
    assert env["EDGE_OPERATOR_LOG_LEVEL"] == "debug"

    crds.kubectl("delete", "sshca/example", "--timeout=60s", "-n", namespace)
    release.uninstall()

    kept = crds.kubectl("get", "crd", "-o", "name").split()
    assert {f"customresourcedefinition.apiextensions.k8s.io/{kind.crd}" for kind in KINDS.values()} <= {*kept}
    left = crds.kubectl("get", "deployment,role,rolebinding,serviceaccount", "-n", namespace, "-o", "name").split()
    assert left == ["serviceaccount/default"]


@pytest.mark.fault("the chart is uninstalled while it has resources")
def test_an_uninstall_with_a_drain_empties_the_account_first(
    release: Release, crds: Cluster, namespace: str, service: Service
) -> None:
    """The Job of the hook runs as its own account, while the operator is still there to delete what it made."""
    key = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}}
    crds.apply(json.dumps({**key, "stringData": {"api-key": service.operator_key}}), "-n", namespace)
    mine: dict[str, Any] = {"api": {"url": service.url, "keySecret": {"name": "key"}}, "watchNamespaces": [namespace]}
    own = {"referenceAPI": {"enabled": False}, "rbac": {"aggregate": False}}
    release.install(**mine, **own, drainOnUninstall={"enabled": True, "timeout": "60s"})
    for sample in ("sshcertificateauthority", "sshhostcertificate"):
        crds.apply(SAMPLES / f"{sample}.yaml", "-n", namespace)
    world = World(crds, service, namespace)
    world.ready("SSHHostCertificate", "example", within=40)
    assert len(world.left()) == 2
    assert "-drain" not in crds.kubectl("get", "job,serviceaccount", "-n", namespace, "-o", "name")

    release.uninstall()

    assert world.left() == []
    assert json.loads(crds.kubectl("get", "edge", "-n", namespace, "-o", "json"))["items"] == []
    left = crds.kubectl("get", "deployment,job,role,rolebinding,serviceaccount", "-n", namespace, "-o", "name").split()
    assert left == ["serviceaccount/default"]
    assert release.helm("list", "--short", namespace=namespace).split() == []


def test_helm_waits_for_resources_until_they_are_ready(
    release: Release, crds: Cluster, namespace: str, tmp_path: Path
) -> None:
    release.install()
    mine = chart_of(tmp_path / "mine", *SAMPLES.glob("*.yaml"))

    release.helm("install", "mine", mine, *WAIT, namespace=namespace)

    found = json.loads(crds.kubectl("get", "edge", "-n", namespace, "-o", "json"))["items"]
    ready = {
        item["kind"]: condition["status"]
        for item in found
        for condition in item["status"]["conditions"]
        if condition["type"] == "Ready"
    }
    assert ready == dict.fromkeys(KINDS, "True")
    secret = crds.get(f"/api/v1/namespaces/{namespace}/secrets/example-sshhostcertificate")
    assert secret is not None
    assert b"ssh-ed25519-cert" in base64.b64decode(secret["data"]["ssh-host-key-cert.pub"])

    release.helm("uninstall", "mine", *WAIT, namespace=namespace)

    assert json.loads(crds.kubectl("get", "edge", "-n", namespace, "-o", "json"))["items"] == []


def test_helm_fails_when_a_resource_stalls(release: Release, namespace: str, tmp_path: Path) -> None:
    release.install()
    bad = f"apiVersion: {GROUP}/v1alpha1\nkind: TLSEdge\nmetadata: {{name: bad}}\nspec: {{hostports: [no-port]}}\n"
    mine = chart_of(tmp_path / "mine", bad)

    with pytest.raises(CommandError, match="TLSEdge"):
        release.helm("install", "mine", mine, *WAIT, namespace=namespace)

    release.helm("uninstall", "mine", *WAIT, namespace=namespace)


def test_helm_goes_on_waiting_for_what_a_reference_names(release: Release, namespace: str, tmp_path: Path) -> None:
    """A reference that is not there yet is no failure: it is waited for until the time is up."""
    release.install()
    mine = chart_of(tmp_path / "mine", SAMPLES / "sshhostcertificate.yaml")

    with pytest.raises(CommandError, match=r"InProgress|deadline"):
        release.helm("install", "mine", mine, "--wait", "--timeout", "5s", namespace=namespace)

    release.helm("uninstall", "mine", *WAIT, namespace=namespace)


def test_roles_in_chosen_namespaces_are_enough(release: Release, crds: Cluster, namespace: str) -> None:
    release.install(watchNamespaces=[namespace], rbac={"aggregate": False})

    crds.apply(SAMPLES / "sshcertificateauthority.yaml", "-n", namespace)
    crds.kubectl("wait", "--for=condition=Ready", "sshca/example", "--timeout=60s", "-n", namespace)
    crds.kubectl("delete", "sshca/example", "--timeout=60s", "-n", namespace)

    assert "edge-edge-operator" not in crds.kubectl("get", "clusterrole", "-o", "name")


def test_the_built_in_edit_role_covers_the_resources(release: Release, crds: Cluster, namespace: str) -> None:
    release.install()
    crds.kubectl("create", "rolebinding", "people", "--clusterrole=edit", "--user=somebody", "-n", namespace)

    def may(verb: str, subresource: str = "") -> bool:
        asked = ("auth", "can-i", verb, f"tlsedges.{GROUP}", f"--subresource={subresource}")
        try:
            crds.kubectl(*asked, "--as=somebody", "-n", namespace)
        except CommandError:
            return False
        return True

    wait_until(lambda: may("create"), "the aggregated role", 30)
    assert not may("patch", "status")
