"""Whose a remote object is: who made it, who adopted it first, and what its marker says.

Who made an object goes before whoever adopts it; of several that adopt it, the oldest, then the first by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from edge_operator.declare import GROUP, Body
from edge_operator.engine import marker
from edge_operator.engine.operations import Stalled
from edge_operator.engine.reasons import Stalls
from edge_operator.engine.state import CLAIM, Foreign, Identity

KIND_LABEL = f"{GROUP}/kind"
"""The label of output Secrets that says which kind wrote it."""


@dataclass(frozen=True, order=True)
class Holder:
    """A resource that has an object, or asks for it by `externalID`. The least of several has it."""

    adopts: bool
    created: str
    """`creationTimestamp`; times in RFC 3339 are in order as texts."""
    place: str
    """`<namespace>/<name>`."""
    uid: str


def elder(holders: Iterable[Holder], uid: str) -> Holder | None:
    """Who has an object before the holder with that uid; None if that one has it."""
    first = min(holders, default=None)
    return None if first is None or first.uid == uid else first


def yields(kind: str, id_: str, first: Holder) -> Stalled:
    """What to say to a resource that asks for an object of another one."""
    how = "adopted it first" if first.adopts else "made it"
    return Stalled(
        Stalls.OWNERSHIP_CONFLICT,
        f"spec.externalID: {id_} belongs to {kind} {first.place}, which {how}; delete one of the two (deleting this "
        "one leaves the object alone)",
    )


def of(answer: Body) -> marker.Owner | None:
    """The owner that an object's marker names."""
    return marker.split(str(answer.get("metadata") or ""))[1]


def stranger(answer: Body, identity: Identity) -> marker.Owner | None:
    """The owner that an object's marker names if it is somebody else.

    One of the same cluster and place is not: two resources of a kind never have one name at a time, so that one is
    gone, and this one was restored in its place.
    """
    who = of(answer)
    if who is None or who.uid == identity.uid or succeeds(who, identity):
        return None
    return who


def succeeds(who: marker.Owner, identity: Identity) -> bool:
    """Whether a marker names a resource that is gone and of which this one has the place."""
    mine = identity.owner(who.nonce)
    return (who.cluster, who.place) == (mine.cluster, mine.place) and who.uid != mine.uid


def forsaken(secret: Mapping[str, Any], kind: str, name: str, uid: str) -> bool:
    """Whether a Secret with this metadata was made for a resource of the same kind and name that is gone."""
    owners = secret.get("ownerReferences") or ()
    ours = (secret.get("labels") or {}).get(KIND_LABEL) == kind
    return ours and all(o["kind"] == kind and o["name"] == name and o["uid"] != uid for o in owners)


def heir(objects: Iterable[tuple[str, marker.Owner]], foreign: Foreign) -> str | None:
    """Which object of resources that are gone is the one to go on with: (id, owner) of each; None if there is none.

    Raises:
        Stalled: there are several, and none is of the claim that was restored.
    """
    known = dict(objects)
    of_claim = sorted(id_ for id_, who in known.items() if who.nonce == foreign.nonce)
    if not of_claim and len(known) > 1:
        text = f"several objects are marked as that of a resource of this name: {', '.join(sorted(known))}"
        raise Stalled(Stalls.OWNERSHIP_CONFLICT, f"{text}; {_choose(min(known))}")
    return next(iter(of_claim or known), None)


def unmarked(id_: str, said: str = "the status that was restored names") -> Stalled:
    """What to say where a status that cannot be believed, such as a restored one, names an object without a marker."""
    text = f"{said} {id_}, which exists and carries no marker of anybody"
    return Stalled(Stalls.OWNERSHIP_CONFLICT, f"{text}; {_choose(id_)}")


def _choose(id_: str) -> str:
    return (
        f"create this resource anew: with spec.externalID (such as {id_}) to adopt one, without the annotation "
        f"{CLAIM} to have one of its own"
    )


def taken(id_: str, who: marker.Owner, identity: Identity, lives: Callable[[str], bool]) -> Stalled:
    """What to say of an object at hand that a marker gives to somebody else."""
    if who.cluster != identity.cluster:
        whose = f"{who.place} of another cluster ({who.cluster})"
    else:
        whose = who.place if lives(who.uid) else f"{who.place}, which is gone"
    return Stalled(
        Stalls.OWNERSHIP_CONFLICT,
        f"{id_} is marked as that of {whose}; to have it, create this resource anew with spec.externalID: {id_}, to "
        "have one of its own, without (deleting this one leaves the object alone)",
    )
