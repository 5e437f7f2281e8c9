"""What holds for every status that is ever written. Source: kstatus; Kubernetes API conventions, conditions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from derive import argo
from edge_operator.engine import reasons

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_FAMILIES = {
    "Reconciling": {str(r) for r in reasons.Waits},
    "Stalled": {str(r) for r in reasons.Stalls},
    "DriftDetected": {"Drifted"},
    "Paused": {"Paused"},
}
_DIGEST = re.compile(r"[A-Za-z0-9_-]{16}")


class IllegalStatus(AssertionError):
    """A status that breaks a rule; the message says which."""


def check(resource: Mapping[str, Any], before: Mapping[str, Any], secrets: Iterable[str] = ()) -> None:
    """Hold the resource's status, as stored, to the rules; `before` is the status that it replaced."""
    status = resource.get("status") or {}
    found = {c["type"]: c for c in status.get("conditions") or ()}
    _expect(len(found) == len(status.get("conditions") or ()), "a condition stands there twice", status)
    _check_families(found, status)
    generation = resource["metadata"].get("generation", 1)
    _expect(1 <= status.get("observedGeneration", -1) <= generation, "observedGeneration is not set", status)
    for condition in found.values():
        _check_condition(condition, generation, status)
    _expect(argo.agrees(resource), "Argo CD and kstatus disagree", status)
    _check_times(found, {c["type"]: c for c in before.get("conditions") or ()}, status)
    _expect(all(_DIGEST.fullmatch(d) for d in (status.get("applied") or {}).values()), "not a digest", status)
    _expect(status.get("previous") != [] and status.get("applied") != {}, "empty members are left out", status)
    text = json.dumps(resource)
    for secret in secrets:
        _expect(secret not in text and json.dumps(secret)[1:-1] not in text, "it shows a secret", status)


def _check_families(found: Mapping[str, Any], status: Any) -> None:
    _expect("Ready" in found, "Ready is missing", status)
    _expect(found.keys() <= {"Ready", *_FAMILIES}, "an unknown condition", status)
    _expect(not {"Reconciling", "Stalled"} <= found.keys(), "Reconciling and Stalled at once", status)
    for type_, family in _FAMILIES.items():
        if type_ in found:
            _expect(found[type_]["status"] == "True", f"{type_} stands there without being true", status)
            _expect(found[type_]["reason"] in family, f"the reason does not fit {type_}", status)
    ready, busy = found["Ready"], {"Reconciling", "Stalled"} & found.keys()
    if ready["status"] == "True":
        _expect(not busy, f"Ready and {busy}", status)
        _expect(ready["reason"] in {str(r) for r in reasons.Ready}, "the reason does not fit Ready=True", status)
    else:
        _expect(ready["status"] == "False", "Ready is neither True nor False", status)
        _expect(bool(busy), "not Ready, and neither Reconciling nor Stalled", status)
        _expect(all(found[t]["reason"] == ready["reason"] for t in busy), "two reasons for one state", status)


def _check_condition(condition: Mapping[str, Any], generation: int, status: Any) -> None:
    _expect(1 <= condition.get("observedGeneration", -1) <= generation, "a condition without generation", status)
    _expect(bool(_TIME.fullmatch(condition["lastTransitionTime"])), "a time that is not RFC 3339 in UTC", status)
    message = condition["message"]
    _expect(0 < len(message) <= 1024, "a message that is empty or too long", status)
    _expect(message == message.strip() and "\n" not in message, "a message of several lines", status)


def _check_times(after: Mapping[str, Any], before: Mapping[str, Any], status: Any) -> None:
    for type_ in after.keys() & before.keys():
        moved = after[type_]["lastTransitionTime"] != before[type_]["lastTransitionTime"]
        changed = after[type_]["status"] != before[type_]["status"]
        _expect(changed or not moved, f"the transition time of {type_} moved without a transition", status)


def _expect(holds: bool, rule: str, status: Any) -> None:
    if not holds:
        raise IllegalStatus(f"{rule}: {json.dumps(status, indent=1)}")
