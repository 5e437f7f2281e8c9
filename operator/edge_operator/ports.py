"""What the line knows of the outside: the service, the cluster, and the world (clock, chance, keys).

`remote` and `kube` fulfil these Protocols, and so do the doubles of the tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from edge_operator.declare import Body, Kind, SecretKeyRef
from edge_operator.engine.healing import Healing
from edge_operator.engine.marker import Owner
from edge_operator.engine.operations import KeyPair, KeyRequest, Path
from edge_operator.engine.ownership import Holder
from edge_operator.engine.reasons import Events
from edge_operator.engine.references import Named, Referent
from edge_operator.engine.state import Identity, Published

Resource = Mapping[str, Any]
"""A custom resource as the API server returns it."""


@dataclass(frozen=True)
class Owned:
    """A remote object that carries an owner marker of ours."""

    id: str
    path: Path
    owner: Owner
    answer: Body = field(repr=False)


class World(Protocol):
    """Time, chance and keys. Nothing else in the line reads a clock or draws lots."""

    def now(self) -> datetime:
        """The wall clock, in UTC."""

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back."""

    def nonce(self) -> str:
        """A short text that was never used before."""

    async def key_pair(self, request: KeyRequest) -> KeyPair:
        """A new SSH key pair. Awaited, because a large RSA key takes a second of computing."""


class Remote(Protocol):
    """The management service. Each method is one call or none; none decides, repeats a POST, or writes to the cluster.

    All of them raise Waiting and Stalled with the reason that the answer means. `Missing` is a 404 on an object,
    `Unsupported` an operation that the service does not offer, a list of a collection among them.
    """

    def check(self) -> None:
        """Nothing, where a call would be let through now; what a pass does first, only a call makes sense of."""

    async def read(self, kind: Kind[Any], id_: str, path: Path) -> Body | None:
        """The object, or None if there is none."""

    async def owned(self, kind: Kind[Any], cluster: str, uid: str, since: float) -> Sequence[Owned]:
        """Objects whose marker names this cluster and uid, by a list that began after `since` (monotonic); shared."""

    async def standing(self, kind: Kind[Any], cluster: str, place: str, since: float) -> Sequence[Owned]:
        """Objects whose marker names this cluster and place, whatever the uid; by the same list."""

    async def create(self, kind: Kind[Any], path: Path, body: Body) -> Body:
        """POST. Raises Waiting or Unsupported with `unsettled` where the object may exist all the same."""

    async def update(self, kind: Kind[Any], id_: str, path: Path, body: Body) -> Body:
        """PATCH; the whole object."""

    async def put_module(self, kind: Kind[Any], id_: str, path: Path, segment: str, body: Body) -> Body:
        """PUT; the module."""

    async def delete_module(self, kind: Kind[Any], id_: str, path: Path, segment: str) -> None:
        """DELETE of a module; one that is gone already is done."""

    async def delete(self, kind: Kind[Any], id_: str, path: Path) -> None:
        """DELETE; an object that is gone already is done."""


