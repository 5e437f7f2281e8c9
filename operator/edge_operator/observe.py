"""Looks at what a pass has to know and no more: reads only. A resource in sync is not looked at."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from edge_operator.declare import Token
from edge_operator.engine import ownership, state, verdict
from edge_operator.engine.operations import SEARCHED, Path, Stalled, Waiting
from edge_operator.engine.reasons import Stalls, Waits
from edge_operator.engine.state import Desired, Foreign, Published, Recorded, Sight
from edge_operator.ports import Owned, Pass, Resource, Snapshot

NEWBORN_SECONDS = 60.0
"""What was due already when it was made lasts too short a time, or one of the two clocks is wrong; said for so long."""


async def observe(
    line: Pass, wanted: Desired, recorded: Recorded, resource: Resource, snapshot: Snapshot | None
) -> Sight:
    """What the plan needs to be told.

    Raises:
        Waiting: a creation may have happened and the grace has not passed.
        Stalled: the Secret or the object is somebody else's, or the object to adopt is absent.
    """
    sight = await _look(line, wanted, recorded, resource, snapshot)
    if sight.answer is not None and not wanted.adopted and (who := ownership.stranger(sight.answer, line.identity)):
        raise ownership.taken(sight.answer["id"], who, line.identity, line.cluster.lives)
    asked = state.rotation(resource["metadata"], recorded.status)
    made, at = line.memory.made
    age = line.world.monotonic() - at if made == (sight.found or recorded.id) else NEWBORN_SECONDS
    newborn = timedelta(seconds=age) if age < NEWBORN_SECONDS else None
    in_use = line.cluster.in_use() if isinstance(line.kind.lifecycle, Token) else frozenset()
    return replace(sight, rotate=asked is not None and not _heeded(asked, sight), newborn=newborn, in_use=in_use)


def _heeded(asked: str, sight: Sight) -> bool:
    """Whether an object that was only found was made because of that request: it is younger."""
    if sight.found is None or sight.answer is None:
        return False
    try:
        return state.parsed(sight.answer.get("created_at")) >= state.parsed(asked).replace(microsecond=0)
    except ValueError:
        return False  # a request need not be a time; then another successor is made


async def _look(
    line: Pass, wanted: Desired, recorded: Recorded, resource: Resource, snapshot: Snapshot | None
) -> Sight:
    published = await _published(line, wanted, resource)
    if wanted.adopted:
        id_ = wanted.spec.external_id
        if first := ownership.elder(line.cluster.holders(line.kind, id_), line.identity.uid):
            raise ownership.yields(line.kind.name, id_, first)
        if recorded.id is None:
            return await _adopted(line, wanted, published)
    objects = () if wanted.adopted else await recover(line, recorded, published)
    kept = next((o for o in objects[:1] if _is_current(o, wanted, recorded)), None)
    duplicates = tuple((o.id, o.path) for o in objects if o is not kept and o.owner.uid == line.identity.uid)
    restored = kept is not None and kept.owner.uid != line.identity.uid
    published = _made_ours(published, wanted, kept.id if kept is not None else recorded.id)
    if kept is not None:
        nonce = kept.owner.nonce if recorded.claim is None else None
        seen = Sight(kept.answer, kept.id, duplicates=duplicates, published=published)
        return replace(seen, nonce=nonce, restored=restored)
    if recorded.foreign is not None:
        await _not_lost(line, recorded.foreign)
    if recorded.id is None:
        return Sight(duplicates=duplicates, published=published)
    if snapshot is not None and snapshot.began < line.memory.wrote_at:
        snapshot = None  # it shows how things stood before our own last write
    if snapshot is not None and snapshot.answer is not None:
        duplicates += await _surplus(line, wanted, recorded, snapshot)
        return Sight(answer=snapshot.answer, duplicates=duplicates, published=published)
    if snapshot is not None or _unsure(line, wanted, recorded, resource):
        answer = await line.remote.read(line.kind, recorded.id, recorded.path)
        return Sight(answer=answer, missing=answer is None, duplicates=duplicates, published=published)
    return Sight(duplicates=duplicates, published=published)


async def _surplus(line: Pass, wanted: Desired, recorded: Recorded, snapshot: Snapshot) -> tuple[tuple[str, Path], ...]:
    """What a list showed with this resource's marker beside its object and the predecessors, each confirmed by a read.

    Nothing while a claim is unspent, because its POST may be under way, and nothing that another resource adopted.
    """
    known = {recorded.id, *(p.id for p in recorded.previous)}
    extra = [o for o in snapshot.owned if o.id not in known]
    if not extra or recorded.unspent or wanted.spec.management_policy == "Observe":
        return ()
    if ownership.of(snapshot.answer or {}) is None:
        return ()  # somebody edited the object at hand: which of them is the right one is not for us to say
    found = []
    for object_ in extra:
        answer = await line.remote.read(line.kind, object_.id, object_.path)
        adopted = any(h.uid != line.identity.uid for h in line.cluster.holders(line.kind, object_.id))
        if answer is not None and ownership.of(answer) == object_.owner and not adopted:
            found.append((object_.id, object_.path))
    return tuple(found)


def _is_current(object_: Owned, wanted: Desired, recorded: Recorded) -> bool:
    """Whether an object of ours that is not recorded is the one to go on with: made under the claim, in its place."""
    return object_.path == wanted.path and (recorded.id is None or object_.owner.nonce == recorded.claim)


def _unsure(line: Pass, wanted: Desired, recorded: Recorded, resource: Resource) -> bool:
    """Whether what is recorded does not tell how the remote object is."""
    meta, status = resource["metadata"], recorded.status
    conditions = {c["type"]: c for c in status.get("conditions") or ()}
    wrong = conditions.get("Ready", {}).get("status") != "True" or "DriftDetected" in conditions
    if wanted.spec.management_policy == "Observe":
        forgotten = status.get("observedGeneration") != meta.get("generation")
    elif wanted.adopted and recorded.applied != wanted.applied:
        forgotten = True  # the first change also marks it, and whether it is marked only a look tells
    else:
        forgotten = not recorded.applied or recorded.path != wanted.path
    asked = state.requested(meta)
    wished = asked is not None and asked != status.get("lastHandledReconcileAt")
    return line.memory.doubted or wrong or forgotten or wished


async def _published(line: Pass, wanted: Desired, resource: Resource) -> Published | None:
    """The output Secret, read live; found to be somebody else's before anything is created."""
    if not line.kind.outputs:
        return None
    name = verdict.secret_name(wanted)
    published = await line.cluster.published(line.kind, resource, name)
    return published if published is not None and published.forsaken else _made_ours(published, wanted, None)


