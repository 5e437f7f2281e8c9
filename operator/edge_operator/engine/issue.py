"""When a certificate is issued, renewed, re-issued or written again.

Source: reconciliation of issued certificates follows cert-manager: renewal at `renewBefore` or after two thirds of the
actual lifetime, with jitter that stays the same for a resource.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

from edge_operator.engine import ssh
from edge_operator.engine import verdict as judging
from edge_operator.engine.operations import KeyPair, KeyRequest, Operation, Publish, Read, Stalled
from edge_operator.engine.reasons import Events, Stalls
from edge_operator.engine.state import Desired, Published, Recorded, Sight, parsed, stamp
from edge_operator.engine.verdict import Verdict, secret_name

JITTER = 20
"""Renewal is early by up to a twentieth of the lifetime, so that a fleet does not renew at one time."""


EVENT = Events.CERTIFICATE_ISSUED


def verdict(desired: Desired, recorded: Recorded, sight: Sight, now: datetime) -> Verdict:
    """Judge the certificate that is recorded or was found.

    Raises:
        Stalled: the certificate would be due before it is valid, or its fixed end has passed.
    """
    current = sight.found or recorded.id
    if sight.missing:
        return Verdict(replace=True, why="the certificate vanished from the service")
    if current is None:
        return Verdict(replace=True, why="first certificate")
    if desired.spec.private_key is not None and _kept(sight, current) is None:
        return Verdict(replace=True, why="the private key is not in the Secret")
    if sight.rotate:
        return Verdict(replace=True, why="rotation was asked for")
    if changed := judging.changed(desired, recorded, sight):
        return Verdict(replace=True, why=f"{', '.join(changed)} changed")
    end = due(desired, recorded, sight)
    if judging.overdue(end, sight, now):
        return Verdict(replace=True, why="due for renewal")
    return Verdict(publish=not _complete(desired, sight.published, current), due=end)


def _complete(desired: Desired, published: Published | None, current: str) -> bool:
    wanted = {o.key for o in desired.kind.outputs if o.source != "private_key" or desired.spec.private_key is not None}
    return published is not None and published.id == current and wanted <= published.keys


def _kept(sight: Sight, current: str) -> KeyPair | None:
    """The operator-made key pair of the current certificate, if the Secret still has it."""
    published = sight.published
    return published.key_pair if published is not None and published.ours and published.id == current else None


def due(desired: Desired, recorded: Recorded, sight: Sight) -> datetime | None:
    """When the certificate is to be renewed; None for a fixed end, or where the service did not say its validity.

    Its life begins when it is made: with a fixed start long ago, each new one would be due at once.
    """
    answer = sight.answer or {}
    made = answer.get("created_at") or recorded.status.get("createdAt")
    after = answer.get("valid_after") or recorded.status.get("validAfter")
    until = answer.get("valid_until") or recorded.status.get("validUntil")
    if not after or not until or desired.spec.valid_until is not None:
        return None
    try:
        begin, end = parsed(after), parsed(until)
    except ValueError:
        return None
    if begin < (issued := _moment(made)) < end:
        begin = issued
    before = desired.spec.renew_before
    if before is not None and before >= end - begin:
        raise Stalled(
            Stalls.LIFETIME_TOO_SHORT,
            f"spec.renewBefore: {_hours(before)} is not shorter than the certificate's lifetime, {_hours(end - begin)}",
        )
    lead = before if before is not None else (end - begin) / 3
    return end - lead - (end - begin - lead) / JITTER * _fraction(desired.identity.uid)


def _moment(text: str | None) -> datetime:
    """When a certificate was made; the beginning of time where the service does not say it readably."""
    try:
        return parsed(text or "")
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)


def _hours(span: timedelta) -> str:
    return f"{span.total_seconds() / 3600:g}h"


def _fraction(uid: str) -> float:
    """A number from 0 to 1 that stays the same for a resource."""
    return int.from_bytes(hashlib.sha256(uid.encode()).digest()[:4], "big") / 2**32


def body(desired: Desired, now: datetime) -> dict[str, Any]:
    """What a request for issuance says besides the spec's own fields.

    Raises:
        Stalled: the fixed end of validity has passed.
    """
    spec = desired.spec
    end, begin = _fixed(spec.valid_until, "validUntil"), _fixed(spec.valid_after, "validAfter")
    if end is not None and end <= now:
        raise Stalled(
            Stalls.LIFETIME_TOO_SHORT,
            f"spec.validUntil: {spec.valid_until} has passed; set a later end, or use validFor",
        )
    if spec.valid_for is None:
        return {}
    return {"valid_until": stamp(max(begin or now, now) + spec.valid_for)}


def _fixed(text: str | None, field: str) -> datetime | None:
    try:
        return None if text is None else parsed(text)
    except ValueError:
        raise Stalled(
            Stalls.INVALID_SPEC, f"spec.{field}: {text!r} should be an RFC 3339 time such as 2030-01-02T03:04:05Z"
        ) from None


def key(desired: Desired, sight: Sight) -> KeyRequest | KeyPair | None:
    """The key pair to sign: a new one, the one that is kept, or none where the user gave a public key."""
    wanted, published = desired.spec.private_key, sight.published
    if wanted is None:
        return None
    if (
        wanted.rotation_policy == "Never"
        and published is not None
        and published.ours
        and published.key_pair is not None
        and ssh.fits(published.key_pair.public, wanted.algorithm, wanted.size)
    ):
        return published.key_pair
    return KeyRequest(wanted.algorithm, wanted.size)


def publish(desired: Desired, recorded: Recorded, sight: Sight, verdict: Verdict) -> tuple[Operation, ...]:
    """Write the Secret after a creation."""
    del recorded, sight, verdict
    return (Publish(secret_name(desired)),)


def republish(desired: Desired, sight: Sight, current: str) -> tuple[Operation, ...]:
    """Write the Secret again from what the service can still be asked for."""
    read = () if sight.answer is not None else (Read(current, desired.path),)
    return (*read, Publish(secret_name(desired), _kept(sight, current)))
