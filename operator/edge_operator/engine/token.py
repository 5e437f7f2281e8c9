"""When a token is made, rotated or replaced. The service shows it once, so a lost one is replaced, never pretended."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from edge_operator.engine.operations import Operation, Publish
from edge_operator.engine.reasons import Events
from edge_operator.engine.state import Desired, Recorded, Sight, parsed
from edge_operator.engine.verdict import Verdict, secret_name

EVENT = Events.TOKEN_ISSUED


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
        return Verdict(replace=True, why="its token is not in the Secret")
    rotation = desired.spec.rotation
    overlap = rotation.overlap if rotation is not None else timedelta()
    if sight.rotate:
        return Verdict(replace=True, why="rotation was asked for", overlap=overlap)
    end = due(desired, recorded, sight)
    if end is not None and now >= end:
        return Verdict(replace=True, why="due for rotation", overlap=overlap)
    return Verdict(publish=_stale(recorded, sight), due=end)


def _held(sight: Sight, current: str) -> bool:
    published = sight.published
    return published is not None and published.ours and published.id == current and bool(published.token)


def _stale(recorded: Recorded, sight: Sight) -> bool:
    """Whether the Secret still shows a predecessor that is gone."""
    keys = sight.published.keys if sight.published is not None else frozenset()
    return not recorded.previous and bool({"previous-token", "previous-id"} & keys)


def due(desired: Desired, recorded: Recorded, sight: Sight) -> datetime | None:
    """When the token is to be rotated; None where no interval is set."""
    rotation = desired.spec.rotation
    made = (sight.answer or {}).get("created_at") or recorded.status.get("createdAt")
    if rotation is None or not made:
        return None
    try:
        return parsed(made) + rotation.interval  # type: ignore[no-any-return]  # a spec is typed by its kind
    except ValueError:
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
    published = sight.published
    if verdict.overlap and recorded.id and published is not None and published.token:
        material = {"previous.token": published.token, "previous.id": recorded.id}
    return (Publish(secret_name(desired), material=material),)


def republish(desired: Desired, sight: Sight, current: str) -> tuple[Operation, ...]:
    """Write the current token alone, once its predecessor is gone."""
    token = sight.published.token if sight.published is not None else None
    return (Publish(secret_name(desired), material={"token": token or "", "id": current}),)