def _made_ours(published: Published | None, wanted: Desired, id_: str | None) -> Published | None:
    """The Secret, if it is ours, or was that of a resource of this name which is gone, and is for this object."""
    if published is None or published.ours:
        return published
    if published.forsaken and id_ is not None and published.id == id_:
        return replace(published, ours=True)
    raise Stalled(
        Stalls.SECRET_CONFLICT,
        f"Secret {verdict.secret_name(wanted)!r} exists and is not this resource's; delete it, or choose another "
        "spec.secretName",
    )


async def _not_lost(line: Pass, foreign: Foreign) -> None:
    """Nothing, unless the status that came along names an object that nobody's marker claims.

    Raises:
        Stalled: it does; a person has to say whose it is.
    """
    if foreign.id is None or line.cluster.lives(foreign.uid):
        return
    answer = await line.remote.read(line.kind, foreign.id, foreign.path)
    if answer is not None and ownership.of(answer) is None:
        raise ownership.unmarked(foreign.id)


async def _adopted(line: Pass, wanted: Desired, published: Published | None) -> Sight:
    """The object that `externalID` names."""
    id_ = wanted.spec.external_id
    answer = await line.remote.read(line.kind, id_, wanted.path)
    if answer is None:
        raise Stalled(Stalls.REMOTE_MISSING, f"spec.externalID: the service has no object {id_}")
    who = ownership.stranger(answer, line.identity)
    younger = {h.uid for h in line.cluster.holders(line.kind, id_)}
    if who and who.cluster == line.identity.cluster and line.cluster.lives(who.uid) and who.uid not in younger:
        raise Stalled(Stalls.OWNERSHIP_CONFLICT, f"spec.externalID: {id_} belongs to {who.place}, as its marker says")
    return Sight(answer=answer, found=id_, published=_made_ours(published, wanted, id_))


