"""What is wanted, what is recorded in the cluster, and what was seen, as values that a plan is made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from edge_operator.declare import GROUP, Body, Kind, TLSSecretRef
from edge_operator.engine import compare, digests, marker, project, references, seal
from edge_operator.engine.operations import KeyPair, Path
from edge_operator.engine.project import Bindings, Field
from edge_operator.engine.references import ConnectionKey
from edge_operator.engine.seal import Seal
from edge_operator.policies import Policies

CLAIM = f"{GROUP}/claim"
THROUGH = f"{GROUP}/claimed-through"
"""Annotation beside the claim: the connection in whose account the object is, or may be: "Connection/main"."""
UNMARKED = "-unmarked"
"""The end of a nonce under which an object is made that does not name its owner."""
REMEMBERED = (*seal.SEALED, "applied", seal.MEMBER)
"""What of a status says which remote objects are the resource's, and what they hold."""
FINALIZER = f"{GROUP}/remote-object"
PAUSED = f"{GROUP}/paused"
ABANDON = f"{GROUP}/abandon"
ROTATE = f"{GROUP}/rotate-requested-at"
REQUESTED = (f"{GROUP}/reconcile-requested-at", "reconcile.fluxcd.io/requestedAt")


@dataclass(frozen=True)
class Identity:
    """Which resource of which cluster, and the key of its digests."""

    cluster: str
    namespace: str
    name: str
    uid: str
    key: bytes = field(repr=False)
    marked: bool = True
    """Whether remote objects name their owner."""
    through: ConnectionKey = references.DEFAULT_CONNECTION
    """The connection that the resource goes through now."""

    def nonce(self, fresh: str) -> str:
        """A nonce for a claim; it tells whether an object that is made under it names its owner."""
        return fresh if self.marked else f"{fresh}{UNMARKED}"

    def owner(self, nonce: str) -> marker.Owner:
        """The owner that the remote object's marker names."""
        return marker.owner(self.cluster, self.uid, nonce, self.namespace, self.name)


@dataclass(frozen=True)
class Desired:
    """A parsed spec with every pointer resolved: what the remote object should be."""

    kind: Kind[Any]
    spec: Any
    identity: Identity
    plain: Body = field(repr=False)
    path: Path
    applied: Mapping[str, str]
    """Digest of each field by its name in the spec: what `status.applied` will say once it is sent."""

    def body(self, nonce: str) -> Body:
        """The whole request body, the owner marker in its metadata."""
        if "metadata" not in self.plain or not self.identity.marked:
            return dict(self.plain)
        return {**self.plain, "metadata": marker.attach(self.plain["metadata"], self.identity.owner(nonce))}

    @property
    def adopted(self) -> bool:
        """Whether the spec names an existing object."""
        return self.spec.external_id is not None


def desired(kind: Kind[Any], spec: Policies, identity: Identity, bindings: Bindings) -> Desired:
    """Project a spec and digest each of its fields.

    Raises:
        Stalled: two entries of a keyed list mean one object.
    """
    plain = project.body(spec, bindings)
    applied = {
        f.alias: digests.digest(identity.key, identity.uid, f.alias, _remembered(spec, f, plain))
        for f in project.fields(type(spec))
        if getattr(spec, f.name) is not None and (not f.local or f.reissues)
    }
    return Desired(kind, spec, identity, plain, project.path(spec, bindings), applied)


def _remembered(spec: Policies, f: Field, plain: Body) -> Any:
    """What of a field its digest is made of: what the user wrote where that is what counts, else what is sent."""
    value = getattr(spec, f.name)
    if isinstance(value, TLSSecretRef):
        return {wire: plain[wire] for wire in value.members}
    if f.local or f.immutable or f.wire not in plain:
        return spec.model_dump(mode="json", include={f.name})[f.name]
    return compare.normal(f, plain[f.wire])


@dataclass(frozen=True)
class Previous:
    """A predecessor that a replacement left, to be deleted when its overlap ends."""

    id: str
    nonce: str | None
    delete_after: datetime
    path: Path

    def to_status(self) -> dict[str, Any]:
        """As it stands in status."""
        out = {"id": self.id, "deleteAfter": stamp(self.delete_after)}
        return {
            **out,
            **({"nonce": self.nonce} if self.nonce else {}),
            **({"path": dict(self.path)} if self.path else {}),
        }


