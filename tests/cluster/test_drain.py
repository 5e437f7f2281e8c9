"""`edge-operator drain` on a real API server, with exactly the rights that the chart's Job has."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from chart.chart import render
from cluster.cases import application
from cluster.running import Installation, World
from edge_operator.kinds import KINDS
from harness.cluster import Cluster
from harness.operator import RIGHTS, command, environment


@pytest.fixture
def kubeconfig(crds: Cluster, installation: Installation) -> Iterator[Path]:
    """One that acts as the Job of a release."""
    values = {"drainOnUninstall": {"enabled": True}, "fullnameOverride": f"edge-{installation.namespace}"}
    found = [
        m
        for m in render(values, "--namespace", installation.namespace)
        if m["kind"] in RIGHTS and m["metadata"]["name"].endswith("-drain")
    ]
    manifests = json.dumps({"apiVersion": "v1", "kind": "List", "items": found})
    crds.apply(manifests)
    (account,) = (m["metadata"]["name"] for m in found if m["kind"] == "ServiceAccount")
    yield crds.service_account_kubeconfig(installation.namespace, account)
    crds.kubectl("delete", "--wait=false", "-f", "-", input=manifests)


def drain(kubeconfig: Path, *args: str) -> subprocess.CompletedProcess[str]:
    words = command("drain", "--kubeconfig", str(kubeconfig), *args)
    return subprocess.run(words, text=True, capture_output=True, check=False, timeout=90, env=environment())


def test_a_drain_leaves_neither_resources_nor_objects_and_names_who_holds_it_up(world: World, kubeconfig: Path) -> None:
    world.apply(application())
    for kind in KINDS:
        world.ready(kind, "example")

    asked = drain(kubeconfig, "--namespace", world.namespace)
    assert (asked.returncode, asked.stdout.count("\n")) == (2, len(application_resources(world)) + 1)
    assert "add --yes" in asked.stdout

    world.change("TLSEdge", "example", {"metadata": {"annotations": {"edge-operator.dev/paused": "true"}}})
    held = drain(kubeconfig, "--namespace", world.namespace, "--yes", "--timeout", "6s")
    assert held.returncode == 1, held.stdout
    assert f"TLSEdge {world.namespace}/example: DeletionBlocked: paused by annotation; take it off" in held.stdout

    world.change("TLSEdge", "example", {"metadata": {"annotations": {"edge-operator.dev/paused": None}}})
    done = drain(kubeconfig, "--yes", "--timeout", "60s")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("all resources are gone\n")
    assert application_resources(world) == []
    assert world.left() == []


def application_resources(world: World) -> list[str]:
    pages = (world.cluster.request("GET", world.path(kind)) for kind in KINDS)
    return [item["metadata"]["name"] for page in pages for item in page["items"]]
