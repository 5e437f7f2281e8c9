"""Finds changes made elsewhere: one list per collection and interval, shared by all its resources.

A remote object that is as it was when it was last in sync costs a digest and a comparison; only what differs, is
missing, or was not in sync is looked at by the line. There is no timer per resource.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import math
import random
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any

from edge_operator.declare import Body, Kind
from edge_operator.door import NotLeading
from edge_operator.engine.operations import Missing, Stalled, Unsupported, Waiting
from edge_operator.engine.references import ConnectionKey
from edge_operator.kube import metrics
from edge_operator.kube.errors import KubeError
from edge_operator.kube.index import Entry, Index, Key
from edge_operator.kube.logs import where
from edge_operator.kube.marks import Marks
from edge_operator.ports import Outcome, Resource, Snapshot
from edge_operator.remote import Listing, ManagementAPI

_log = logging.getLogger(__name__)


class DriftPass:
    """Lists every collection that has resources, now and then, and offers those that need a look."""

    def __init__(
        self,
        kinds: Mapping[str, Kind[Any]],
        index: Index,
        accounts: Callable[[], Iterable[tuple[ConnectionKey, ManagementAPI]]],
        offer: Callable[[Key], None],
        marks: Marks,
        *,
        monotonic: Callable[[], float],
        interval_seconds: float,
        may_look: Callable[[], bool] = lambda: True,
        bodies: Callable[[Kind[Any]], AsyncIterator[Resource]] | None = None,
        page_size: int = 500,
        defect: Callable[[str], None] = metrics.defective,
    ) -> None:
        self._kinds, self._index, self._accounts, self._offer = kinds, index, accounts, offer
        self._marks = marks
        self._monotonic, self._interval, self._may_look = monotonic, interval_seconds, may_look
        self._bodies, self._page_size, self._defect = bodies, page_size, defect

    async def run(self) -> None:
        """Go round for ever. The first round begins somewhere within the interval, so that restarts spread out."""
        await asyncio.sleep(self._interval * random.random())  # noqa: S311 - spreads load, guards nothing
        while True:
            began = self._monotonic()
            if self._may_look():
                await self.round()
            jitter = 1 + (random.random() - 0.5) / 5  # noqa: S311 - as above
            await asyncio.sleep(max(0.0, self._interval * jitter - (self._monotonic() - began)))

    async def round(self) -> None:
        """Look at every collection of every account once."""
        for connection, remote in self._accounts():
            await self._round(connection, remote)

    async def _round(self, connection: ConnectionKey, remote: ManagementAPI) -> None:
        since = self._monotonic()
        through = [e for e in self._index.using(connection) if not e.deleting]
        for kind in self._kinds.values():
            entries = [e for e in through if e.key[0] == kind.name]
            if not entries:
                continue
            try:
                await self._look(connection, remote, kind, entries, since)
            except NotLeading:
                return
            except Exception as error:  # noqa: BLE001 - what one collection brings must not end the look at others
                _log.error("no look at %s in this round: a defect of the operator: %s", kind.api.path, where(error))
                self._defect("drift")
        remote.forget_listings()

    async def _look(
        self, connection: ConnectionKey, remote: ManagementAPI, kind: Kind[Any], entries: Sequence[Entry], since: float
    ) -> None:
        """Offer those of one kind and connection that need a look. Where the list is refused, what is not in sync does.

        In an outage those come back by themselves, or are woken when it is over.
        """
        listing = None
        try:
            if any(e.id for e in entries):
                listing = await remote.listing(kind.api, since)
        except Waiting as why:
            _log.info("no look at %s in this round: %s", kind.api.path, why)
            return
        except (Stalled, Unsupported, Missing) as why:
            _log.info("no list of %s in this round: %s", kind.api.path, why)
        suspects = [e for e in entries if self._is_suspect(e, listing)]
        if listing is not None:
            self._marks.report_orphans(connection, kind, listing)
        await self._fetch(kind, suspects, len(entries))
        for entry in suspects:
            self._offer(entry.key)

    def _is_suspect(self, entry: Entry, listing: Listing | None) -> bool:
        """Whether a resource needs a look; it then has what the list showed of its object."""
        if entry.id is None or listing is None:
            return not entry.ready
        answer = listing.objects.get(entry.id)
        owned = self._marks.owned(entry, listing)
        same = entry.ready and answer is not None and entry.good == fingerprint(answer)
        if same and not self._marks.surplus(entry, owned):
            return False
        entry.snapshot = Snapshot(listing.began, answer, owned)
        return True

    async def _fetch(self, kind: Kind[Any], suspects: Sequence[Entry], of: int) -> None:
        """Have the resources themselves by a list where that takes no more requests than a read of each."""
        if self._bodies is None or math.ceil(of / self._page_size) > len(suspects):
            return
        wanted = {entry.key: entry for entry in suspects if entry.body is None}
        try:
            async for resource in self._bodies(kind):
                meta = resource["metadata"]
                entry = wanted.get((kind.name, meta["namespace"], meta["name"]))
                if entry is not None and entry.version == int(meta["resourceVersion"]):
                    entry.body = resource
        except KubeError as error:
            _log.info("%s are read one by one in this round: %s", kind.plural, error)


def settled(entry: Entry, snapshot: Snapshot | None, outcome: Outcome) -> None:
    """Note after a pass whether the remote object that a list showed is known to be in sync."""
    if outcome.changed:
        entry.good = None
    elif outcome.ready and snapshot is not None and snapshot.answer is not None:
        entry.good = fingerprint(snapshot.answer)


def fingerprint(answer: Body) -> bytes:
    """Sixteen bytes that stand for a remote object. Routes in an edge do not count: they have entries of their own."""
    own = {k: v for k, v in answer.items() if k != "routes"}
    return hashlib.blake2b(json.dumps(own, sort_keys=True).encode(), digest_size=16).digest()
