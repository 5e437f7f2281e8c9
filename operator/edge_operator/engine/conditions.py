"""Says in status how things stand. Source: kstatus; Kubernetes API conventions, Typical status properties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from edge_operator.engine import reasons
from edge_operator.engine.state import stamp

Condition = Mapping[str, Any]
MESSAGE_LIMIT = 1024


@dataclass(frozen=True)
class Verdict:
    """How a pass ended: one reason decides which conditions are true."""

    reason: StrEnum
    message: str
    drift: tuple[str, ...] = ()
    paused: bool = False

    @property
    def ready(self) -> bool:
        """Whether the resource is in sync."""
        return isinstance(self.reason, reasons.Ready)


def conditions(verdict: Verdict, before: Sequence[Condition], generation: int, now: datetime) -> list[dict[str, Any]]:
    """The conditions that say so. A transition time moves only when a condition's status does."""
    message = verdict.message[:MESSAGE_LIMIT]
    old = {c["type"]: c for c in before}
    wanted = [("Ready", "True" if verdict.ready else "False", str(verdict.reason), message)]
    if isinstance(verdict.reason, reasons.Waits):
        wanted.append(("Reconciling", "True", str(verdict.reason), message))
    elif isinstance(verdict.reason, reasons.Stalls):
        wanted.append(("Stalled", "True", str(verdict.reason), message))
    if verdict.drift:
        paths = ", ".join(f"spec.{p}" for p in verdict.drift)
        wanted.append(
            ("DriftDetected", "True", "Drifted", f"the service holds something else at {paths}"[:MESSAGE_LIMIT])
        )
    elif verdict.paused and "DriftDetected" in old:
        wanted.append(("DriftDetected", "True", "Drifted", old["DriftDetected"]["message"]))
    if verdict.paused:
        wanted.append(("Paused", "True", "Paused", "reconciliation is paused by annotation"))
    return [_condition(old.get(t), t, status, reason, text, generation, now) for t, status, reason, text in wanted]


def _condition(
    before: Condition | None, type_: str, status: str, reason: str, message: str, generation: int, now: datetime
) -> dict[str, Any]:
    same = before is not None and before.get("status") == status
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": generation,
        "lastTransitionTime": before["lastTransitionTime"] if same and before else stamp(now),
    }


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """A merge patch from one status to another, null where a member goes; empty where nothing changed.

    Source: RFC 7386.
    """
    patch: dict[str, Any] = {key: None for key in before if key not in after}
    for key, value in after.items():
        old = before.get(key)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            if inner := difference(old, value):
                patch[key] = inner
        elif key not in before or old != value:
            patch[key] = value
    return patch
