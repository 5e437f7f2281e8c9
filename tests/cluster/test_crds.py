"""The derived CRDs on a real API server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edge_operator.declare import GROUP, VERSION, Kind
from edge_operator.kinds import KINDS
from harness.cluster import MERGE_PATCH, Cluster

ROOT = Path(__file__).parents[2]
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def collection(kind: Kind[Any], namespace: str) -> str:
    return f"/apis/{GROUP}/{VERSION}/namespaces/{namespace}/{kind.plural}"


def sample(kind: Kind[Any]) -> Path:
    return ROOT / "docs" / "samples" / f"{kind.name.lower()}.yaml"


def test_crds_are_accepted_without_a_warning(crds: Cluster) -> None:
    crds.kubectl("apply", "--server-side", "--force-conflicts", "--warnings-as-errors", "-f", ROOT / "crds")


def test_crds_fit_a_plain_apply_too(crds: Cluster) -> None:
    """Without --server-side, kubectl keeps a copy of the manifest in an annotation of bounded size."""
    crds.kubectl("apply", "--dry-run=server", "-f", ROOT / "crds")


@every_kind
def test_the_api_server_serves_a_structural_schema(crds: Cluster, kind: Kind[Any]) -> None:
    found = crds.request("GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{kind.crd}")
    conditions = {condition["type"]: condition["status"] for condition in found["status"]["conditions"]}

    assert conditions["Established"] == "True"
    assert conditions["NamesAccepted"] == "True"
    assert conditions.get("NonStructuralSchema", "False") == "False"


@every_kind
def test_samples_are_accepted_without_a_warning(crds: Cluster, namespace: str, kind: Kind[Any]) -> None:
    crds.kubectl("apply", "--warnings-as-errors", "--validate=strict", "-n", namespace, "-f", sample(kind))


@every_kind
def test_samples_can_be_applied_by_the_server(crds: Cluster, namespace: str, kind: Kind[Any]) -> None:
    """As Helm, Flux and Argo CD do, twice, so that the second has something to merge with."""
    for manager in ("one", "other"):
        crds.apply(sample(kind), "-n", namespace, "--field-manager", manager, server_side=True)


@every_kind
def test_an_untouched_resource_says_that_it_was_not_seen(crds: Cluster, namespace: str, kind: Kind[Any]) -> None:
    crds.apply(sample(kind), "-n", namespace)

    found = crds.get(f"{collection(kind, namespace)}/example")

    assert found is not None
    assert found["status"] == {"observedGeneration": -1}


@every_kind
def test_resources_are_found_by_short_name_category_and_id(crds: Cluster, namespace: str, kind: Kind[Any]) -> None:
    crds.apply(sample(kind), "-n", namespace)
    path = f"{collection(kind, namespace)}/example/status"
    crds.request("PATCH", path, {"status": {"id": f"{kind.api.prefix}1"}}, content_type=MERGE_PATCH)

    by_short = crds.kubectl("get", kind.short[0], "-n", namespace, "-o", "name")
    by_category = crds.kubectl("get", "edge", "-n", namespace, "-o", "name")
    by_id = crds.request("GET", collection(kind, namespace), fieldSelector=f"status.id={kind.api.prefix}1")
    by_other = crds.request("GET", collection(kind, namespace), fieldSelector=f"status.id={kind.api.prefix}2")

    assert by_short.split() == by_category.split() == [f"{kind.name.lower()}.{GROUP}/example"]
    assert [item["metadata"]["name"] for item in by_id["items"]] == ["example"]
    assert by_other["items"] == []


def test_kubectl_get_prints_the_columns(crds: Cluster, namespace: str) -> None:
    kind = KINDS["SSHHostCertificate"]
    crds.apply(sample(kind), "-n", namespace)
    status = {
        "id": "shcrt_1",
        "secretName": "example-sshhostcertificate",
        "validUntil": "2999-01-01T00:00:00Z",
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "Available",
                "message": "",
                "lastTransitionTime": "2026-01-02T03:04:05Z",
            }
        ],
    }
    path = f"{collection(kind, namespace)}/example/status"
    crds.request("PATCH", path, {"status": status}, content_type=MERGE_PATCH)

    head, row = crds.kubectl("get", "shc", "-n", namespace).splitlines()

    assert head.split() == ["NAME", "READY", "REASON", "ID", "SECRET", "VALID-UNTIL", "AGE"]
    expected = ["example", "True", "Available", "shcrt_1", "example-sshhostcertificate", "2999-01-01T00:00:00Z"]
    assert row.split()[:-1] == expected


def test_two_conditions_of_one_type_are_refused(crds: Cluster, namespace: str) -> None:
    kind = KINDS["SSHCertificateAuthority"]
    crds.apply(sample(kind), "-n", namespace)
    path = f"{collection(kind, namespace)}/example/status"
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "A",
        "message": "",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    }

    with pytest.raises(Exception, match="Duplicate value"):
        crds.request("PATCH", path, {"status": {"conditions": [ready, ready]}}, content_type=MERGE_PATCH)


def fields(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every field of a published schema."""
    for name, child in schema.get("properties", {}).items():
        yield f"{path}{name}", child
        yield from fields(child, f"{path}{name}.")
        yield from fields(child.get("items", {}), f"{path}{name}[].")


@every_kind
def test_kubectl_explain_has_text_for_every_field(crds: Cluster, kind: Kind[Any]) -> None:
    """`kubectl explain` prints what this document says."""
    document = crds.request("GET", f"/openapi/v3/apis/{GROUP}/{VERSION}")
    document = json.loads(document) if isinstance(document, str) else document
    reversed_group = ".".join(reversed(GROUP.split(".")))
    schema = document["components"]["schemas"][f"{reversed_group}.{VERSION}.{kind.name}"]

    silent = [path for path, child in fields(schema) if not child.get("description") and "metadata" not in path]

    assert silent == []


def test_kubectl_explain_shows_the_text_of_the_declaration(crds: Cluster) -> None:
    shown = crds.kubectl("explain", "httpsroute.spec.circuitBreaker.errorThresholdPercentage")

    assert "Fraction of failed requests between 0 and 1.0 (not 0 to 100)." in shown
