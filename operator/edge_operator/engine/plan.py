"""Compares what should be with what is, and lists the operations between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, assert_never

from edge_operator.declare import Body, Issued, Managed, Token, Uploaded
from edge_operator.engine import compare, issue, marker, order, state, token, upload, verdict
from edge_operator.engine.operations import (
    Claim,
    Create,
    Delete,
    Disown,
    KeyPair,
    KeyRequest,
    Operation,
    Path,
    Plan,
    Release,
    Stalled,
    TakeOver,
    Update,
)
from edge_operator.engine.project import Field, fields
from edge_operator.engine.reasons import Events, Stalls
from edge_operator.engine.state import Desired, Recorded, Sight
from edge_operator.engine.verdict import Replaceable


def plan(desired: Desired, recorded: Recorded, sight: Sight, now: datetime, nonce: str) -> Plan:
    """The operations that bring the remote object to what is desired, and the Secret to the remote object.

    `nonce` is fresh and used if a new claim has to be taken. `plan(apply(plan)) == ()` for every kind.

    Raises:
        Stalled: what is asked for cannot be reached by any operation.
    """
    if sight.missing:
        _may_be_replaced(desired, recorded)
    if desired.spec.management_policy == "Observe":
        return Plan(drift=tuple(_paths(_drift(desired, recorded, sight))))
    match desired.kind.lifecycle:
        case Managed():
            todo = _managed(desired, recorded, sight, nonce)
        case Issued():
            todo = _replaceable(issue, desired, recorded, sight, now, nonce)
        case Token():
            todo = _replaceable(token, desired, recorded, sight, now, nonce)
        case Uploaded():
            todo = _replaceable(upload, desired, recorded, sight, now, nonce)
        case unreachable:
            assert_never(unreachable)
    if sight.published is not None and sight.published.ours and sight.published.forsaken:
        todo = replace(todo, operations=(TakeOver(verdict.secret_name(desired)), *todo.operations))
    over = [p for p in recorded.previous if p.delete_after <= now]
    extra = [Delete(p.id, p.path) for p in over if p.id not in sight.in_use]
    kept = tuple(p.id for p in over if p.id in sight.in_use)
    pending = [p.delete_after for p in recorded.previous if p.delete_after > now]
    pending += [now + token.SWITCHING] if kept else []
    due = min([d for d in (todo.due, *pending) if d is not None], default=None)
    return Plan((*_clean_up(recorded, sight), *todo.operations, *extra), todo.event, todo.why, todo.drift, due, kept)


def _clean_up(recorded: Recorded, sight: Sight) -> tuple[Operation, ...]:
    """Delete what is ours and superfluous, first of all: once the claim is another one, nobody would look for it.

    The claim is taken again for that, which fails where the resource was read too late.
    """
    if not sight.duplicates:
        return ()
    held = recorded.claim or recorded.nonce
    guard = (Claim(held),) if held is not None else ()
    return (*guard, *(Delete(id_, path) for id_, path in sight.duplicates))


def due(desired: Desired, recorded: Recorded, sight: Sight) -> datetime | None:
    """When an object is to be replaced because of its age.

    Raises:
        Stalled: it would be due before it is valid.
    """
    match desired.kind.lifecycle:
        case Issued():
            return issue.due(desired, recorded, sight)
        case Token():
            return token.due(desired, recorded, sight)
        case Managed() | Uploaded():
            return None
        case unreachable:
            assert_never(unreachable)


def _may_be_replaced(desired: Desired, recorded: Recorded) -> None:
    """Nothing, if a new object may take the place of one that vanished."""
    if desired.adopted:
        raise Stalled(
            Stalls.REMOTE_MISSING,
            f"spec.externalID: {recorded.id} does not exist any more; delete this resource, or create one without "
            "externalID to get a new remote object",
        )
    if (desired.spec.on_remote_missing or desired.kind.on_remote_missing) == "Stall":
        raise Stalled(
            Stalls.REMOTE_MISSING,
            f"{recorded.id} does not exist any more; a new {desired.kind.name} would not be the same thing: "
            "delete this resource, or set onRemoteMissing: Recreate",
        )


def _managed(desired: Desired, recorded: Recorded, sight: Sight, nonce: str) -> Plan:
    current = sight.found or (None if sight.missing else recorded.id)
    moved = current is not None and not sight.found and not desired.adopted and recorded.path != desired.path
    if moved:
        _same_place(desired, recorded)
    if current is None or moved:
        event = Events.REPLACED if sight.missing or moved else Events.CREATED
        return Plan(create(desired, recorded, nonce), event)
    return change(desired, recorded, sight, current, nonce)


def _same_place(desired: Desired, recorded: Recorded) -> None:
    """Nothing, if the user still names the same parent: another id behind that name is one that was made anew."""
    said = [f.alias for f in fields(type(desired.spec)) if f.in_path]
    if moved := [a for a in said if a in recorded.applied and recorded.applied[a] != desired.applied.get(a)]:
        raise _fixed(moved)


def _fixed(aliases: list[str]) -> Stalled:
    return Stalled(
        Stalls.IMMUTABLE_FIELD_CHANGED,
        f"spec.{', spec.'.join(aliases)}: fixed at creation; delete and create the resource to change it",
    )


def _replaceable(
    judge: Replaceable, desired: Desired, recorded: Recorded, sight: Sight, now: datetime, nonce: str
) -> Plan:
    judged = judge.verdict(desired, recorded, sight, now)
    current = sight.found or recorded.id
    if judged.replace or current is None:
        if desired.adopted:
            raise Stalled(
                Stalls.INVALID_SPEC,
                f"spec.externalID: {judged.why}, which takes a new object, and an adopted one is never replaced; "
                "create a resource without externalID",
            )
        body, key = judge.body(desired, now), judge.key(desired, sight)
        claim, *post = create(desired, recorded, nonce, body, key, judged.overlap, anew=sight.found is not None)
        # The claim comes first also here: it fails where the resource was read too late, and then nothing is deleted.
        gone = (Delete(sight.found, desired.path),) if sight.found else ()
        return Plan((claim, *gone, *post, *judge.publish(desired, recorded, sight, judged)), judge.EVENT, judged.why)
    todo = change(desired, recorded, sight, current, nonce)
    again = judge.republish(desired, sight, current) if judged.publish else ()
    return Plan((*todo.operations, *again), todo.event, todo.why, todo.drift, judged.due)


def create(
    desired: Desired,
    recorded: Recorded,
    nonce: str,
    extra: Mapping[str, Any] | None = None,
    key: KeyRequest | KeyPair | None = None,
    overlap: timedelta = timedelta(),
    *,
    anew: bool = False,
) -> tuple[Operation, ...]:
    """Claim and POST. An unspent claim whose object is known not to exist is used again, unless it has to be `anew`.

    It is taken again for that, which writes nothing new, but fails where it was spent meanwhile.
    """
    reuse = recorded.claim if recorded.unspent and recorded.finalizer and not anew else None
    if reuse is not None and state.is_marked(reuse) is not desired.identity.marked:
        reuse = None
    body = {**desired.body(reuse or nonce), **(extra or {})}
    return Claim(reuse or nonce), Create(body, desired.path, key, overlap)


def change(desired: Desired, recorded: Recorded, sight: Sight, current: str, nonce: str) -> Plan:
    """What brings an existing object to what is desired."""
    nonce = sight.nonce or nonce
    claim = _claimed(recorded, nonce)
    drift = _drift(desired, recorded, sight)
    changed = {f.wire: f for f in _changed(desired, recorded, sight, drift)}
    removed = _removed(desired, recorded)
    if fixed := [f.alias for f in (*changed.values(), *removed) if f.immutable]:
        raise _fixed(fixed)
    body = desired.body(_nonce(recorded, nonce))
    steps = order.steps(
        desired, current, recorded.path or desired.path, {w: body[w] for w in changed}, changed, removed
    )
    if (
        steps
        and desired.identity.marked
        and sight.answer is not None
        and "metadata" in body
        and _unmarked(sight.answer)
    ):
        steps = _with_marker(steps, current, recorded.path or desired.path, body["metadata"])
    theirs = tuple(
        p for wire, paths in drift.items() if not _by_user(desired, recorded, changed.get(wire)) for p in paths
    )
    event = Events.DRIFT_CORRECTED if theirs and recorded.id else Events.UPDATED if steps else None
    if sight.found:
        event = Events.ADOPTED if desired.adopted else Events.RESTORED if sight.restored else Events.RECOVERED
    why = ", ".join(sorted({f.alias for f in changed.values()} | {f.alias for f in removed}))
    return Plan((*claim, *steps), event, why, theirs if recorded.id else ())


def _claimed(recorded: Recorded, fresh: str) -> tuple[Operation, ...]:
    """The claim that an object which stays has to have: its own. One that came to nothing is taken back."""
    nonce = _nonce(recorded, fresh)
    return () if recorded.finalizer and recorded.claim == nonce else (Claim(nonce),)


def _nonce(recorded: Recorded, fresh: str) -> str:
    """The nonce in the current object's marker: the recorded one, or the claim's where it was only found."""
    return (recorded.nonce if recorded.id else None) or recorded.claim or fresh


def _by_user(desired: Desired, recorded: Recorded, field: Field | None) -> bool:
    return field is None or recorded.applied.get(field.alias) != desired.applied.get(field.alias)


def _drift(desired: Desired, recorded: Recorded, sight: Sight) -> dict[str, list[str]]:
    if sight.answer is None:
        return {}
    want = desired.body(_nonce(recorded, sight.nonce or "-"))
    have = compare.held(desired.kind, sight.answer)
    found = compare.drifted(type(desired.spec), want, have, adopted=desired.adopted)
    return {wire: paths for wire, paths in found.items() if not sight.left.issuperset(paths)}


def _paths(drift: Mapping[str, list[str]]) -> list[str]:
    return [path for paths in drift.values() for path in paths]


def _changed(desired: Desired, recorded: Recorded, sight: Sight, drift: Mapping[str, Any]) -> list[Field]:
    """Fields to send: those that the user changed, and those that the object holds otherwise where it was seen.

    What was seen does not tell of a member that the user took out of a module, nor of a value that the service does not
    echo. Where no digest is known, what was seen decides as far as it goes.
    """
    out = []
    for field in fields(type(desired.spec)):
        if field.alias not in desired.applied or (field.local and not field.reissues):
            continue
        known = field.alias in recorded.applied
        unlike = recorded.applied.get(field.alias) != desired.applied[field.alias]
        if not field.immutable and field.wire not in desired.plain:
            continue
        if (unlike and (known or (not field.immutable and _unechoed(desired, field, sight)))) or field.wire in drift:
            out.append(field)
    return [f for f in out if not f.reissues]


def _unechoed(desired: Desired, field: Field, sight: Sight) -> bool:
    """Whether part of what we would send cannot be compared with what was seen."""
    if sight.answer is None:
        return True
    have = compare.held(desired.kind, sight.answer)
    return _hidden(field, desired.plain.get(field.wire), have.get(field.wire))


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


def _unmarked(answer: Body) -> bool:
    return marker.split(str(answer.get("metadata") or ""))[1] is None


def _with_marker(steps: list[Operation], current: str, path: Path, metadata: str) -> list[Operation]:
    """The first write to an adopted object also says whose it is now, lest a crash leave it changed and unmarked."""
    for index, step in enumerate(steps):
        if isinstance(step, Update):
            return [*steps[:index], Update(current, {**step.body, "metadata": metadata}, path), *steps[index + 1 :]]
    return [Update(current, {"metadata": metadata}, path), *steps]


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