@dataclass(frozen=True)
class Foreign:
    """A claim that another resource took: this one is a copy of it, or was restored from a backup of it."""

    uid: str
    nonce: str
    id: str | None
    """What a status that came along says."""
    path: Path


@dataclass(frozen=True)
class Recorded:
    """What the custom resource itself remembers, in annotations and status."""

    id: str | None = None
    nonce: str | None = None
    claim: str | None = None
    finalizer: bool = False
    path: Path = field(default_factory=dict)
    applied: Mapping[str, str] = field(default_factory=dict)
    previous: tuple[Previous, ...] = ()
    status: Mapping[str, Any] = field(default_factory=dict)
    foreign: Foreign | None = None
    seal: Seal = Seal.UNKNOWN
    trusted: bool = True
    """Whether what is recorded is known to be this resource's: nothing is, its seal fits, or it was looked at."""
    damaged: bool = False
    """Whether something was edited away that may have told of more objects."""

    @property
    def unspent(self) -> bool:
        """Whether there may be an object that is not recorded: a claim was taken whose outcome is not, or was lost."""
        if self.damaged:
            return True
        if self.claim is None:
            return self.id is None and (self.finalizer or self.foreign is not None)
        return self.claim != self.nonce or self.id is None

    @property
    def ids(self) -> frozenset[str]:
        """What is recorded: the current object and its predecessors."""
        return frozenset(p.id for p in self.previous) | ({self.id} if self.id else frozenset())

    def succeeded_by(self, id_: str | None, path: Path, delete_after: datetime) -> Recorded:
        """The same with another current object, or one that is only found; who was current becomes a predecessor."""
        previous = tuple(p for p in self.previous if p.id not in (id_, self.id))
        if self.id is not None and self.id != id_:
            previous = (*previous, Previous(self.id, self.nonce, delete_after, self.path))
        return replace(self, id=id_, path=path, previous=previous, applied={})

    def without_previous(self, ids: frozenset[str]) -> Recorded:
        """The same without these predecessors."""
        return replace(self, previous=tuple(p for p in self.previous if p.id not in ids))

    def without_current(self) -> Recorded:
        """The same without a current object, in the status too: what it names is not this resource's."""
        status = {name: value for name, value in self.status.items() if name not in ("id", "nonce", "path", "applied")}
        return replace(self, id=None, nonce=None, path={}, applied={}, status=status)


def claim(resource: Mapping[str, Any], nonce: str) -> dict[str, str]:
    """The annotations of a claim."""
    meta = resource["metadata"]
    connection = through(resource) or references.connection(meta["namespace"], resource.get("spec") or {})
    return {CLAIM: f"{meta['uid']}.{nonce}", THROUGH: seal.short(connection)}


def through(resource: Mapping[str, Any]) -> ConnectionKey | None:
    """The connection that the resource's own objects were made through, whatever its spec says now: as the seal of its
    status says, else as its own claim does. None where neither does.
    """
    meta = resource["metadata"]
    annotations = meta.get("annotations") or {}
    if (sealed := seal.connection(own_status(resource), meta["namespace"])) is not None:
        return sealed
    if annotations.get(CLAIM, "").partition(".")[0] != meta["uid"]:
        return None
    return seal.named(annotations.get(THROUGH, ""), meta["namespace"])


def is_marked(nonce: str) -> bool:
    """Whether what is made under a nonce names its owner."""
    return not nonce.endswith(UNMARKED)


def own_status(resource: Mapping[str, Any], key: bytes | None = None) -> Mapping[str, Any]:
    """The status, if it is this resource's own: one that came along with the claim of another says nothing of it.

    With the key of the seals, what fits its seal is its own whatever the claim says, and what was edited is not.
    """
    meta, status = resource["metadata"], resource.get("status") or {}
    judged = seal.judged(key, meta["uid"], status) if key else Seal.UNKNOWN
    if judged is not Seal.UNKNOWN:
        return status if judged is Seal.FITS else {}
    uid, _, _ = (meta.get("annotations") or {}).get(CLAIM, meta["uid"]).partition(".")
    return status if uid == meta["uid"] else {}


