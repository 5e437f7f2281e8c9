"""Every metric of the operator, in one place; the names are documented and stay.

Labels are bounded: no object's name, id, path or message is one, and a value beyond the first hundred of a label
becomes "other".
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from edge_operator import __version__
from edge_operator.kube.queue import Snapshot
from edge_operator.kube.transport import Call

CONTENT_TYPE = CONTENT_TYPE_LATEST
VALUES = 100
"""How many different values a label may have."""
SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


class Metrics:
    """The metrics of one operator. What happens is told by the methods; what is, is asked when somebody looks."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self._seen: dict[str, set[str]] = {}
        self._count_passes()
        self._count_calls()
        self._count_events()

    def _count_passes(self) -> None:
        self._passes = self._counter(
            "reconciles", "Passes of a resource down the line, by how they ended.", "kind", "outcome"
        )
        self._pass_seconds = self._histogram("reconcile_seconds", "How long a pass took, in seconds.", "kind")
        self._drift = self._counter("drift_corrections", "Differences made elsewhere that were set right.", "kind")
        self._recoveries = self._counter(
            "recoveries", "Interrupted creations that were settled: adopted, created, or duplicates removed.",
            "kind", "outcome",
        )  # fmt: skip
        self._abandoned = self._counter(
            "abandoned", "Remote objects left behind because their resource says so.", "kind"
        )

        self._orphaned = Gauge(
            "edge_operator_orphaned",
            "Objects marked by this cluster whose resource is gone, as the last list showed.",
            ["kind"],
            registry=self.registry,
        )
        self._commands = self._counter(
            "commands", "Commands to agents: accepted, refused, or lost.", "command", "outcome"
        )

        self._defects = self._counter("defects", "Errors that nobody foresaw, by where they were caught.", "where")

    def _count_calls(self) -> None:
        self._calls = self._counter(
            "api_calls", "Calls of the management API; the status is 0 where there was no answer.",
            "collection", "method", "status",
        )  # fmt: skip
        self._call_seconds = self._histogram("api_call_seconds", "How long a call took, in seconds.", "collection")
        self._requests = self._counter(
            "cluster_requests", "Requests to the Kubernetes API; the status is 0 where there was no answer.",
            "resource", "method", "status",
        )  # fmt: skip
        self._writes = self._counter("cluster_writes", "Successful writes to the Kubernetes API.", "type")

    def _count_events(self) -> None:
        self._events = self._counter("events", "Kubernetes Events: created, counted up, dropped or failed.", "outcome")
        labels = {"version": __version__, "python": platform.python_version()}
        info = Gauge("edge_operator_info", "Always 1; the labels say what runs.", labels.keys(), registry=self.registry)
        info.labels(**labels).set(1)

    def reconciled(self, kind: str, outcome: str, seconds: float) -> None:
        """A pass ended. `outcome` is a reason of the closed list, or `error`."""
        self._passes.labels(kind, self._bounded("outcome", outcome)).inc()
        self._pass_seconds.labels(kind).observe(seconds)

    def called(self, collection: str, method: str, status: int, seconds: float) -> None:
        """The management API was called. `collection` is a path of the catalog, never of an object."""
        collection = self._bounded("collection", collection)
        self._calls.labels(collection, method, str(status)).inc()
        self._call_seconds.labels(collection).observe(seconds)

    def requested(self, call: Call) -> None:
        """The Kubernetes API was asked; give this to `KubeAPI` as `on_call`."""
        about = self._bounded("resource", call.about)
        self._requests.labels(about, call.method, str(call.status)).inc()
        if call.method in WRITES and 200 <= call.status < 300:
            self._writes.labels(about).inc()

    def corrected(self, kind: str, count: int = 1) -> None:
        """Drift was healed."""
        self._drift.labels(kind).inc(count)

    def recovered(self, kind: str, outcome: str) -> None:
        """An interrupted creation was settled, for example by `adopted`, `created` or `duplicate-removed`."""
        self._recoveries.labels(kind, self._bounded("recovery", outcome)).inc()

    def abandoned(self, kind: str) -> None:
        """A remote object was left behind on request."""
        self._abandoned.labels(kind).inc()

    def orphaned(self, kind: str, count: int) -> None:
        """So many objects carry this cluster's marker and have no resource."""
        self._orphaned.labels(kind).set(count)

    def defective(self, where: str) -> None:
        """An error that nobody foresaw was caught: in a pass of a `resource`, in `drift` or in `sessions`."""
        self._defects.labels(where).inc()

    def commanded(self, command: str, outcome: str) -> None:
        """An agent was told: `accepted`, `refused` or `lost`."""
        self._commands.labels(command, outcome).inc()

    def event(self, outcome: str) -> None:
        """An Event was `created`, `counted`, `dropped` or `failed`; give this to `Recorder` as `on_outcome`."""
        self._events.labels(outcome).inc()

    def watch_queue(self, snapshot: Callable[[], Snapshot]) -> None:
        """Show what a queue holds, asked when somebody looks."""
        self.registry.register(_Asked(lambda: _queue(snapshot())))

    def watch_resources(self, counts: Callable[[], Mapping[tuple[str, str], int]]) -> None:
        """Show how many resources there are by (kind, "True" | "False" | "Unknown")."""
        self.registry.register(_Asked(lambda: _resources(counts())))

    def watch_connections(self, counts: Callable[[], Mapping[tuple[str, str], int]]) -> None:
        """Show how many connections there are by (kind, reason of their Ready condition)."""
        self.registry.register(_Asked(lambda: _connections(counts())))

    def watch_leader(self, leading: Callable[[], bool]) -> None:
        """Show whether this replica acts."""
        gauge = Gauge("edge_operator_leader", "1 while this replica acts, else 0.", registry=self.registry)
        gauge.set_function(lambda: float(leading()))

    def text(self) -> bytes:
        """All of it, in Prometheus' text format."""
        return generate_latest(self.registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"edge_operator_{name}", text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, *labels: str) -> Histogram:
        return Histogram(f"edge_operator_{name}", text, labels, buckets=SECONDS, registry=self.registry)

    def _bounded(self, label: str, value: str) -> str:
        seen = self._seen.setdefault(label, set())
        if value not in seen:
            if len(seen) >= VALUES:
                return "other"
            seen.add(value)
        return value


