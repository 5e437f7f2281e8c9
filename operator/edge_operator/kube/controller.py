"""Takes resources down the line: what an event, a Secret, a neighbour or the clock brings becomes a pass."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from edge_operator.declare import Companion, CustomResource, Kind
from edge_operator.door import URGENT, USUAL, NotLeading, urgency
from edge_operator.engine.operations import Restart, shown
from edge_operator.engine.reasons import Events, Stalls, Waits
from edge_operator.engine.state import Identity
from edge_operator.kube import drift, errors, metrics
from edge_operator.kube.client import KubeAPI
from edge_operator.kube.cluster import KubeCluster, path
from edge_operator.kube.connections import Connections
from edge_operator.kube.ghosts import Ghosts
from edge_operator.kube.index import Change, Entry, Index, Key
from edge_operator.kube.queue import Priority, WorkQueue
from edge_operator.ports import Outcome, Pass, Resource, Snapshot, World
from edge_operator.reconcile import reconcile

_log = logging.getLogger(__name__)

WOKEN_PER_SECOND = 50.0
"""How many resources go on in a second when a connection works again."""
_STALLED = frozenset(str(reason) for reason in Stalls)


class Attendant(Protocol):
    """Looks after the resources of one or more companions (`declare.Companion`), with the controller's queue."""

    def event(self, companion: Companion[Any], type_: str | None, resource: Resource) -> None:
        """An event of a watch. It must not wait."""

    async def work(self, key: Key) -> None:
        """One pass of one resource. Raises nothing but errors of the Kubernetes API, Restart and NotLeading."""