class Cluster(Protocol):
    """The Kubernetes API. Writes carry resourceVersion and raise Restart where the object changed meanwhile."""

    @property
    def id(self) -> str:
        """The cluster's identity in owner markers."""

    @property
    def digest_key(self) -> bytes:
        """The key of the digests in status."""

    def find(self, namespace: str, named: Named) -> Referent | None:
        """What is known of a resource that somebody points at."""

    def points_at(self, namespace: str, named: Named) -> Sequence[Named]:
        """The resources that a resource points at, for finding circles."""

    def dependants(self, kind: Kind[Any], resource: Resource) -> Sequence[str]:
        """Living resources that point here: ["TLSEdge/db"]."""

    def lives(self, uid: str) -> bool:
        """Whether a managed resource with that uid is in the cluster, as far as it is watched."""

    def holders(self, kind: Kind[Any], id_: str) -> Iterable[Holder]:
        """Resources of the kind that have this remote object or adopt it."""

    async def values(self, namespace: str, keys: Mapping[SecretKeyRef, str]) -> Mapping[SecretKeyRef, str]:
        """Secret values; `keys` says where the spec asks for each. Raises Waiting for one that is absent."""

    async def status_of(self, namespace: str, named: Named) -> Mapping[str, Any]:
        """The status of another resource."""

    async def published(self, kind: Kind[Any], resource: Resource, secret: str) -> Published | None:
        """The output Secret as it is, or None."""

    def in_use(self) -> frozenset[str]:
        """Ids of keys by which a connection of this process calls the service, as far as output Secrets showed them."""

    async def claim(self, kind: Kind[Any], resource: Resource, nonce: str) -> Resource:
        """Finalizer and claim in one write; the resource afterwards. Raises Waiting where the namespace goes."""

    async def publish(
        self,
        kind: Kind[Any],
        resource: Resource,
        secret: str,
        id_: str,
        data: Mapping[str, str],
        seen: Published | None,
    ) -> Published:
        """Create or replace the output Secret; what it is afterwards. Never one that is not ours, and only while it is
        what was `seen` when that was decided. Raises Waiting where the namespace goes.
        """

    async def disown(self, kind: Kind[Any], resource: Resource, secret: str) -> None:
        """Take the owner reference off the output Secret, if there is one."""

    async def removal(self, kind: Kind[Any]) -> str | None:
        """When the removal of the kind's CRD was asked for (RFC 3339), by a live read; None while nobody asked."""

    async def take_over(self, kind: Kind[Any], resource: Resource, secret: str, seen: Published | None) -> Published:
        """Put our owner reference on the Secret of a resource of this kind and name that is gone; what it is then."""

    async def release(self, kind: Kind[Any], resource: Resource) -> None:
        """Take the finalizer off."""

    async def write_status(self, kind: Kind[Any], resource: Resource, patch: Mapping[str, Any]) -> None:
        """Merge-patch the status."""

    def tell(self, resource: Resource, reason: str, message: str, *, warning: bool = False) -> None:
        """An event, later; never fails."""


@dataclass
class Memory:
    """What this process alone knows of a resource. Losing it costs a list or a read, never correctness."""

    claim_seen: dict[str, float] = field(default_factory=dict)
    """When this process first saw each nonce, or last sent a POST with it (monotonic seconds)."""
    settled: str | None = None
    """The nonce of an unspent claim of which it is known that no object carries it."""
    denied: str | None = None
    """The nonce of a claim whose POST was answered as one that the service does not offer: it was searched for since,
    and the next such answer is believed."""
    wrote_at: float = 0.0
    """When the last write to the service for this resource ended (monotonic seconds)."""
    made: tuple[str, float] = ("", 0.0)
    """The id of the last object that this process made, and when (monotonic seconds)."""
    waiting_since: float | None = None
    """Since when the resource waits for a neighbour without having said so (monotonic seconds)."""
    healing: Healing = field(default_factory=Healing)
    """How often which field was healed."""
    doubted: bool = False
    """Whether an answer said that the object is gone: a read has to confirm it."""


@dataclass(frozen=True)
class Snapshot:
    """The remote object as a list that began at `began` (monotonic) held it; None where it was not in the list.

    `owned` is all that the list showed with this resource's marker.
    """

    began: float
    answer: Body | None = field(repr=False)
    owned: Sequence[Owned] = ()


@dataclass(frozen=True)
class Outcome:
    """How a pass ended, and when to come back.

    `due` is a wall-clock time, `after_seconds` a pause, `again` means at once, `failed` after a backoff. None of them:
    when something changes, and at the next resync.
    """

    ready: bool
    reason: str
    due: datetime | None = None
    after_seconds: float | None = None
    again: bool = False
    failed: bool = False
    changed: bool = False
    gone: bool = False
    event: Events | None = None
    """What was done, if it is worth counting."""
    duplicates: int = 0
    """How many further objects of the resource were deleted."""
    at_most: float | None = None
    """The longest pause, in seconds, before what failed is tried again; None where it may be any."""


@dataclass(frozen=True)
class Pass:
    """All that one pass of one resource works with."""

    kind: Kind[Any]
    identity: Identity
    memory: Memory
    remote: Remote
    cluster: Cluster
    world: World
    grace_seconds: float
    resync_seconds: float = 600.0
