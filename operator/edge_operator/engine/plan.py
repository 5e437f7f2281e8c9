"""Compares what should be with what is, and lists the operations between them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, assert_never

from edge_operator.api.wire import as_sent
from edge_operator.declare import Body, Issued, Managed
from edge_operator.engine import compare, issue, marker
from edge_operator.engine.operations import (
    Claim,
    Create,
    Delete,
    DeleteModule,
    Disown,
    Operation,
    Path,
    Plan,
    PutModule,
    Release,
    Stalled,
    Update,
)
from edge_operator.engine.project import Field, fields
from edge_operator.engine.reasons import Events, Stalls
from edge_operator.engine.state import Desired, Recorded, Sight


def plan(desired: Desired, recorded: Recorded, sight: Sight, now: datetime, nonce: str) -> Plan:
    """The operations that bring the remote object to what is desired, and the Secret to the remote object.

    `nonce` is fresh and used if a new claim has to be taken. `plan(apply(plan)) == ()` for every kind.

    Raises:
        Stalled: what is asked for cannot be reached by any operation.
    """
    if desired.spec.management_policy == "Observe":
        return Plan(drift=tuple(_paths(_drift(desired, recorded, sight))))
    if sight.missing and _policy_on_missing(desired) == "Stall":
        raise Stalled(
            Stalls.REMOTE_MISSING,
            f"{recorded.id} does not exist any more; a new {desired.kind.name} would not be the same thing: "
            "delete this resource, or set onRemoteMissing: Recreate",
        )
    match desired.kind.lifecycle:
        case Managed():
            todo = _managed(desired, recorded, sight, nonce)
        case Issued():
            todo = _issued(desired, recorded, sight, now, nonce)
        case unreachable:
            assert_never(unreachable)
    extra = [Delete(p.id, p.path) for p in recorded.previous if p.delete_after <= now]
    extra += [Delete(id_, path) for id_, path in sight.duplicates]
    pending = [p.delete_after for p in recorded.previous if p.delete_after > now]
    due = min([d for d in (todo.due, *pending) if d is not None], default=None)
    return Plan((*todo.operations, *extra), todo.event, todo.why, todo.drift, due)


def _policy_on_missing(desired: Desired) -> str:
    return str(desired.spec.on_remote_missing or desired.kind.on_remote_missing)


def _managed(desired: Desired, recorded: Recorded, sight: Sight, nonce: str) -> Plan:
    current = sight.found or (None if sight.missing else recorded.id)
    if current is None:
        event = Events.REPLACED if sight.missing else Events.CREATED
        return Plan(create(desired, recorded, nonce), event)
    return change(desired, recorded, sight, current, nonce)


def _issued(desired: Desired, recorded: Recorded, sight: Sight, now: datetime, nonce: str) -> Plan:
    verdict = issue.verdict(desired, recorded, sight, now)
    current = sight.found or recorded.id
    if verdict.issue or current is None:
        body = issue.body(desired, now)
        gone = (Delete(sight.found, desired.path),) if sight.found else ()
        steps = create(desired, recorded, nonce, body, issue.key(desired, sight.published))
        return Plan((*gone, *steps, *issue.publish(desired)), Events.CERTIFICATE_ISSUED, verdict.why)
    todo = change(desired, recorded, sight, current, nonce)
    again = issue.republish(desired, sight, current) if verdict.publish else ()
    return Plan((*todo.operations, *again), todo.event, todo.why, todo.drift, verdict.due)


def create(
    desired: Desired, recorded: Recorded, nonce: str, extra: Mapping[str, Any] | None = None, key: Any = None
) -> tuple[Operation, ...]:
    """Claim and POST. An unspent claim whose object is known not to exist is used again."""
    reuse = recorded.claim if recorded.unspent and recorded.finalizer else None
    body = {**desired.body(reuse or nonce), **(extra or {})}
    post = Create(body, desired.path, key)
    return (post,) if reuse else (Claim(nonce), post)


def change(desired: Desired, recorded: Recorded, sight: Sight, current: str, nonce: str) -> Plan:
    """What brings an existing object to what is desired."""
    claim: tuple[Operation, ...] = () if recorded.claim and recorded.finalizer else (Claim(nonce),)
    drift = _drift(desired, recorded, sight)
    changed = {f.wire: f for f in _changed(desired, recorded, sight, drift)}
    removed = _removed(desired, recorded)
    if fixed := [f.alias for f in changed.values() if f.immutable]:
        raise Stalled(
            Stalls.IMMUTABLE_FIELD_CHANGED,
            f"spec.{', spec.'.join(fixed)}: fixed at creation; delete and create the resource to change it",
        )
    body = desired.body(_nonce(recorded, nonce))
    steps = _steps(desired, current, recorded.path or desired.path, {w: body[w] for w in changed}, changed, removed)
    if steps and sight.answer is not None and _unmarked(sight.answer) and "metadata" in body:
        steps = _with_marker(steps, current, recorded.path or desired.path, body["metadata"])
    theirs = tuple(
        p for wire, paths in drift.items() if not _by_user(desired, recorded, changed.get(wire)) for p in paths
    )
    event = Events.DRIFT_CORRECTED if theirs and recorded.id else Events.UPDATED if steps else None
    if sight.found:
        event = Events.ADOPTED if desired.adopted else Events.RECOVERED
    why = ", ".join(sorted({f.alias for f in changed.values()} | {f.alias for f in removed}))
    return Plan((*claim, *steps), event, why, theirs if recorded.id else ())


def _nonce(recorded: Recorded, fresh: str) -> str:
    """The nonce in the current object's marker: the recorded one, or the claim's where it was only found."""
    return (recorded.nonce if recorded.id else recorded.claim) or fresh


def _by_user(desired: Desired, recorded: Recorded, field: Field | None) -> bool:
    return field is None or recorded.applied.get(field.alias) != desired.applied.get(field.alias)


def _drift(desired: Desired, recorded: Recorded, sight: Sight) -> dict[str, list[str]]:
    if sight.answer is None:
        return {}
    want = desired.body(_nonce(recorded, "-"))
    return compare.drifted(type(desired.spec), want, _have(desired, sight.answer), adopted=desired.adopted)


def _have(desired: Desired, answer: Body) -> Body:
    sent: Body = as_sent(desired.kind.api.read.model_validate(answer))
    return sent


def _paths(drift: Mapping[str, list[str]]) -> list[str]:
    return [path for paths in drift.values() for path in paths]


def _changed(desired: Desired, recorded: Recorded, sight: Sight, drift: Mapping[str, Any]) -> list[Field]:
    """Fields to send: those that the object holds otherwise where it was seen, else those whose digest changed.

    A seen object is not enough for a value that the service does not echo: there the digest decides besides.
    """
    out = []
    for field in fields(type(desired.spec)):
        if field.alias not in desired.applied or (field.local and not field.reissues):
            continue
        unlike = recorded.applied.get(field.alias) != desired.applied[field.alias]
        if field.immutable:
            unlike = unlike and field.alias in recorded.applied
        elif field.wire not in desired.plain:
            continue
        seen = sight.answer is not None and not field.immutable
        if field.wire in drift or (unlike and not seen) or (unlike and _unechoed(desired, field, sight)):
            out.append(field)
    return [f for f in out if not f.reissues]


def _unechoed(desired: Desired, field: Field, sight: Sight) -> bool:
    """Whether part of what we would send cannot be compared with what was seen."""
    if sight.answer is None:
        return True
    have = _have(desired, sight.answer)
    return _hidden(field, desired.plain.get(field.wire), have.get(field.wire)) if field.wire in have else False


def _hidden(field: Field, want: Any, have: Any) -> bool:
    if field.secret:
        return want is not None and have is None
    if isinstance(want, dict) and isinstance(have, Mapping) and field.part is not None and not field.keyed:
        return any(_hidden(f, want.get(f.wire), have.get(f.wire)) for f in fields(field.part) if f.wire in want)
    return False


def _removed(desired: Desired, recorded: Recorded) -> list[Field]:
    """Fields that were sent once and are in the spec no more."""
    gone = recorded.applied.keys() - desired.applied.keys()
    return [f for f in fields(type(desired.spec)) if f.alias in gone and not f.local and not f.reissues]


def _steps(
    desired: Desired,
    current: str,
    path: Path,
    body: Body,
    changed: Mapping[str, Field],
    removed: list[Field],
) -> list[Operation]:
    """Protecting modules go on before anything else changes and come off after everything else."""
    own = {w: f for w, f in changed.items() if f.module and f.module.own_path}
    patch = {w: body[w] for w in changed if w not in own}
    defaults = desired.kind.api.read.model_fields
    patch |= {f.wire: defaults[f.wire].get_default() for f in removed if not f.module}
    off = [f for f in removed if f.module]
    return [
        *(PutModule(current, w, body[w], path) for w, f in own.items() if f.module and f.module.protects),
        *((Update(current, patch, path),) if patch else ()),
        *(PutModule(current, w, body[w], path) for w, f in own.items() if f.module and not f.module.protects),
        *(DeleteModule(current, f.wire, path) for f in off if f.module and not f.module.protects),
        *(DeleteModule(current, f.wire, path) for f in off if f.module and f.module.protects),
    ]


def _unmarked(answer: Body) -> bool:
    return marker.split(str(answer.get("metadata") or ""))[1] is None


def _with_marker(steps: list[Operation], current: str, path: Path, metadata: str) -> list[Operation]:
    """The first write to an adopted object also says whose it is now."""
    for index, step in enumerate(steps):
        if isinstance(step, Update):
            return [*steps[:index], Update(current, {**step.body, "metadata": metadata}, path), *steps[index + 1 :]]
    return [*steps, Update(current, {"metadata": metadata}, path)]


def farewell(
    recorded: Recorded, found: tuple[tuple[str, Path], ...], *, retain: bool, secret: str | None
) -> tuple[Operation, ...]:
    """What deleting a resource takes: its objects, then the finalizer. `retain` leaves the objects and the Secret."""
    if retain:
        return (*((Disown(secret),) if secret else ()), Release())
    ids: dict[str, Path] = {}
    if recorded.id:
        ids[recorded.id] = recorded.path
    ids |= {p.id: p.path for p in recorded.previous}
    ids |= dict(found)
    return (*(Delete(id_, path) for id_, path in ids.items()), Release())
