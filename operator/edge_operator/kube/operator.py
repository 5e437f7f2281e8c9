"""Puts the operator together, runs it, and ends it in order.

A start waits for the CRDs, then watches; a leader works on its queue, a follower only keeps its caches warm. A stop
begins no call more, lets those that write end, gives the Lease back so that a successor begins at once, and stops
watching last.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from typing import Any

from edge_operator.api import profiles
from edge_operator.api.caller import Attempt
from edge_operator.api.errors import Misuse, StatusError
from edge_operator.declare import Kind
from edge_operator.door import Door, Halt, NotLeading
from edge_operator.engine.references import DEFAULT_CONNECTION
from edge_operator.kinds import KINDS, MIRRORS, WATCHED
from edge_operator.kube import agents, bootstrap, connections, errors, flags, lease, logs, metrics, sessions, watching
from edge_operator.kube.anchors import Anchors
from edge_operator.kube.client import KubeAPI, Options
from edge_operator.kube.cluster import KubeCluster, path
from edge_operator.kube.controller import Controller
from edge_operator.kube.drift import DriftPass
from edge_operator.kube.events import Recorder
from edge_operator.kube.health import Health
from edge_operator.kube.index import Index, Key
from edge_operator.kube.marks import Marks
from edge_operator.kube.queue import Backoff, WorkQueue
from edge_operator.kube.stopping import FAILED, Stop, cancelled, rest
from edge_operator.kube.sync import InitialSync
from edge_operator.kube.watch import MetadataWatch
from edge_operator.kube.world import System
from edge_operator.ports import Resource
from edge_operator.remote import ManagementAPI
from edge_operator.settings import Settings

_log = logging.getLogger(__name__)

OK = 0
LEASE_NAME = "edge-operator"
WRITE_SECONDS = 10.0
"""The longest that one request to the Kubernetes API may take, or half of a shorter Lease; a write is begun only while
the Lease outlasts it."""


def main(settings: Settings) -> int:
    """Run until SIGTERM or SIGINT; the exit code."""
    logs.configure(settings.log_level, settings.log_format)
    try:
        return asyncio.run(run(settings))
    except (errors.NotConfigured, profiles.ProfileError, flags.KeyUnreadable, Misuse, OSError, ValueError) as why:
        _log.error("cannot start: %s", why)
        return FAILED


async def run(settings: Settings) -> int:
    """Run the operator in this event loop; the exit code."""
    options = Options(request_timeout_seconds=_write_seconds(settings))
    async with await KubeAPI.connect(settings.kubeconfig, options, on_call=metrics.requested) as api:
        operator = Operator(settings, api)
        operator.stop.listen()
        return await operator.run()


def _write_seconds(settings: Settings) -> float:
    return min(WRITE_SECONDS, settings.lease_seconds / 2)


class Operator:
    """One replica."""

    def __init__(self, settings: Settings, api: KubeAPI) -> None:
        self.settings, self.api = settings, api
        self.stop, self.halt, self.watching = Stop(), Halt(), asyncio.Event()
        self.world, self.index = System(), Index(KINDS)
        # Who watches chosen namespaces has no rights beyond them.
        self.declared = {n: c for n, c in WATCHED.items() if c.namespaced or not settings.namespaces}
        self.sync = InitialSync(api, self.declared, self._known)
        terms = lease.Terms(settings.lease_seconds, settings.renew_seconds, settings.retry_seconds)
        self.leadership = lease.Leadership(
            api, settings.operator_namespace, LEASE_NAME, holder=settings.identity, terms=terms
        )
        self.recorder = Recorder(api, instance=self.leadership.holder, on_outcome=metrics.event)
        self.controller = Controller(
            KINDS,
            api,
            self.index,
            self.world,
            grace_seconds=settings.grace_seconds,
            resync_seconds=settings.resync_seconds,
            namespaces=settings.namespaces,
        )
        self.connections = connections.Connections(
            self.index,
            self.world,
            namespace=settings.operator_namespace,
            clusterwide=not settings.namespaces,
            call_seconds=settings.call_seconds,
            door=self._door,
            observer=_observed,
            wake=self.controller.wake_spread,
            tell=self._tell,
        )
        self.flags = flags.Flags.of(settings)
        self.queue: WorkQueue[Key] = WorkQueue(
            self.controller.work,
            workers=settings.workers,
            backoff=Backoff(settings.backoff_seconds, settings.backoff_limit_seconds),
            monotonic=self.world.monotonic,
        )
        self.queue.pause()
        self.controller.queue = self.connections.queue = self.queue
        self.controller.connections = self.connections
        self.controller.attendants.update(dict.fromkeys(connections.KIND_NAMES, self.connections))
        self.commander = agents.Commander(
            api,
            self.queue,
            self.world,
            namespace=settings.operator_namespace,
            remote=self.connections.remote,
            may_write=self._may_write,
            tell=self._tell,
        )
        self.controller.attendants[agents.KIND.name] = self.commander
        if self.flags is not None:
            self.connections.use_flags(self.flags.terms)
        metrics.METRICS.watch_queue(self.queue.snapshot)
        metrics.METRICS.watch_leader(lambda: self.leadership.leading)
        metrics.METRICS.watch_resources(self._counts)
        metrics.METRICS.watch_connections(self.connections.counts)

    async def run(self) -> int:
        """Start, act until stopped, end in order; the exit code."""
        watched = asyncio.Event()
        async with self._health():
            if not await self._prepared():
                return OK
            tasks = [asyncio.create_task(work, name=name) for name, work in self._background().items()]
            acting = asyncio.create_task(self.leadership.run(self._act, self._rest), name="leadership")
            kopf = asyncio.create_task(self._watch(watched), name="watches")
            stopped = asyncio.create_task(self.stop.wait(), name="stop")
            done, _ = await asyncio.wait({acting, kopf, stopped, *tasks}, return_when=asyncio.FIRST_COMPLETED)
            ended = [t for t in done if t is not stopped]
            await self._wind_down(acting, stopped, *tasks)
        await self._unwatch(kopf, watched)
        if not ended:
            return OK
        # kopf, as it fails, cancels each task that began after it: then its own error is the cause.
        cause = next((t for t in (kopf, *ended) if t.done() and not t.cancelled() and t.exception()), ended[0])
        why = "it was cancelled" if cause.cancelled() else cause.exception() or "without an error"
        _log.error("ended because %s ended: %s", cause.get_name(), why)
        return FAILED

    async def _wind_down(self, acting: asyncio.Task[None], *others: asyncio.Task[Any]) -> None:
        """Passes end, then the Lease goes, then the events are written, then everything else ends but the watches."""
        await rest(self.halt, self.queue, self.leadership)
        await cancelled(acting)
        await self.recorder.flush(2.0)
        await cancelled(*others)
        await self.connections.close()

    @staticmethod
    async def _unwatch(kopf: asyncio.Task[None], watched: asyncio.Event) -> None:
        """End the watches, last of all: kopf waits for each task that began after it, its own or not."""
        watched.set()
        await asyncio.wait({kopf}, timeout=10.0)
        await cancelled(kopf)

    async def _prepared(self) -> bool:
        """Wait for the cluster to be prepared; False if stopped before."""
        preparing = asyncio.create_task(self._prepare(), name="preparation")
        stopped = asyncio.create_task(self.stop.wait(), name="stop")
        await asyncio.wait({preparing, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if preparing.done():
            await cancelled(stopped)
            preparing.result()
            return True
        await cancelled(preparing)
        return False

    async def _prepare(self) -> None:
        settings = self.settings
        await bootstrap.wait_for_definitions(self.api, self.declared, settings.namespaces)
        if settings.mirror_sessions:
            await bootstrap.wait_for_definitions(self.api, MIRRORS, (settings.operator_namespace,))
        await self.sync.note(settings.namespaces)
        self.connections.digest_key = await bootstrap.digest_key(self.api, settings.operator_namespace)
        self.connections.anchors = Anchors(self.api, settings.operator_namespace, self._may_write)
        self.controller.cluster = KubeCluster(
            self.api,
            self.index,
            cluster_id=await bootstrap.cluster_identity(self.api, settings.cluster_id),
            digest_key=self.connections.digest_key,
            may_write=self._may_write,
            tell=self._tell,
            wake=self.controller.wake,
            doubt=self.controller.ghosts.doubt,
            calling=self.connections.tokens,
            clusterwide=not settings.namespaces,
        )

    def _background(self) -> dict[str, Coroutine[Any, Any, None]]:
        secrets = MetadataWatch(self.api, self.controller.secret, namespaces=self.settings.namespaces)
        drift = DriftPass(
            KINDS,
            self.index,
            self.connections.accounts,
            self.controller.resync,
            Marks(self.controller.cluster.id, self.index, self.settings.namespaces),
            monotonic=self.world.monotonic,
            interval_seconds=self.settings.resync_seconds,
            may_look=lambda: self.leadership.leading,
            bodies=self._bodies,
            page_size=self.api.options.page_size,
        )
        mirror = sessions.SessionMirror(
            self.api,
            self.settings.operator_namespace,
            self._mirrored,
            self.world,
            interval_seconds=self.settings.sessions_interval_seconds,
            may_look=lambda: self.leadership.leading,
            may_write=self._may_write,
        )
        return {
            "sessions": mirror.run() if self.settings.mirror_sessions else mirror.clear(),
            "work queue": self.queue.run(),
            "events": self.recorder.run(),
            **({"API key": self.flags.follow(self.connections.use_flags)} if self.flags is not None else {}),
            "Secrets": secrets.run(),
            "drift": drift.run(),
            "ghosts": self.controller.ghosts.run(),
            "watches that failed": watching.guard(),
        }

    def _door(self) -> Door:
        return Door(
            self.world.monotonic,
            may_act=self.leadership.still_leading,
            call_seconds=self.settings.call_seconds,
            concurrency=self.settings.concurrency,
            adaptive=True,
            halt=self.halt,
        )

    def _known(self, key: Key) -> bool:
        return self.index.get(key) is not None or self.connections.known(key) or self.commander.knows(key)

    def _mirrored(self) -> Iterable[tuple[str, ManagementAPI]]:
        """The connections whose sessions are mirrored."""
        if not self.settings.mirror_sessions:
            return []
        return [(sessions.DEFAULT, self.connections.remote(DEFAULT_CONNECTION, self.settings.operator_namespace))]

    async def _bodies(self, kind: Kind[Any]) -> AsyncIterator[Resource]:
        """Every resource of a kind, page by page."""
        for namespace in self.settings.namespaces or ("",):
            async with contextlib.aclosing(self.api.pages(path(kind, namespace))) as pages:
                async for page in pages:
                    for item in page.get("items") or ():
                        yield item

    async def _watch(self, stop: asyncio.Event) -> None:
        registry = watching.registry(self.declared, self.api.credentials, self.controller.event)
        running = asyncio.create_task(
            watching.watch(registry, self.settings.namespaces, stop=stop, ready=self.watching), name="kopf"
        )
        await self.watching.wait()
        self.stop.listen()
        _log.info("watching %s", ", ".join(self.settings.namespaces) or "the whole cluster")
        await running

    async def _act(self) -> None:
        await self.sync.done()
        await self.connections.first(self.settings.call_seconds)
        _log.info("%d resources are known; work begins", len(self.index))
        self.queue.resume()

    async def _rest(self) -> None:
        self.queue.pause()

    def _may_write(self) -> None:
        if not self.leadership.still_leading(_write_seconds(self.settings)):
            raise NotLeading

    def _tell(self, resource: Resource, reason: str, message: str, warning: bool) -> None:
        kind = "Warning" if warning else "Normal"
        self.recorder.event(resource["kind"], resource["metadata"], kind, reason, message)  # type: ignore[arg-type]

    def _counts(self) -> Counter[tuple[str, str]]:
        return Counter((e.key[0], "True" if e.ready else "False") for e in self.index.entries())

    @contextlib.asynccontextmanager
    async def _health(self) -> AsyncIterator[None]:
        if self.settings.health_listen is None:
            yield
            return
        ready: Callable[[], str] = lambda: "" if self.watching.is_set() else "not watching yet"  # noqa: E731
        health = Health(self.settings.health_listen, alive=str, ready=ready, metrics_text=metrics.METRICS.text)
        async with health:
            yield


def _observed(attempt: Attempt) -> None:
    """Count a call of the management API."""
    error = attempt.error
    status = 200 if error is None else error.status if isinstance(error, StatusError) else 0
    metrics.called(attempt.collection or "other", attempt.method, status, attempt.seconds)
