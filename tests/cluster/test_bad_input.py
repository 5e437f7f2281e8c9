"""What `kubectl apply` refuses, and what it says. The table is shared with `tests/derive/test_rules.py`."""

from __future__ import annotations

from typing import Any

import pytest

from derive.specs import CASES, MOVES, Case, Move, manifest, merge
from edge_operator.declare import GROUP, VERSION
from edge_operator.derive import samples
from edge_operator.kinds import DECLARED
from harness.cluster import APIError, Cluster

FIELD = "edge-operator-tests"


def collection(kind: str, namespace: str) -> str:
    declared = DECLARED[kind]
    return f"/apis/{GROUP}/{VERSION}/{f'namespaces/{namespace}/' if declared.namespaced else ''}{declared.plural}"


def answer(cluster: Cluster, method: str, path: str, body: dict[str, Any]) -> str:
    """What the API server has against a resource; empty when it takes it. Nothing is kept."""
    try:
        cluster.request(method, path, body, dryRun="All", fieldValidation="Strict", fieldManager=FIELD)
    except APIError as error:
        return error.message if error.status in {400, 422} else f"another error: {error}"
    return ""


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_api_server_refuses_bad_specs_and_says_what_to_write(crds: Cluster, case: Case) -> None:
    found = answer(crds, "POST", collection(case.kind, "default"), case.manifest)

    assert bool(found) == bool(case.message), found
    assert case.message in found


@pytest.mark.parametrize("move", MOVES, ids=str)
def test_what_is_fixed_at_creation_stays(crds: Cluster, namespace: str, move: Move) -> None:
    sample = samples.spec(DECLARED[move.kind])
    before, after = merge(sample, move.before), merge(sample, move.after)
    path = collection(move.kind, namespace)
    made = crds.request("POST", path, manifest(move.kind, before))
    changed = {**manifest(move.kind, after), "metadata": made["metadata"]}

    found = answer(crds, "PUT", f"{path}/example", changed)

    assert bool(found) == bool(move.message), found
    assert move.message in found


def test_a_message_names_the_place_what_was_found_and_what_is_expected(crds: Cluster) -> None:
    case = next(case for case in CASES if case.reason == "a wrong child" and case.kind == "WeightedBackend")

    found = answer(crds, "POST", collection(case.kind, "default"), case.manifest)

    assert 'spec.backends[0].ref.id: Invalid value: "edgtls_1": should start with bkdwd_' in found


def test_a_message_does_not_repeat_a_secret_in_the_open(crds: Cluster) -> None:
    """Somebody who writes the value where a reference belongs should not read it again in a log."""
    case = next(case for case in CASES if case.reason == "a secret in the open")

    found = answer(crds, "POST", collection(case.kind, "default"), case.manifest)

    assert "hunter2" not in found
