"""Verifies what a status records where its seal does not vouch for it: reads only, before anything is done with it."""

from __future__ import annotations

from dataclasses import replace
from string import Formatter
from typing import Any

from edge_operator.declare import Body
from edge_operator.engine import ownership, references, seal, state
from edge_operator.engine.operations import Path, Stalled
from edge_operator.engine.reasons import Stalls
from edge_operator.engine.seal import Seal
from edge_operator.engine.state import Previous, Recorded
from edge_operator.observe import recover
from edge_operator.ports import Pass, Resource, Snapshot


async def verify(
    line: Pass, resource: Resource, recorded: Recorded, snapshot: Snapshot | None = None
) -> tuple[Recorded, Snapshot | None]:
    """What is recorded, without what is not this resource's, and what was seen of it: where an object of its own is
    found, the one that was recorded is none.

    Raises:
        Waiting: the service has to be searched, and the grace has not passed.
        Stalled: the recorded object is somebody else's, and none of this resource was found.
    """
    _in_place(line, recorded)
    if recorded.trusted or recorded.foreign is not None:
        return replace(recorded, damaged=_lost_claim(line, recorded)), snapshot
    external = (resource.get("spec") or {}).get("externalID")
    if not _verifiable(line, recorded, external):
        return replace(recorded, trusted=True), snapshot
    recorded = replace(recorded, previous=await _own_predecessors(line, recorded))
    if recorded.id in (None, external):
        return replace(recorded, trusted=True), snapshot
    dropped = replace(recorded.without_current(), trusted=True)
    if external is not None:
        return dropped, None
    began = line.world.monotonic()
    answer = await _read(line, str(recorded.id), recorded.path)
    if not _made_it(line, answer, recorded):
        if await recover(line, dropped, None):
            return dropped, None
        if not _has_address(line, str(recorded.id), recorded.path):
            return dropped, None
        if answer is not None and not _is_own(line, answer):
            raise _conflict(line, answer)
    return replace(recorded, trusted=True), Snapshot(began, answer, snapshot.owned if snapshot is not None else ())


async def verify_last(line: Pass, resource: Resource, recorded: Recorded) -> tuple[Recorded, str | None]:
    """The same before a deletion: what is recorded, without what is not this resource's, and why that stays.

    What was edited away is searched for, so that nothing of this resource stays.

    Raises:
        Stalled: it cannot be told whose the objects are, or in which account they are.
    """
    _in_place(line, recorded)
    if recorded.foreign is not None:
        return recorded, None
    external = (resource.get("spec") or {}).get("externalID")
    if external is not None and recorded.id != external and recorded.claim is not None:
        if not _has_address(line, external, recorded.path):
            return recorded.without_current(), f"{external} stays in the account: the status does not say where it is"
        recorded = replace(recorded, id=external)  # a claim says that it was adopted
    broken = recorded.seal is Seal.BROKEN and line.identity.marked and state.is_marked(recorded.nonce or "")
    damaged = broken or _lost_claim(line, recorded)
    if recorded.trusted or not _verifiable(line, recorded, external):
        return replace(recorded, damaged=damaged), None
    previous = await _own_predecessors(line, recorded)
    recorded = replace(recorded, previous=previous, damaged=damaged or previous != recorded.previous)
    if recorded.id in (None, external):
        return recorded, None
    answer = await _read(line, str(recorded.id), recorded.path)
    if answer is not None and (_is_own(line, answer) or _made_it(line, answer, recorded)):
        return recorded, None
    lost_one = replace(recorded.without_current(), damaged=True)
    if answer is None:
        _same_account(line, resource, recorded)
        return lost_one, None
    return lost_one, _stays(answer)


def _in_place(line: Pass, recorded: Recorded) -> None:
    """Nothing, unless the pass goes through another connection than the recorded objects were made through."""
    if recorded.foreign is not None:
        return
    sealed = seal.connection(recorded.status, line.identity.namespace)
    if sealed in (None, line.identity.through):
        return
    raise Stalled(
        Stalls.IMMUTABLE_FIELD_CHANGED,
        f"spec.connectionRef: fixed once a creation has begun; {recorded.id} was made through {seal.short(sealed)}, as "
        f"the seal of the status says, and this names {seal.short(line.identity.through)}; name the former again",
    )


