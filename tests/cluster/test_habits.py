"""What people do with kubectl, done with the real one under a running operator: apply, wait, get, describe, delete."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from typing import Any

import pytest

from cluster.cases import application
from cluster.running import World
from edge_operator.declare import Issued, Token, Uploaded
from edge_operator.kinds import KINDS
from harness.cluster import CommandError
from harness.processes import wait_until

FIRST = {Issued: "CertificateIssued", Token: "TokenIssued", Uploaded: "CertificateUploaded"}
"""The first event of a resource, by its life; of others it is Created."""
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def kubectl(world: World, *args: str, manifests: Sequence[dict[str, Any]] = ()) -> str:
    """What kubectl prints, in the namespace of the test."""
    stdin = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)}) if manifests else None
    source = ["-f", "-"] if manifests else []
    return world.cluster.kubectl("--namespace", world.namespace, *args, *source, input=stdin)


def applied(world: World, manifests: Sequence[dict[str, Any]]) -> None:
    """Apply in one command, and wait in another."""
    kubectl(world, "apply", manifests=manifests)
    kubectl(world, "wait", "edge", "--all", "--for=condition=Ready", "--timeout=30s")


@pytest.mark.fault("everything is applied and deleted at once, in any order")
@pytest.mark.parametrize("seed", ["forwards", "backwards", 1])
def test_a_whole_application_is_applied_and_deleted_in_one_command_in_any_order(world: World, seed: str | int) -> None:
    manifests = application()
    if seed == "backwards":
        manifests.reverse()
    elif seed != "forwards":
        random.Random(seed).shuffle(manifests)  # an order, no secret

    applied(world, manifests)
    resources = [world.get(kind, "example") for kind in KINDS]
    counts = {r["kind"]: len(world.service.owned(r)) for r in resources if r is not None}
    assert counts == dict.fromkeys(KINDS, 1)

    random.Random(seed).shuffle(manifests)  # as above
    kubectl(world, "delete", "--timeout=30s", manifests=manifests)
    assert world.left() == []
    secrets = world.cluster.request("GET", f"/api/v1/namespaces/{world.namespace}/secrets")["items"]
    assert [s["metadata"]["name"] for s in secrets if s["metadata"].get("ownerReferences")] == []


def test_kubectl_shows_what_is_there(world: World) -> None:
    """One application, looked at in every way: by category, by short name, by columns, by description."""
    applied(world, application())

    shown = kubectl(world, "get", "edge")
    for kind in KINDS.values():
        found = world.ready(kind.name, "example")
        row = rf"^{kind.name.lower()}\S*/example +True +Available +{found['status']['id']} "
        assert re.search(row, shown, re.MULTILINE), shown

        head, row = kubectl(world, "get", kind.short[0]).splitlines()
        titles = [column.name.upper() for column in kind.columns]
        assert head.split() == ["NAME", "READY", "REASON", "ID", *titles, "AGE"]
        assert "<none>" not in row
        assert row.split()[:4] == ["example", "True", "Available", found["status"]["id"]]

    wait_until(lambda: len(kubectl(world, "get", "events", "-o", "name").split()) >= len(KINDS), "events")
    for kind in KINDS.values():
        described = kubectl(world, "describe", kind.name.lower(), "example")
        events = described.rpartition("Events:")[2]
        expected = FIRST.get(type(kind.lifecycle), "Created")
        assert re.search(rf"Normal +{expected} +\S+ +edge-operator +\S", events), described


def test_kubectl_wait_sees_a_change_that_is_not_done_yet(world: World) -> None:
    """A condition about an older generation does not count: `wait` fails on a change that the service refuses."""
    (manifest,) = (m for m in application() if m["kind"] == "HTTPSRoute")
    applied(world, application())

    manifest["spec"]["webhookVerification"]["provider"] = "nobody"
    kubectl(world, "apply", manifests=[manifest])

    with pytest.raises(CommandError, match="timed out"):
        kubectl(world, "wait", "hsr/example", "--for=condition=Ready", "--timeout=1s")
    kubectl(world, "wait", "hsr/example", "--for=condition=Stalled", "--timeout=10s")
    reason = kubectl(world, "get", "hsr/example", "-o", 'jsonpath={.status.conditions[?(@.type=="Ready")].reason}')
    assert reason == "InvalidSpec"
    described = kubectl(world, "describe", "hsr/example")
    assert re.search(r"Warning +InvalidSpec", described), described


@every_kind
def test_kubectl_explain_tells_of_the_kind_and_its_fields(world: World, kind: Any) -> None:
    text = kubectl(world, "explain", f"{kind.plural}.spec", "--recursive")

    assert f"KIND:       {kind.name}" in text
    for field in kind.spec.model_fields.values():
        assert f"\n  {field.alias}\t" in text, text
