"""What is decided of an object that is replaced rather than changed: a certificate, a token, an upload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from edge_operator.declare import Body, Kind, TLSSecretRef
from edge_operator.engine import compare, x509
from edge_operator.engine.operations import KeyPair, KeyRequest, Operation, Stalled
from edge_operator.engine.project import Field, fields
from edge_operator.engine.reasons import Events, Stalls
from edge_operator.engine.state import Desired, Recorded, Sight, parsed


@dataclass(frozen=True)
class Verdict:
    """Whether to make a new one, or to write the Secret again, why, and when to look again.

    `overlap` is how long the predecessor stays beside a new one.
    """

    replace: bool = False
    publish: bool = False
    why: str = ""
    due: datetime | None = None
    overlap: timedelta = field(default_factory=timedelta)


class Replaceable(Protocol):
    """A lifecycle in which a new object takes the place of the old one: a module with these functions."""

    EVENT: Events

    def verdict(self, desired: Desired, recorded: Recorded, sight: Sight, now: datetime) -> Verdict:
        """Judge the object that is recorded or was found."""

    def body(self, desired: Desired, now: datetime) -> Mapping[str, Any]:
        """What a creation says besides the spec's own fields."""

    def key(self, desired: Desired, sight: Sight) -> KeyRequest | KeyPair | None:
        """The key pair that a creation needs."""

    def publish(self, desired: Desired, recorded: Recorded, sight: Sight, verdict: Verdict) -> tuple[Operation, ...]:
        """Write the Secret after a creation."""

    def republish(self, desired: Desired, sight: Sight, current: str) -> tuple[Operation, ...]:
        """Write the Secret again without a creation."""


def overdue(end: datetime | None, sight: Sight, now: datetime) -> bool:
    """Whether the time for a successor has come.

    Raises:
        Stalled: it had come when the object was made, a moment ago, and would for each that follows.
    """
    if end is None or now < end:
        return False
    if sight.newborn is not None and end <= now - sight.newborn:
        raise Stalled(
            Stalls.LIFETIME_TOO_SHORT,
            "what was made a moment ago is due for replacement already; compare this clock with that of the service, "
            "and the lifetime or interval with both",
        )
    return True


def changed(desired: Desired, recorded: Recorded, sight: Sight) -> list[str]:
    """Names of spec fields that did change and of which a change needs a new object.

    Without digests, what was seen is compared, as far as the service returns it.
    """
    marked = [f for f in fields(type(desired.spec)) if f.reissues]
    if not recorded.applied and sight.answer is not None:
        have = compare.held(desired.kind, sight.answer)
        comparable = [f for f in marked if f.wire in desired.plain and f.wire in have]
        unlike = [f.alias for f in comparable if not _alike(f, desired.plain[f.wire], have[f.wire])]
        return unlike + [
            f.alias for f in marked if not _same_upload(getattr(desired.spec, f.name), desired.plain, have)
        ]
    return [f.alias for f in marked if recorded.applied.get(f.alias) != desired.applied.get(f.alias)]


def _same_upload(value: Any, want: Body, have: Body) -> bool:
    """Whether the service holds what a Secret says, as far as it returns it: certificates, whatever their layout."""
    wires = value.wires if isinstance(value, TLSSecretRef) else ()
    return all(x509.alike(str(have[wire]), str(want[wire])) for wire in wires if wire in have)


def _alike(field_: Field, want: Any, have: Any) -> bool:
    """Whether the service holds the same, whatever way it writes a time or ends a line."""
    if not compare.differences(field_, want, have):
        return True
    if not isinstance(want, str) or not isinstance(have, str):
        return False
    try:
        return parsed(want) == parsed(have)
    except ValueError:
        return want.split()[:2] == have.split()[:2]  # a key in OpenSSH format may have a comment


def secret_name(desired: Desired) -> str:
    """Name of the output Secret: `<name>-<kind in lower case>` unless the spec names one."""
    return desired.spec.secret_name or default_secret(desired.kind, desired.identity.name)


def default_secret(kind: Kind[Any], name: str) -> str:
    """Name of the output Secret where the spec names none."""
    return f"{name}-{kind.name.lower()}"
