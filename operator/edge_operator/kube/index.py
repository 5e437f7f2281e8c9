"""What the operator keeps in memory of every resource: who points at whom, ids, versions. Bodies only of dirty ones.

The index answers without I/O and says who has to be looked at when something changes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from edge_operator.declare import Kind
from edge_operator.engine import references, state, verdict
from edge_operator.engine.ownership import Holder
from edge_operator.engine.references import ConnectionKey, Named, Referent
from edge_operator.ports import Memory, Resource, Snapshot

Key = tuple[str, str, str]
"""Kind, namespace and name: ("TLSEdge", "default", "db")."""


@dataclass
class Entry:
    """One resource. `version` is the floor: an event that is not newer is an echo of the past."""

    key: Key
    uid: str
    version: int
    generation: int = 0
    id: str | None = None
    deleting: bool = False
    ready: bool = False
    looked: bool = False
    """Whether a pass of this process ended."""
    names: tuple[Named, ...] = ()
    ids: frozenset[str] = frozenset()
    reads: frozenset[str] = frozenset()
    writes: str | None = None
    connection: ConnectionKey = references.DEFAULT_CONNECTION
    urgent: bool = False
    """Whether a person edited it, and no pass of that edit ended Ready or Stalled yet."""
    created: str = ""
    external: str | None = None
    """The object that the spec adopts."""
    previous: frozenset[str] = frozenset()
    """Ids of recorded predecessors."""
    memory: Memory = field(default_factory=Memory)
    body: Resource | None = field(default=None, repr=False)
    snapshot: Snapshot | None = field(default=None, repr=False)
    good: bytes | None = None
    """Digest of the remote object as a list last showed it in sync."""


@dataclass(frozen=True)
class Change:
    """What an observation brought: whether it was news, and who else has to be looked at."""

    news: bool
    edited: bool = False
    new: bool = False
    wake: frozenset[Key] = frozenset()


NOTHING = Change(news=False)
REMEMBERED = 5_000
"""How many uids of resources that went are remembered, so that a late event does not bring one back."""


class Index:
    """Every resource that was seen and not seen to go."""

    digest_key: bytes | None = None
    """The key of the seals in status, once it is known."""

    def __init__(self, kinds: Mapping[str, Kind[Any]]) -> None:
        self._kinds = kinds
        self._entries: dict[Key, Entry] = {}
        self._gone: OrderedDict[str, None] = OrderedDict()
        self._pointing: dict[Key, set[Key]] = {}
        self._holding: dict[str, set[Key]] = {}
        self._by_id: dict[str, set[Key]] = {}
        self._adopting: dict[str, set[Key]] = {}
        self._uids: set[str] = set()
        self._by_secret: dict[tuple[str, str], set[Key]] = {}
        self._through: dict[ConnectionKey, set[Key]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key) -> Entry | None:
        """The entry, or None."""
        return self._entries.get(key)

    def entries(self, kind: str | None = None) -> Iterator[Entry]:
        """All entries, or those of one kind."""
        return iter([e for e in self._entries.values() if kind is None or e.key[0] == kind])

    def observe(self, kind: Kind[Any], resource: Resource, *, dirty: bool = True) -> Change:
        """Take in a resource as the API server showed it. `dirty` keeps its body for the coming pass."""
        meta, status = resource["metadata"], state.own_status(resource, self.digest_key)
        key, version = (kind.name, meta["namespace"], meta["name"]), int(meta["resourceVersion"])
        old = self._entries.get(key)
        if meta["uid"] in self._gone or (old is not None and old.uid == meta["uid"] and version <= old.version):
            return NOTHING
        same = old is not None and old.uid == meta["uid"]
        entry = old if same and old is not None else Entry(key, meta["uid"], version)
        if not same:
            self._unlink(old)
            self._entries[key] = entry
            self._uids.add(entry.uid)
            entry.created = meta.get("creationTimestamp", "")
        before = (entry.id, entry.deleting)
        edited = not same or entry.generation != meta.get("generation", 0)
        entry.version, entry.generation = version, meta.get("generation", 0)
        entry.deleting = bool(meta.get("deletionTimestamp"))
        entry.body = resource if dirty else None
        entry.urgent = entry.urgent or (dirty and same and edited)
        entry.previous = frozenset(p["id"] for p in status.get("previous") or ())
        self._identify(entry, status.get("id"))
        rivals: frozenset[Key] = frozenset()
        if edited:
            self._point(kind, entry, resource.get("spec") or {}, state.through(resource))
            rivals = self._rivals(entry)
        if before == (entry.id, entry.deleting) and same:
            return Change(news=True, edited=edited, wake=rivals)
        new = not same and not entry.deleting
        wake = self.dependants(key, entry.id) | rivals
        return Change(news=True, edited=edited or entry.deleting, new=new, wake=wake - {key})

    def forget(self, key: Key, uid: str | None = None) -> frozenset[Key]:
        """Drop a resource that is gone; who has to be looked at: those that point at it, and those that it pointed at
        and that may have waited for its end.
        """
        entry = self._entries.get(key)
        if entry is None or (uid is not None and entry.uid != uid):
            return frozenset()
        targets = {(kind, key[1], name) for kind, name in entry.names if (kind, key[1], name) in self._entries}
        targets |= {k for id_ in entry.ids for k in self._by_id.get(id_, ())}
        waiting = self.dependants(key, entry.id) | self._rivals(entry)
        self._unlink(entry)
        del self._entries[key]
        self._gone[entry.uid] = None
        if len(self._gone) > REMEMBERED:
            self._gone.popitem(last=False)
        blocked = {k for k in targets if self._entries[k].deleting or not self._entries[k].ready}
        return frozenset(blocked | waiting) - {key}

    def referent(self, namespace: str, named: Named) -> Referent | None:
        """What is known of a resource that somebody points at."""
        entry = self._entries.get((named[0], namespace, named[1]))
        return None if entry is None else Referent(entry.id, entry.deleting)

    def points_at(self, namespace: str, named: Named) -> tuple[Named, ...]:
        """The resources that a resource names."""
        entry = self._entries.get((named[0], namespace, named[1]))
        return () if entry is None else entry.names

    def dependants(self, key: Key, id_: str | None) -> frozenset[Key]:
        """Resources that point at this one, by name or by its id."""
        found = set(self._pointing.get(key, ()))
        if id_ is not None:
            found |= self._holding.get(id_, set())
        return frozenset(found)

    def using(self, connection: ConnectionKey) -> Iterator[Entry]:
        """Resources that go through a connection."""
        return iter([self._entries[key] for key in sorted(self._through.get(connection, ()))])

    def waiting_for(self, connection: ConnectionKey) -> list[Key]:
        """Resources that go through a connection, were looked at, and are not in sync."""
        return [e.key for e in self.using(connection) if e.looked and not e.ready]

    def lives(self, uid: str) -> bool:
        """Whether a resource with that uid is there."""
        return uid in self._uids

    def holders(self, kind: str, id_: str) -> Iterator[Holder]:
        """The resources that have this object, or adopt it."""
        for key in sorted(self._by_id.get(id_, set()) | self._adopting.get(id_, set())):
            if key[0] == kind:
                entry = self._entries[key]
                yield Holder(entry.external is not None, entry.created, f"{key[1]}/{key[2]}", entry.uid)

    def _rivals(self, entry: Entry) -> frozenset[Key]:
        """Others that adopt what this one has or adopts."""
        ids = {entry.id, entry.external} - {None}
        return frozenset(k for id_ in ids for k in self._adopting.get(id_ or "", ())) - {entry.key}

    def about_secret(self, namespace: str, name: str) -> frozenset[Key]:
        """Resources that read this Secret or write it."""
        return frozenset(self._by_secret.get((namespace, name), ()))

    def _identify(self, entry: Entry, id_: str | None) -> None:
        if entry.id == id_:
            return
        if entry.id is not None:
            _discard(self._by_id, entry.id, entry.key)
        if id_ is not None:
            self._by_id.setdefault(id_, set()).add(entry.key)
        entry.id, entry.good = id_, None

    def _point(self, kind: Kind[Any], entry: Entry, spec: Mapping[str, Any], through: ConnectionKey | None) -> None:
        """Note what a spec points at. An invalid spec points at nothing; the line says why it is invalid.

        `through` is the connection that it had when a creation began: there the object is, or may be.
        """
        self._unpoint(entry)
        namespace = entry.key[1]
        try:
            model = kind.spec.model_validate(spec)
        except ValidationError:
            entry.names, entry.ids, entry.reads = (), frozenset(), frozenset()
        else:
            pointers = references.pointers(model)
            entry.names = tuple({p.named: None for p in pointers if p.named is not None})
            entry.ids = frozenset(p.ref.id for p in pointers if p.ref.id is not None)
            entry.reads = frozenset(k.name for k in references.secret_keys(model))
        entry.external = spec.get("externalID")
        if entry.external is not None:
            self._adopting.setdefault(entry.external, set()).add(entry.key)
        if kind.outputs:
            entry.writes = spec.get("secretName") or verdict.default_secret(kind, entry.key[2])
        entry.connection = through or references.connection(namespace, spec)
        self._through.setdefault(entry.connection, set()).add(entry.key)
        for named in entry.names:
            self._pointing.setdefault((named[0], namespace, named[1]), set()).add(entry.key)
        for id_ in entry.ids:
            self._holding.setdefault(id_, set()).add(entry.key)
        for secret in _secrets(entry):
            self._by_secret.setdefault((namespace, secret), set()).add(entry.key)

    def _unpoint(self, entry: Entry) -> None:
        namespace = entry.key[1]
        _discard(self._through, entry.connection, entry.key)
        for named in entry.names:
            _discard(self._pointing, (named[0], namespace, named[1]), entry.key)
        for id_ in entry.ids:
            _discard(self._holding, id_, entry.key)
        if entry.external is not None:
            _discard(self._adopting, entry.external, entry.key)
        for secret in _secrets(entry):
            _discard(self._by_secret, (namespace, secret), entry.key)

    def _unlink(self, entry: Entry | None) -> None:
        if entry is not None:
            self._unpoint(entry)
            self._identify(entry, None)
            self._uids.discard(entry.uid)


def _secrets(entry: Entry) -> Iterable[str]:
    return {*entry.reads, *((entry.writes,) if entry.writes else ())}


def _discard(where: dict[Any, set[Key]], at: Any, key: Key) -> None:
    found = where.get(at)
    if found is not None:
        found.discard(key)
        if not found:
            del where[at]
