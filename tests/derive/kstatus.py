"""The verdict of kstatus on a custom resource. Source: sigs.k8s.io/cli-utils, pkg/kstatus/status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Verdict = Literal["Current", "InProgress", "Failed", "Terminating"]


def verdict(resource: Mapping[str, Any]) -> Verdict:
    """What `helm --wait`, Flux and `kubectl` plugins make of a resource."""
    metadata, status = resource["metadata"], resource.get("status", {})
    if metadata.get("deletionTimestamp"):
        return "Terminating"
    if "observedGeneration" in status and status["observedGeneration"] != metadata["generation"]:
        return "InProgress"
    conditions = {condition["type"]: condition["status"] for condition in status.get("conditions", ())}
    if conditions.get("Reconciling") == "True":
        return "InProgress"
    if conditions.get("Stalled") == "True":
        return "Failed"
    return "Current" if conditions.get("Ready", "True") == "True" else "InProgress"
