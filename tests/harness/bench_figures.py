"""What a phase of the benchmark cost: counted by the audit log, the request log and the operating system."""

import os
import platform
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from harness import audit
from harness.control_plane import ControlPlane
from harness.operator import Account, ReferenceAPI

COLUMNS = (
    "Phase", "Kind", "N", "Seconds", "x raw", "Calls each", "Writes each", "Reads", "Events", "Leases", "CPU ms each",
    "Peak MiB",
)  # fmt: skip


@dataclass(frozen=True)
class Usage:
    """What a process has used since its start; None where the operating system does not say (it needs /proc)."""

    cpu_seconds: float | None = None
    peak_mib: float | None = None


def usage(pid: int) -> Usage:
    """What a process has used."""
    folder = Path(f"/proc/{pid}")
    if not folder.exists():
        return Usage()
    times = (folder / "stat").read_text().rpartition(")")[2].split()
    peak = next(line for line in (folder / "status").read_text().splitlines() if line.startswith("VmHWM:"))
    return Usage(
        cpu_seconds=(int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK"), peak_mib=int(peak.split()[1]) / 1024
    )


@dataclass(frozen=True)
class Figures:
    """A phase in numbers. Counts are of the operator alone; Events and Leases are in none of the others."""

    phase: str
    kind: str
    count: int
    seconds: float
    api_calls: int
    api_calls_by_method: Mapping[str, int]
    api_refusals: int
    writes: int
    writes_by_resource: Mapping[str, int]
    write_refusals: int
    reads: int
    reads_by_resource: Mapping[str, int]
    events: int
    leases: int
    cpu_seconds: float | None
    peak_mib: float | None
    ratio_to_raw_writes: float | None = None

    def compared(self, raw: Mapping[str, Sequence[float]]) -> Self:
        """The same, a creation with its ratio to what plain writes took, in seconds by kind."""
        if self.phase != "create":
            return self
        return replace(self, ratio_to_raw_writes=self.seconds / statistics.mean(raw[self.kind]))

    @property
    def row(self) -> tuple[str, ...]:
        """One line of the table."""
        ratio = "" if self.ratio_to_raw_writes is None else f"{self.ratio_to_raw_writes:.2f}"
        each = (f"{self.api_calls / self.count:.2f}", f"{self.writes / self.count:.2f}")
        cpu = "?" if self.cpu_seconds is None else f"{1000 * self.cpu_seconds / self.count:.2f}"
        peak = "?" if self.peak_mib is None else f"{self.peak_mib:.0f}"
        counts = (str(self.reads), str(self.events), str(self.leases))
        return (self.phase, self.kind, str(self.count), f"{self.seconds:.2f}", ratio, *each, *counts, cpu, peak)

    def to_json(self) -> dict[str, Any]:
        """The same with what each resource cost."""
        each = {"api_calls_each": self.api_calls / self.count, "writes_each": self.writes / self.count}
        return {**asdict(self), **each}


class Meter:
    """Counts what the operator does from a mark on."""

    def __init__(self, cluster: ControlPlane, api: ReferenceAPI, account: Account) -> None:
        self._cluster = cluster
        self._api = api
        self._account = account
        self.mark()

    def mark(self, before: Usage | None = None) -> None:
        """Begin anew; `before` is what the operator's process had used by then."""
        self._audit = self._cluster.audit_mark()
        self._requests = self._api.requests_mark()
        self._before = before or Usage(0.0, 0.0)

    def activity(self) -> tuple[int, int]:
        """How many requests there were to the API server, Events and Leases apart, and to the management API."""
        return len([event for event in self._events() if not event.housekeeping]), len(self._calls())

    def first(self, verb: str, resource: str) -> datetime:
        """When anybody first did this to a resource."""
        events = self._cluster.audit_events(since=self._audit)
        return min(event.time for event in events if (event.verb, event.resource) == (verb, resource))

    def last_write(self) -> datetime:
        """When the operator wrote last."""
        return max(event.time for event in audit.writes(self._events()))

    def figures(self, phase: str, kind: str, count: int, seconds: float, after: Usage) -> Figures:
        """What happened since the mark."""
        events, calls = self._events(), self._calls()
        writes = audit.writes(events)
        reads = [event for event in events if not event.writes and not event.housekeeping]
        cpu = None
        if after.cpu_seconds is not None and self._before.cpu_seconds is not None:
            cpu = after.cpu_seconds - self._before.cpu_seconds
        return Figures(
            phase=phase,
            kind=kind,
            count=count,
            seconds=seconds,
            api_calls=len(calls),
            api_calls_by_method=dict(Counter(call["method"] for call in calls)),
            api_refusals=sum((call["status"] or 0) >= 400 for call in calls),
            writes=len(writes),
            writes_by_resource=dict(Counter(_about(writes))),
            write_refusals=sum(event.code >= 400 for event in writes),
            reads=len(reads),
            reads_by_resource=dict(Counter(_about(reads))),
            events=sum(event.writes and event.resource == "events" for event in events),
            leases=sum(event.writes and event.resource == "leases" for event in events),
            cpu_seconds=cpu,
            peak_mib=after.peak_mib,
        )

    def _events(self) -> list[audit.AuditEvent]:
        return self._cluster.audit_events(self._account.user, self._audit)

    def _calls(self) -> Sequence[Mapping[str, Any]]:
        return list(self._api.requests(self._requests))


def machine() -> dict[str, Any]:
    """What it ran on, so that figures of different machines are not compared by mistake."""
    return {
        "cores": os.cpu_count(),
        "load_average_at_start": os.getloadavg()[0],
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _about(events: Iterable[audit.AuditEvent]) -> Iterable[str]:
    return (f"{event.verb} {event.resource}{f'/{event.subresource}' * bool(event.subresource)}" for event in events)
