"""When a TLS certificate is uploaded: first, and again whenever its Secret holds another one that can serve."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from edge_operator.engine import verdict as judging
from edge_operator.engine import x509
from edge_operator.engine.operations import Operation
from edge_operator.engine.reasons import Events
from edge_operator.engine.state import Desired, Recorded, Sight
from edge_operator.engine.verdict import Verdict

EVENT = Events.CERTIFICATE_UPLOADED


def verdict(desired: Desired, recorded: Recorded, sight: Sight, now: datetime) -> Verdict:
    """Judge the certificate that is recorded or was found against the Secret.

    Raises:
        Stalled: the Secret's certificate cannot serve; what was uploaded before goes on serving.
    """
    current = sight.found or recorded.id
    why = ""
    if current is None:
        why = "first upload"
    elif sight.missing:
        why = "it vanished from the service"
    elif judging.changed(desired, recorded, sight):
        why = "the Secret holds another certificate"
    if not why or desired.adopted:
        return Verdict(replace=bool(why), why=why)
    where = f"spec.secretRef: Secret {desired.spec.secret_ref.name!r}"
    x509.verify(desired.plain["certificate_pem"], desired.plain["private_key_pem"], where=where, now=now)
    return Verdict(replace=True, why=why)


def body(desired: Desired, now: datetime) -> Mapping[str, Any]:
    """Nothing besides the spec."""
    del desired, now
    return {}


def key(desired: Desired, sight: Sight) -> None:
    """None: the key is in the Secret."""
    del desired, sight


def publish(desired: Desired, recorded: Recorded, sight: Sight, verdict: Verdict) -> tuple[Operation, ...]:
    """Nothing: an upload has no output."""
    del desired, recorded, sight, verdict
    return ()


def republish(desired: Desired, sight: Sight, current: str) -> tuple[Operation, ...]:
    """Nothing."""
    del desired, sight, current
    return ()