class Controller:
    """One for all kinds. Give it `queue`, `cluster` and `connections` before the first event.

    `attendants` are those who look after companions, by the companion's name.
    """

    queue: WorkQueue[Key]
    cluster: KubeCluster
    connections: Connections

    def __init__(
        self,
        kinds: Mapping[str, Kind[Any]],
        api: KubeAPI,
        index: Index,
        world: World,
        *,
        grace_seconds: float,
        resync_seconds: float,
        namespaces: Sequence[str] = (),
    ) -> None:
        self._kinds, self._api, self._index, self._world = kinds, api, index, world
        self._grace, self._resync = grace_seconds, resync_seconds
        self.attendants: dict[str, Attendant] = {}
        self.ghosts = Ghosts(api, kinds, index, self._forget, namespaces=namespaces, interval_seconds=resync_seconds)

    def event(self, kind: CustomResource[Any], type_: str | None, resource: Resource) -> None:
        """An event of a watch: a resource as it is now, or as it was when it went."""
        if isinstance(kind, Companion):
            self.attendants[kind.name].event(kind, type_, resource)
            if resource["metadata"].get("deletionTimestamp"):
                self._doubt_users((kind.name, resource["metadata"].get("namespace", ""), resource["metadata"]["name"]))
            return
        kind = self._kinds[kind.name]
        meta = resource["metadata"]
        key = (kind.name, meta["namespace"], meta["name"])
        if type_ == "DELETED":
            self._forget(key, meta["uid"])
            return
        if type_ is None and self._index.get(key) is not None:
            self.ghosts.doubt(self._kinds)  # a list was begun anew, and does not tell what went
        change = self._index.observe(kind, resource)
        if change.news:
            self.queue.offer(key, priority=_priority(change, watched=type_ is not None))
            self.wake(change.wake)

    def secret(self, namespace: str, name: str, _: Any = None) -> None:
        """A Secret changed, appeared or went."""
        self.wake(self._index.about_secret(namespace, name))
        self.connections.secret(namespace, name)

    def wake(self, keys: Iterable[Key]) -> None:
        """Have these looked at soon."""
        for key in keys:
            self._retry(key)

    def wake_spread(self, keys: Iterable[Key]) -> None:
        """Have these looked at one after the other: what they waited for is there again, and should stay."""
        now = self._world.monotonic()
        for number, key in enumerate(keys):
            self._retry(key, now + number / WOKEN_PER_SECOND)

    def resync(self, key: Key) -> None:
        """Have this looked at when there is nothing more urgent."""
        self.queue.offer(key, priority=Priority.RESYNC)

    async def work(self, key: Key) -> None:
        """One pass of one resource, and when to come back. Never raises."""
        if (attendant := self.attendants.get(key[0])) is not None:
            await self._attend(attendant, key)
            return
        entry = self._index.get(key)
        if entry is None:
            return
        started = time.perf_counter()
        snapshot, entry.snapshot = entry.snapshot, None
        urgency.set(URGENT if entry.urgent else USUAL)
        barred = False
        try:
            resource = await self._current(entry)
            barred, generation = self._barred(entry), entry.generation
            outcome = await reconcile(self._line(entry), resource, snapshot) if resource else None
        except Restart:
            entry.body = None
            self.queue.offer(key, priority=Priority.EDIT)
        except NotLeading:
            self._retry(key, self._world.monotonic() + 1.0)
        except errors.KubeError as error:
            entry.body = None
            _log.warning("%s: the Kubernetes API refuses or does not answer: %s", "/".join(key), shown(error))
            self._failed(key)
        except Exception:  # noqa: BLE001 - one resource's defect must not end the others
            entry.body = None
            _log.exception("%s: a defect of the operator; tried again later", "/".join(key))
            self._failed(key)
            metrics.defective("resource")
            metrics.reconciled(key[0], "error", time.perf_counter() - started)
        else:
            if outcome is not None:
                metrics.reconciled(key[0], outcome.reason, time.perf_counter() - started)
                _count(key[0], outcome)
                self._done(entry, snapshot, outcome, generation)
                if (barred or _waits_for_connection(outcome)) and not (outcome.ready or self._barred(entry)):
                    # It was not among those that the connection woke, because its pass was not over.
                    self._retry(key)

    async def _attend(self, attendant: Attendant, key: Key) -> None:
        """One pass of a companion's resource."""
        try:
            await attendant.work(key)
        except Restart:
            self.queue.offer(key, priority=Priority.EDIT)
        except NotLeading:
            self.queue.offer(key, priority=Priority.RETRY, due=self._world.monotonic() + 1.0)
        except errors.KubeError as error:
            _log.warning("%s: the Kubernetes API refuses or does not answer: %s", "/".join(key), shown(error))
            self._failed(key)
        except Exception:  # noqa: BLE001 - one resource's defect must not end the others
            _log.exception("%s: a defect of the operator; tried again later", "/".join(key))
            self._failed(key)
            metrics.defective("resource")

    async def _current(self, entry: Entry) -> Resource | None:
        """The newest body: the one that came with an event, or a live read."""
        body, entry.body = entry.body, None
        if body is not None:
            return body
        kind = self._kinds[entry.key[0]]
        try:
            live = await self._api.get(path(kind, entry.key[1], entry.key[2]))
        except errors.NotFound:
            self._forget(entry.key)
            return None
        change = self._index.observe(kind, live, dirty=False)
        self.wake(change.wake)
        return live

    def _barred(self, entry: Entry) -> bool:
        """Whether the resource's connection cannot be used, or not by it."""
        return self.connections.remote(entry.connection, entry.key[1]).door.shut is not None

    def _line(self, entry: Entry) -> Pass:
        kind, namespace, name = entry.key
        marked = self.connections.marked(entry.connection)
        key, through = self.cluster.digest_key, entry.connection
        identity = Identity(self.cluster.id, namespace, name, entry.uid, key, marked, through)
        remote = self.connections.remote(entry.connection, namespace)
        return Pass(
            self._kinds[kind], identity, entry.memory, remote, self.cluster, self._world, self._grace, self._resync
        )

    def _done(self, entry: Entry, snapshot: Snapshot | None, outcome: Outcome, generation: int) -> None:
        """Remember how a pass of this generation ended and say when to come back."""
        key = entry.key
        if entry.generation == generation and _settles(outcome):
            entry.urgent = False
        entry.ready, entry.looked = outcome.ready, True
        drift.settled(entry, snapshot, outcome)
        if outcome.gone:
            self._forget(key, entry.uid)
            return
        if outcome.changed:
            _log.info("%s: %s", "/".join(key), outcome.reason)
        if outcome.again:
            self._retry(key)
        elif outcome.after_seconds is not None:
            self._retry(key, self._world.monotonic() + outcome.after_seconds)
        elif outcome.failed:
            self._failed(key, outcome.at_most)
        else:
            self.queue.succeeded(key)
            if outcome.at_most is not None:
                self.queue.offer(key, priority=Priority.RESYNC, due=self._world.monotonic() + outcome.at_most)
            if outcome.due is not None:
                wait = max(0.0, (outcome.due - self._world.now()).total_seconds())
                self.queue.offer(key, priority=Priority.RESYNC, due=self._world.monotonic() + wait)

    def _doubt_users(self, connection: Key) -> None:
        """Whether those that hold up the end of a connection are still there is looked up."""
        self.ghosts.doubt({entry.key[0] for entry in self._index.using(connection)})

    def _forget(self, key: Key, uid: str | None = None) -> None:
        """A resource is gone: those that waited for its end are looked at, its connection among them."""
        entry = self._index.get(key)
        self.wake(self._index.forget(key, uid))
        if entry is not None:
            self.connections.released(entry.connection)

    def _failed(self, key: Key, at_most: float | None = None) -> None:
        pause = self.queue.failed(key)
        self._retry(key, self._world.monotonic() + (pause if at_most is None else min(pause, at_most)))

    def _retry(self, key: Key, due: float | None = None) -> None:
        """Have this looked at again; with the priority of an edit as long as one did not come to its end."""
        entry = self._index.get(key)
        urgent = entry is not None and entry.urgent
        self.queue.offer(key, priority=Priority.EDIT if urgent else Priority.RETRY, due=due)


def _settles(outcome: Outcome) -> bool:
    """Whether whoever made an edit has nothing more to wait for."""
    return outcome.ready or outcome.gone or outcome.reason in _STALLED


def _waits_for_connection(outcome: Outcome) -> bool:
    """Whether nothing but its connection wakes the resource."""
    return outcome.reason == str(Waits.CONNECTION_NOT_READY) and outcome.after_seconds is None


def _priority(change: Change, *, watched: bool) -> Priority:
    """Who goes first: what a person just edited, then what is new, then what was there before this process."""
    if not (change.edited and watched):
        return Priority.RETRY
    return Priority.NEW if change.new else Priority.EDIT


def _count(kind: str, outcome: Outcome) -> None:
    """Count what a person would like to be told of by an alert."""
    for _ in range(outcome.duplicates):
        metrics.recovered(kind, "duplicate-removed")
    match outcome.event:
        case Events.DRIFT_CORRECTED:
            metrics.corrected(kind)
        case Events.RECOVERED:
            metrics.recovered(kind, "adopted")
        case Events.ABANDONED:
            metrics.abandoned(kind)
