"""Says how a connection stands: verdicts, the status, and what its resources are told. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from edge_operator.declare import GROUP
from edge_operator.engine import conditions
from edge_operator.engine.conditions import Verdict
from edge_operator.engine.operations import Shut, Stalled, Waiting
from edge_operator.engine.reasons import Ready, Stalls, Waits

ACCEPT = f"{GROUP}/accept-account"
"""Annotation of a connection: the fingerprint of an account that is right, though it holds nothing of what was made."""
_SHOWN = 5
"""How many of those who hold a deletion up are named."""


def refusal(why: Waiting | Stalled, said: Verdict | None = None) -> Verdict:
    """What a connection says when a look at its account ended so. In an outage it goes on to say what it said first."""
    if why.reason is Waits.CONNECTION_NOT_READY:
        return Verdict(Stalls.AUTHENTICATION_FAILED, why.message)
    if said is not None and said.reason is why.reason is Waits.SERVICE_UNAVAILABLE:
        return said
    return Verdict(why.reason, why.detail if isinstance(why, Waiting) else why.message)


def outage(connection: Mapping[str, Any]) -> Verdict | None:
    """What a connection says of an outage, for the spec that it has; None where it says of none."""
    said = (connection.get("status") or {}).get("conditions") or ()
    ready = next((c for c in said if c["type"] == "Ready"), None)
    if ready is None or ready["reason"] != str(Waits.SERVICE_UNAVAILABLE):
        return None
    if ready.get("observedGeneration") != connection["metadata"].get("generation", 1):
        return None
    return Verdict(Waits.SERVICE_UNAVAILABLE, ready["message"])


def shut(connection: str, verdict: Verdict) -> Shut:
    """What resources are told that go through a connection that cannot be used."""
    return Shut(Waits.CONNECTION_NOT_READY, f"{connection} cannot be used: {verdict.message}")


def blocked(users: Sequence[tuple[str, str, str]], verdict: Verdict) -> Verdict:
    """A connection that is to go and is still needed; why it cannot be used counts for more."""
    if not verdict.ready:
        return verdict
    named = [f"{kind}/{name} in {namespace}" for kind, namespace, name in users[:_SHOWN]]
    more = f" and {len(users) - _SHOWN} more" if len(users) > _SHOWN else ""
    return Verdict(Waits.DELETION_BLOCKED, f"still used by {', '.join(named)}{more}; delete them first")


def mismatch(ids: Iterable[Collection[str]], fingerprint: str) -> str:
    """What to say where none of the known objects is in the account."""
    some = sorted(id_ for of_kind in ids for id_ in of_kind)[:3]
    return (
        f"the account holds none of the objects that were made through this connection ({', '.join(some)} …): "
        "nothing is made or let go; check url and key. If the account is right, annotate the connection with "
        f"{ACCEPT}={fingerprint}"
    )


def status(
    before: Mapping[str, Any], verdict: Verdict, meta: Mapping[str, Any], unsupported: Iterable[str], now: datetime
) -> dict[str, Any]:
    """The whole status of a connection. What the service lacked stays said until the spec is another."""
    generation = meta.get("generation", 1)
    lacked = before.get("unsupportedOperations") or () if before.get("observedGeneration") == generation else ()
    after: dict[str, Any] = {**before, "observedGeneration": generation}
    after["conditions"] = conditions.conditions(verdict, before.get("conditions") or (), generation, now)
    if not verdict.ready and verdict.reason is not Waits.DELETION_BLOCKED:
        after["lastError"] = verdict.message
    after["unsupportedOperations"] = sorted({*lacked, *unsupported})
    return {k: v for k, v in after.items() if v not in ([], None)}


def is_news(before: Mapping[str, Any], verdict: Verdict) -> bool:
    """Whether the verdict is worth an event: another reason than before, and not the first success."""
    ready = next((c for c in before.get("conditions") or () if c["type"] == "Ready"), None)
    if ready is None:
        return verdict.reason is not Ready.CONNECTED
    return bool(ready["reason"] != str(verdict.reason))
