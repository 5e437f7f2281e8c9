"""Reads the owner markers in a list of remote objects: what a resource has too much, and what has no resource."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from edge_operator.declare import Kind
from edge_operator.engine.references import ConnectionKey
from edge_operator.kube import metrics
from edge_operator.kube.index import Entry, Index
from edge_operator.ports import Owned
from edge_operator.remote import Listing

_log = logging.getLogger(__name__)


class Marks:
    """The markers of one cluster. `namespaces` are those that are watched; none means all."""

    def __init__(
        self,
        cluster_id: str,
        index: Index,
        namespaces: Sequence[str] = (),
        *,
        count: Callable[[str, int], None] = metrics.orphaned,
    ) -> None:
        self._cluster, self._index, self._namespaces, self._count = cluster_id, index, namespaces, count
        self._unowned: dict[tuple[ConnectionKey, str], frozenset[str]] = {}
        self._orphaned: dict[tuple[ConnectionKey, str], frozenset[str]] = {}
        self._told: set[str] = set()

    def owned(self, entry: Entry, listing: Listing) -> Sequence[Owned]:
        """What carries the marker of a resource."""
        return listing.owned.get((self._cluster, entry.uid), ())

    @staticmethod
    def surplus(entry: Entry, owned: Sequence[Owned]) -> bool:
        """Whether there is more than its object and the recorded predecessors."""
        return any(o.id != entry.id and o.id not in entry.previous for o in owned)

    def report_orphans(self, connection: ConnectionKey, kind: Kind[Any], listing: Listing) -> None:
        """Count what two lists on end show with this cluster's marker and without a resource, and log each once.

        Nothing is deleted: the resource may be restored from a backup, or its object may have been kept on purpose.
        """
        unowned = {o.id: o for o in self._orphans(kind, listing)}
        at = (connection, kind.name)
        orphans = self._orphaned[at] = self._unowned.get(at, frozenset()) & unowned.keys()
        self._unowned[at] = frozenset(unowned)
        # Two connections may lead to one account.
        self._count(
            kind.name, len(frozenset().union(*(ids for (_, k), ids in self._orphaned.items() if k == kind.name)))
        )
        for id_ in sorted(orphans - self._told):
            self._told.add(id_)
            _log.warning(
                "%s is marked as that of %s %s, which is gone; it is left alone. Delete it in the service, or adopt it "
                "with externalID",
                id_, kind.name, unowned[id_].owner.place,
            )  # fmt: skip

    def _orphans(self, kind: Kind[Any], listing: Listing) -> Iterator[Owned]:
        for (cluster, uid), owned in listing.owned.items():
            if cluster != self._cluster or self._index.lives(uid):
                continue
            for object_ in owned:
                watched = not self._namespaces or object_.owner.place.partition("/")[0] in self._namespaces
                if watched and not any(self._index.holders(kind.name, object_.id)):
                    yield object_