def _same_account(line: Pass, resource: Resource, recorded: Recorded) -> None:
    """Nothing, unless spec and annotation name different accounts and the object is not in the one at hand."""
    written = references.connection(line.identity.namespace, resource.get("spec") or {})
    if written == line.identity.through:
        return
    here = seal.short(line.identity.through)
    raise Stalled(
        Stalls.OWNERSHIP_CONFLICT,
        f"{recorded.id} is not in the account of {here}, where the annotation {state.THROUGH} leads; "
        f"spec.connectionRef names {seal.short(written)}. Set the annotation to the connection that the object "
        f"was made through, or {state.ABANDON} to true to leave it where it is",
    )


def _verifiable(line: Pass, recorded: Recorded, external: str | None) -> bool:
    """Whether markers tell whose the recorded objects are.

    Raises:
        Stalled: they do not, and somebody edited what is recorded.
    """
    marked = line.identity.marked and state.is_marked(recorded.nonce or recorded.claim or "")
    if not marked and recorded.seal is Seal.BROKEN and recorded.id != external:
        named = ", ".join(filter(None, (recorded.id, *(p.id for p in recorded.previous))))
        raise Stalled(
            Stalls.OWNERSHIP_CONFLICT,
            f"the status was edited and names {named}, and without owner markers nobody can tell whose that is: look "
            "into the account; take status.seal off to have the status believed as it is, or status.id, too, and the "
            "annotation edge-operator.dev/claim to have a new object",
        )
    return marked


async def _own_predecessors(line: Pass, recorded: Recorded) -> tuple[Previous, ...]:
    """Those of the recorded predecessors that are there and carry this resource's marker."""
    found = []
    for previous in recorded.previous:
        if recorded.seal is not Seal.BROKEN and not state.is_marked(previous.nonce or ""):
            found.append(previous)
            continue
        answer = await _read(line, previous.id, previous.path)
        if answer is not None and _is_own(line, answer):
            found.append(previous)
    return tuple(found)


async def _read(line: Pass, id_: str, path: Path) -> Body | None:
    """The object, or None where there is none or the service could not have one there."""
    possible = id_.startswith(line.kind.api.prefix) and _has_address(line, id_, path)
    return await line.remote.read(line.kind, id_, path) if possible else None


def _has_address(line: Pass, id_: str, path: Path) -> bool:
    """Whether an id and a path make an address of an object of the kind."""
    wanted = {name for _, name, _, _ in Formatter().parse(line.kind.api.path) if name}
    return id_.isprintable() and path.keys() == wanted


def _lost_claim(line: Pass, recorded: Recorded) -> bool:
    """Whether the claim was overwritten or taken off beside a record: it may have been one of a successor."""
    lost = recorded.foreign is None and recorded.claim is None and recorded.nonce is not None
    return lost and line.identity.marked and state.is_marked(recorded.nonce or "")


def _is_own(line: Pass, answer: Body) -> bool:
    """Whether the marker of an object names this resource."""
    who = ownership.of(answer)
    return who is not None and (who.cluster, who.uid) == (line.identity.cluster, line.identity.uid)


def _made_it(line: Pass, answer: Body | None, recorded: Recorded) -> bool:
    """Whether an object was made under the recorded claim, for this resource or the one whose place it has."""
    who = ownership.of(answer) if answer is not None else None
    if answer is None or who is None or who.nonce != recorded.nonce:
        return False
    return _is_own(line, answer) or ownership.succeeds(who, line.identity)


def _conflict(line: Pass, answer: Body) -> Stalled:
    who = ownership.of(answer)
    if who is None:
        return ownership.unmarked(answer["id"], "the status names")
    return ownership.taken(answer["id"], who, line.identity, line.cluster.lives)


def _stays(answer: Any) -> str:
    who = ownership.of(answer)
    whose = (
        f"it is marked as that of {who.place}" if who else "the status names it, and it carries no marker of anybody"
    )
    return f"{answer['id']} stays in the account: {whose}"