def recorded(resource: Mapping[str, Any], key: bytes) -> Recorded:
    """Read what a custom resource remembers. What another resource remembered, and a digest with another key, do not
    count; what is sealed does, whatever became of the claim.
    """
    meta, status = resource["metadata"], resource.get("status") or {}
    uid, _, nonce = (meta.get("annotations") or {}).get(CLAIM, "").partition(".")
    judged, finalizer = seal.judged(key, meta["uid"], status), FINALIZER in (meta.get("finalizers") or ())
    own = uid == meta["uid"]
    if nonce and not own and judged is not Seal.FITS:
        foreign = Foreign(uid, nonce, status.get("id"), status.get("path") or {})
        named = bool(status.get("id") or status.get("previous"))
        return Recorded(finalizer=finalizer, status=status, foreign=foreign, seal=judged, trusted=not named)
    previous = tuple(
        Previous(p["id"], p.get("nonce"), _end(p.get("deleteAfter")), p.get("path") or {})
        for p in status.get("previous") or ()
        if p["id"] != status.get("id")
    )
    return Recorded(
        id=status.get("id") or None,
        nonce=status.get("nonce"),
        claim=(nonce or None) if own else None,
        finalizer=finalizer,
        path=status.get("path") or {},
        applied=digests.known(key, status.get("applied") or {}),
        previous=previous,
        status=status,
        seal=judged,
        trusted=judged is Seal.FITS or not (status.get("id") or previous),
    )


@dataclass(frozen=True)
class Published:
    """The output Secret as it is: whose it is, which remote object it is for, which keys it has."""

    ours: bool
    id: str | None
    keys: frozenset[str]
    key_pair: KeyPair | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    forsaken: bool = False
    """Whether it was made for a resource of this kind and name that is gone."""
    tokens: Mapping[str, str] = field(default_factory=dict, repr=False)
    """All tokens that it holds, by the ids of their objects."""


def undisturbed(seen: Published | None, now: Published | None) -> bool:
    """Whether an output Secret is still what a decision was made on: absent, or for the same object with the same key
    pair. Labels and values of others do not count.
    """
    if seen is None or now is None:
        return seen is now
    return (seen.id, seen.key_pair) == (now.id, now.key_pair)


@dataclass(frozen=True)
class Sight:
    """What was looked at in this pass. An empty one means that nothing had to be.

    `answer` is the remote object as the service returned it; `found` is its id where it was not recorded yet;
    `missing` is a confirmed absence; `duplicates` are further objects that are wholly ours.
    """

    answer: Body | None = field(default=None, repr=False)
    found: str | None = None
    missing: bool = False
    duplicates: tuple[tuple[str, Path], ...] = ()
    rotate: bool = False
    """Whether an annotation asks for a new token or certificate."""
    published: Published | None = None
    left: frozenset[str] = frozenset()
    """Paths of fields that differ and are left so for now."""
    nonce: str | None = None
    """The nonce of a found object for which this resource has no claim yet."""
    restored: bool = False
    """Whether the found object was that of a resource that is gone, whose place this one has."""
    newborn: timedelta | None = None
    """How long ago it was made, if that is a moment. If it was due then, so would its successor be, and so on."""
    in_use: frozenset[str] = frozenset()
    """Ids of keys by which a connection of this process calls the service."""


def requested(meta: Mapping[str, Any]) -> str | None:
    """The value of the annotation that asks for a look at the remote object."""
    annotations = meta.get("annotations") or {}
    return next((annotations[name] for name in REQUESTED if name in annotations), None)


def rotation(meta: Mapping[str, Any], status: Mapping[str, Any]) -> str | None:
    """The value of the annotation that asks for a new token or certificate, if it was not heeded yet."""
    asked = (meta.get("annotations") or {}).get(ROTATE)
    return asked if asked and asked != status.get("lastHandledRotateAt") else None


def stamp(time: datetime) -> str:
    """RFC 3339 in whole seconds: `2026-01-02T03:04:05Z`."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parsed(text: object) -> datetime:
    """A time from RFC 3339.

    Raises:
        ValueError: it is none, or says no offset from UTC.
    """
    if not isinstance(text, str):
        raise ValueError("no text")  # noqa: TRY004 - it comes from the service, as a text that is no time does
    time = datetime.fromisoformat(text.upper())
    if time.tzinfo is None:
        raise ValueError("no offset")
    return time


OVERDUE = datetime(1970, 1, 1, tzinfo=UTC)


def _end(text: str | None) -> datetime:
    """When an overlap ends; somebody may have edited it."""
    try:
        return parsed(text or "")
    except ValueError:
        return OVERDUE
