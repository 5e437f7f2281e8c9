"""When a certificate is issued, renewed, re-issued or written again.

Source: reconciliation of issued certificates follows cert-manager: renewal at `renewBefore` or after two thirds of the
actual lifetime, with jitter that stays the same for a resource.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from edge_operator.declare import Kind
from edge_operator.engine import compare, ssh
from edge_operator.engine.operations import KeyPair, KeyRequest, Operation, Publish, Read, Stalled
from edge_operator.engine.project import Field, fields
from edge_operator.engine.reasons import Stalls
from edge_operator.engine.state import Desired, Published, Recorded, Sight, parsed, stamp

JITTER = 20
"""Renewal is early by up to a twentieth of the lifetime, so that a fleet does not renew at one time."""


@dataclass(frozen=True)
class Verdict:
    """Whether to issue anew, or to write the Secret again, why, and when to look again."""

    issue: bool = False
    publish: bool = False
    why: str = ""
    due: datetime | None = None


def verdict(desired: Desired, recorded: Recorded, sight: Sight, now: datetime) -> Verdict:
    """Judge the certificate that is recorded or was found.

    Raises:
        Stalled: the certificate would be due before it is valid, or its fixed end has passed.
    """
    current = sight.found or recorded.id
    if sight.missing:
        return Verdict(issue=True, why="the certificate vanished from the service")
    if current is None:
        return Verdict(issue=True, why="first certificate")
    if desired.spec.private_key is not None and _kept(sight, current) is None:
        return Verdict(issue=True, why="the private key is not in the Secret")
    if changed := _changed(desired, recorded, sight):
        return Verdict(issue=True, why=f"{', '.join(changed)} changed")
    due = renewal(desired, recorded, sight)
    if due is not None and now >= due:
        return Verdict(issue=True, why="due for renewal")
    return Verdict(publish=not _complete(desired, sight.published, current), due=due)


def _complete(desired: Desired, published: Published | None, current: str) -> bool:
    wanted = {o.key for o in desired.kind.outputs if o.source != "private_key" or desired.spec.private_key is not None}
    return published is not None and published.id == current and wanted <= published.keys


def _kept(sight: Sight, current: str) -> KeyPair | None:
    """The operator-made key pair of the current certificate, if the Secret still has it."""
    published = sight.published
    return published.key_pair if published is not None and published.ours and published.id == current else None


def _changed(desired: Desired, recorded: Recorded, sight: Sight) -> list[str]:
    """Spec fields of which a change needs a new certificate and that did change."""
    marked = [f for f in fields(type(desired.spec)) if f.reissues]
    if not recorded.applied and sight.answer is not None:
        have = compare.held(desired.kind, sight.answer)
        comparable = [f for f in marked if f.wire in desired.plain and f.wire in have]
        return [f.alias for f in comparable if not _alike(f, desired.plain[f.wire], have[f.wire])]
    return [f.alias for f in marked if recorded.applied.get(f.alias) != desired.applied.get(f.alias)]


def _alike(field: Field, want: Any, have: Any) -> bool:
    """Whether the service holds the same, whatever way it writes a time or ends a line."""
    if not compare.differences(field, want, have):
        return True
    if not isinstance(want, str) or not isinstance(have, str):
        return False
    try:
        return parsed(want) == parsed(have)
    except ValueError:
        return want.split()[:2] == have.split()[:2]  # a key in OpenSSH format may have a comment


def renewal(desired: Desired, recorded: Recorded, sight: Sight) -> datetime | None:
    """When the certificate is to be renewed; None for a fixed end, or where the service did not say its validity."""
    answer = sight.answer or {}
    after = answer.get("valid_after") or recorded.status.get("validAfter")
    until = answer.get("valid_until") or recorded.status.get("validUntil")
    if not after or not until or desired.spec.valid_until is not None:
        return None
    try:
        begin, end = parsed(after), parsed(until)
    except ValueError:
        return None
    before = desired.spec.renew_before
    if before is not None and before >= end - begin:
        raise Stalled(
            Stalls.LIFETIME_TOO_SHORT,
            f"spec.renewBefore: {_hours(before)} is not shorter than the certificate's lifetime, {_hours(end - begin)}",
        )
    lead = before if before is not None else (end - begin) / 3
    return end - lead - (end - begin - lead) / JITTER * _fraction(desired.identity.uid)


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
    return {"valid_until": stamp((begin or now) + spec.valid_for)}


def _fixed(text: str | None, field: str) -> datetime | None:
    try:
        return None if text is None else parsed(text)
    except ValueError:
        raise Stalled(
            Stalls.INVALID_SPEC, f"spec.{field}: {text!r} should be an RFC 3339 time such as 2030-01-02T03:04:05Z"
        ) from None


def key(desired: Desired, published: Published | None) -> KeyRequest | KeyPair | None:
    """The key pair to sign: a new one, the one that is kept, or none where the user gave a public key."""
    wanted = desired.spec.private_key
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


def publish(desired: Desired) -> tuple[Operation, ...]:
    """Write the Secret after a creation."""
    return (Publish(secret_name(desired)),)


def republish(desired: Desired, sight: Sight, current: str) -> tuple[Operation, ...]:
    """Write the Secret again from what the service can still be asked for."""
    read = () if sight.answer is not None else (Read(current, desired.path),)
    return (*read, Publish(secret_name(desired), _kept(sight, current)))


def secret_name(desired: Desired) -> str:
    """Name of the output Secret: `<name>-<kind in lower case>` unless the spec names one."""
    return desired.spec.secret_name or default_secret(desired.kind, desired.identity.name)


def default_secret(kind: Kind[Any], name: str) -> str:
    """Name of the output Secret where the spec names none."""
    return f"{name}-{kind.name.lower()}"
