"""Argo CD's health script in the Lua that Argo CD has: no `string`, no `os`, no `io`."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Any

import pytest

from derive.argo import agrees, judge
from edge_operator.derive import health
from edge_operator.kinds import KINDS


def resource(*conditions: tuple[str, str], generation: int = 3, observed: int = 3, **metadata: Any) -> dict[str, Any]:
    listed = [{"type": t, "status": s, "reason": "Word", "message": f"{t} is {s}"} for t, s in conditions]
    status = {"observedGeneration": observed, "conditions": listed}
    return {"metadata": {"name": "a", "generation": generation, **metadata}, "status": status}


@dataclass(frozen=True)
class Case:
    reason: str
    resource: dict[str, Any]
    status: str
    message: str = field(default="")


READY, WAITS = ("Ready", "True"), ("Ready", "False")
CASES = [
    Case("in sync", resource(READY), "Healthy", "Ready is True"),
    Case("waiting for a reference", resource(WAITS, ("Reconciling", "True")), "Progressing", "Reconciling is True"),
    Case("stalled", resource(WAITS, ("Stalled", "True")), "Degraded", "Stalled is True"),
    Case("not ready, nothing else said", resource(WAITS), "Progressing", "Ready is False"),
    Case("unknown", resource(("Ready", "Unknown")), "Progressing", "Ready is Unknown"),
    Case("in sync, with drift on record", resource(READY, ("DriftDetected", "True")), "Healthy", "Ready is True"),
    Case("paused while in sync", resource(READY, ("Paused", "True")), "Healthy", "Ready is True"),
    Case("edited since", resource(READY, observed=2), "Progressing", "waiting for the operator to look"),
    Case("never seen", resource(observed=-1), "Progressing", "waiting for the operator to look"),
    Case("stalled, then edited", resource(WAITS, ("Stalled", "True"), observed=2), "Progressing", "waiting for"),
    Case(
        "being deleted",
        resource(READY, deletionTimestamp="2026-01-02T03:04:05Z"),
        "Progressing",
        "being deleted",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_argo_cd_shows_how_a_resource_is(case: Case) -> None:
    status, message = judge(case.resource)

    assert (case.status, case.message) == (status, message[: len(case.message)])


def test_argo_cd_and_kstatus_agree_on_every_status() -> None:
    values = ("True", "False", "Unknown", None)
    for ready, reconciling, stalled, observed, deleted in product(
        values[:3], values, values, (3, 2, -1), (False, True)
    ):
        given = [("Ready", ready), ("Reconciling", reconciling), ("Stalled", stalled)]
        metadata: dict[str, Any] = {"deletionTimestamp": "2026-01-02T03:04:05Z"} if deleted else {}
        tried = resource(*((t, s) for t, s in given if s is not None), observed=observed, **metadata)
        assert agrees(tried), tried


@pytest.mark.parametrize("status", [None, {}, {"observedGeneration": 3}])
def test_argo_cd_waits_for_a_status(status: dict[str, Any] | None) -> None:
    """kstatus would call such a resource done; the default of observedGeneration keeps it from coming to that."""
    tried = {"metadata": {"generation": 3}} | ({"status": status} if status is not None else {})

    assert judge(tried)[0] == "Progressing"


def test_every_kind_has_the_script_under_argo_cds_own_name() -> None:
    names = [f"resource.customizations.health.edge-operator.dev_{kind}" for kind in KINDS]

    assert health.config_map(KINDS.values())["data"] == dict.fromkeys(names, health.SCRIPT)