class _Asked(Collector):
    """A collector that asks when somebody looks."""

    def __init__(self, ask: Callable[[], Iterable[Metric]]) -> None:
        self._ask = ask

    def describe(self) -> Iterable[Metric]:
        """Nothing, so that registering it asks nothing."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """What there is now."""
        return self._ask()


def _queue(snapshot: Snapshot) -> Iterable[Metric]:
    ready = GaugeMetricFamily("edge_operator_queue_ready", "Keys that could be worked on.", labels=["priority"])
    for priority, count in snapshot.ready.items():
        ready.add_metric([priority.name.lower()], count)
    yield ready
    yield GaugeMetricFamily("edge_operator_queue_running", "Keys that are worked on.", snapshot.running)
    yield GaugeMetricFamily("edge_operator_queue_scheduled", "Keys that are due later.", snapshot.scheduled)
    yield GaugeMetricFamily(
        "edge_operator_queue_oldest_seconds", "How long the oldest ready key has waited, in seconds.",
        snapshot.oldest_seconds,
    )  # fmt: skip


def _resources(counts: Mapping[tuple[str, str], int]) -> Iterable[Metric]:
    family = GaugeMetricFamily(
        "edge_operator_resources",
        "Resources by kind and the status of their Ready condition.",
        labels=["kind", "ready"],
    )
    for (kind, ready), count in sorted(counts.items()):
        family.add_metric([kind, ready], count)
    yield family


def _connections(counts: Mapping[tuple[str, str], int]) -> Iterable[Metric]:
    family = GaugeMetricFamily(
        "edge_operator_connections",
        "Connections by kind and the reason of their Ready condition.",
        labels=["kind", "reason"],
    )
    for (kind, reason), count in sorted(counts.items()):
        family.add_metric([kind, reason], count)
    yield family


METRICS = Metrics()
"""The metrics of this process; tests make their own."""
reconciled = METRICS.reconciled
called = METRICS.called
requested = METRICS.requested
corrected = METRICS.corrected
recovered = METRICS.recovered
abandoned = METRICS.abandoned
orphaned = METRICS.orphaned
defective = METRICS.defective
commanded = METRICS.commanded
event = METRICS.event