def _together(time: float, grace_seconds: float) -> float:
    """A time a little later at which many look at once, so that they share one list."""
    step = grace_seconds / 8
    return math.ceil(time / step) * step if step else time


_UNKNOWN = (
    "a creation may have arrived, and the connection keeps owner markers off, so nobody can tell: "
    "look into the account; if the object is there, delete it or adopt it by externalID in a new resource; "
    "then take the annotation {claim} off, and it is created anew, or let go if it is being deleted"
)


async def recover(line: Pass, recorded: Recorded, published: Published | None) -> Sequence[Owned]:
    """Objects that carry an owner marker of this resource and are not recorded; the one to keep comes first.

    Asked only while a claim is unspent: there the outcome of a POST may be unknown. A list that began a grace after the
    claim was first seen (or the POST was sent) settles it. A claim of another resource that lives may have been written
    over this one's own, if it had one, as the finalizer tells. Where the claim is that of a resource which is gone, and
    whose name this one has, its object counts as one of this resource.

    Raises:
        Waiting: the grace has not passed.
        Stalled: several objects of resources that are gone would fit.
    """
    foreign = recorded.foreign
    copied = foreign is not None and line.cluster.lives(foreign.uid)
    key = recorded.claim or (f"{foreign.uid}.{foreign.nonce}" if foreign is not None else "")
    if not recorded.unspent or (copied and not recorded.finalizer) or line.memory.settled == key:
        return ()
    if not key and not line.identity.marked:
        return ()  # somebody took the claim off, as the message asks
    if not (
        line.identity.marked if copied else state.is_marked(key)
    ):  # whether the connection has markers now tells nothing of what was sent then
        raise Stalled(Stalls.CREATE_OUTCOME_UNKNOWN, _UNKNOWN.format(claim=state.CLAIM))
    now = line.world.monotonic()
    ripe = _together(line.memory.claim_seen.setdefault(key, now) + line.grace_seconds, line.grace_seconds)
    if now < ripe:
        raise Waiting(
            Waits.RECOVERING,
            SEARCHED,
            after_seconds=ripe - now,
            unsettled=True,
        )
    known = {recorded.id, *(p.id for p in recorded.previous)}
    owned = await line.remote.owned(line.kind, line.identity.cluster, line.identity.uid, ripe)
    objects = [o for o in owned if o.id not in known]
    nonce = recorded.claim
    if not copied and not any(o.owner.nonce == nonce for o in objects):
        objects += await _inherited(line, recorded, ripe)
    if not objects or (nonce is not None and not any(o.owner.nonce == nonce for o in objects)):
        line.memory.settled = None if objects else key  # those of older claims are to be seen until they are gone
        line.memory.doubted = recorded.id is not None
    named = published.id if published is not None else None
    return sorted(objects, key=lambda o: (o.owner.nonce != nonce, o.id != named, o.id))


async def _inherited(line: Pass, recorded: Recorded, since: float) -> Sequence[Owned]:
    """The object of a resource that is gone, and whose name and claim this one has; at most one.

    The claim keeps its nonce when it is taken over, so that a process which dies in between finds the object again.
    """
    foreign = recorded.foreign or (Foreign("", recorded.claim, None, {}) if recorded.claim else None)
    if foreign is None or recorded.id is not None:
        return ()
    place = line.identity.owner("").place
    standing = await line.remote.standing(line.kind, line.identity.cluster, place, since)
    objects = {
        o.id: o
        for o in standing
        if ownership.succeeds(o.owner, line.identity)
        if recorded.foreign is not None or o.owner.nonce == foreign.nonce
        if not any(h.uid != line.identity.uid for h in line.cluster.holders(line.kind, o.id))
    }
    heir = ownership.heir([(o.id, o.owner) for o in objects.values()], foreign)
    return () if heir is None else (objects[heir],)
