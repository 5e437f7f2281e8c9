"""When a token is made, rotated or replaced. The service shows it once, so a lost one is replaced, never pretended."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from edge_operator.engine.operations import Operation, Publish
from edge_operator.engine.reasons import Events
from edge_operator.engine.state import Desired, Recorded, Sight, parsed
from edge_operator.engine.verdict import Verdict, overdue, secret_name

EVENT = Events.TOKEN_ISSUED
SWITCHING = timedelta(minutes=1)
"""How long at least a key by which a connection calls stays beside its successor, and is then looked at again."""


def verdict(desired: Desired, recorded: Recorded, sight: Sight, now: datetime) -> Verdict:
    """Judge the token that is recorded or was found. An adopted object's token was never ours to know."""
    current = sight.found or recorded.id
    if current is None:
        return Verdict(replace=True, why="first token")
    if desired.adopted:
        return Verdict()
    if sight.missing:
        return Verdict(replace=True, why="it vanished from the service")
    if not _held(sight, current):
        known = _predecessor(recorded, sight)
        span = _overlap(desired, sight, current) if known or current in sight.in_use else timedelta()
        return Verdict(replace=True, why="its token is not in the Secret", overlap=span)
    if sight.rotate:
        return Verdict(replace=True, why="rotation was asked for", overlap=_overlap(desired, sight, current))
    end = due(desired, recorded, sight)
    if overdue(end, sight, now):
        return Verdict(replace=True, why="due for rotation", overlap=_overlap(desired, sight, current))
    return Verdict(publish=_stale(recorded, sight, now), due=end)


def leave(desired: Desired, recorded: Recorded, sight: Sight) -> timedelta:
    """How long the recorded object stays beside a successor that was only found: the Secret tells what was meant."""
    published = sight.published
    if sight.found is None or recorded.id is None or published is None or not published.ours or not published.token:
        return timedelta()
    beside = published.id == sight.found and "previous-token" in published.keys
    return _overlap(desired, sight, recorded.id) if beside or published.id == recorded.id else timedelta()


def _overlap(desired: Desired, sight: Sight, id_: str) -> timedelta:
    """How long an object stays beside its successor: as the spec says, and until connections have the new token."""
    rotation = desired.spec.rotation
    span: timedelta = rotation.overlap if rotation is not None else timedelta()
    return max(span, SWITCHING) if id_ in sight.in_use else span


def _held(sight: Sight, current: str) -> bool:
    published = sight.published
    return published is not None and published.ours and published.id == current and bool(published.token)


def _predecessor(recorded: Recorded, sight: Sight) -> str | None:
    """The id of the object that the Secret's token belongs to, if that one stays beside a successor."""
    known = {recorded.id, *(p.id for p in recorded.previous)}
    published = sight.published
    if published is None or not published.ours or not published.token or published.id not in known:
        return None
    return published.id


def _stale(recorded: Recorded, sight: Sight, now: datetime) -> bool:
    """Whether the Secret shows a predecessor whose time is over, or lacks the id. It goes there before its key does."""
    keys = sight.published.keys if sight.published is not None else frozenset()
    if {"previous-token", "previous-id"} & keys:
        last = recorded.previous[-1] if recorded.previous else None
        return last is None or (last.delete_after <= now and last.id not in sight.in_use)
    return "id" not in keys


def due(desired: Desired, recorded: Recorded, sight: Sight) -> datetime | None:
    """When the token is to be rotated; None where no interval is set."""
    rotation = desired.spec.rotation
    made = (sight.answer or {}).get("created_at") or recorded.status.get("createdAt")
    if rotation is None or not made:
        return None
    try:
        return parsed(made) + rotation.interval  # type: ignore[no-any-return]  # a spec is typed by its kind
    except (ValueError, OverflowError):  # the end of time is no time for a rotation
        return None


def body(desired: Desired, now: datetime) -> Mapping[str, Any]:
    """Nothing besides the spec."""
    del desired, now
    return {}


def key(desired: Desired, sight: Sight) -> None:
    """None: a token comes from the service."""
    del desired, sight


def publish(desired: Desired, recorded: Recorded, sight: Sight, verdict: Verdict) -> tuple[Operation, ...]:
    """Write the new token, and the old one beside it while both are good."""
    material: dict[str, str] = {}
    published, before = sight.published, _predecessor(recorded, sight)
    if verdict.overlap and before is not None and published is not None and published.token:
        material = {"previous.token": published.token, "previous.id": before}
    return (Publish(secret_name(desired), material=material),)


def republish(desired: Desired, sight: Sight, current: str) -> tuple[Operation, ...]:
    """Write the current token alone, once its predecessor is gone."""
    token = sight.published.token if sight.published is not None else None
    return (Publish(secret_name(desired), material={"token": token or "", "id": current}),)
