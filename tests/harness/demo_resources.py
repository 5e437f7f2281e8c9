"""The sample resources as the cluster shows them, watched until all are Ready or all are gone."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from edge_operator.declare import GROUP, VERSION
from edge_operator.kinds import KINDS
from harness.cluster import Cluster
from harness.demo_screen import Screen, made
from harness.processes import HarnessError

LOOK_SECONDS = 0.25
COLUMNS = ("Kind", "Name", "Ready", "Reason", "After", "Id, or what it waits for")


class NotDone(HarnessError):
    """Some resources did not get there in time; `rows` are these."""

    def __init__(self, message: str, rows: "Sequence[Row]") -> None:
        super().__init__(message)
        self.rows = rows


@dataclass(frozen=True)
class Row:
    """One resource as it was seen last."""

    kind: str
    name: str
    ready: bool
    reason: str
    message: str
    id: str
    deleting: bool
    conditions: tuple[str, ...]
    """Each condition in a line."""

    @property
    def key(self) -> str:
        """For example `TLSEdge/example`."""
        return f"{self.kind}/{self.name}"

    @property
    def state(self) -> str:
        """What the column Ready says."""
        if self.deleting:
            return "deleting"
        return "True" if self.ready else "False" if self.reason else "-"


def rows(cluster: Cluster, namespace: str) -> list[Row]:
    """Every resource of the operator's kinds in a namespace."""
    found: list[Row] = []
    for kind in KINDS.values():
        path = f"/apis/{GROUP}/{VERSION}/namespaces/{namespace}/{kind.plural}"
        found += [_row(kind.name, item) for item in cluster.request("GET", path)["items"]]
    return found


def _row(kind: str, item: dict[str, Any]) -> Row:
    meta, status = item["metadata"], item.get("status") or {}
    conditions = {found["type"]: found for found in status.get("conditions") or ()}
    ready = conditions.get("Ready", {"status": "Unknown", "reason": "", "message": "not looked at yet"})
    current = status.get("observedGeneration") == meta["generation"]
    return Row(
        kind=kind,
        name=meta["name"],
        ready=ready["status"] == "True" and current,
        reason=ready["reason"],
        message=ready["message"],
        id=status.get("id", ""),
        deleting="deletionTimestamp" in meta,
        conditions=tuple(f"{c['type']}={c['status']} {c['reason']}: {c['message']}" for c in conditions.values()),
    )


class Watch:
    """Looks at the resources of a namespace again and again, and shows what it sees: a live table, or lines.

    `trouble()` is asked each time; where it says something, waiting is in vain.
    """

    def __init__(self, cluster: Cluster, namespace: str, screen: Screen, trouble: Callable[[], str]) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._screen = screen
        self._trouble = trouble

    def until_ready(self, limit_seconds: float) -> list[Row]:
        """The resources, once every one is Ready.

        Raises:
            NotDone: some are not, and the time is over or the operator ended.
        """
        return self._until((), "Ready", limit_seconds)

    def until_gone(self, known: Sequence[Row], limit_seconds: float) -> None:
        """Return when neither a known resource nor another is left.

        Raises:
            NotDone: some are, and the time is over or the operator ended.
        """
        self._until(known, "gone", limit_seconds)

    def _until(self, known: Sequence[Row], what: str, limit_seconds: float) -> list[Row]:
        """Look until all are what they should be, Ready or gone, and show it."""
        started, after, seen = time.monotonic(), dict[str, float](), dict[str, str]()
        last = {row.key: row for row in known}
        with self._screen.live() as live:
            while True:
                now = {row.key: row for row in rows(self._cluster, self._namespace)}
                last |= now
                elapsed = time.monotonic() - started
                for key, row in last.items():
                    if key not in now if what == "gone" else row.ready and not row.deleting:
                        after.setdefault(key, elapsed)
                    else:
                        after.pop(key, None)
                lines = [_line(row, after.get(key), gone=key not in now) for key, row in last.items()]
                if live:
                    live.update(made(COLUMNS, lines), refresh=True)
                else:
                    self._tell(lines, seen, elapsed)
                if len(after) == len(last) and (known or last):
                    return list(now.values())
                trouble = self._trouble()
                if trouble or elapsed > limit_seconds:
                    left = [row for key, row in last.items() if key not in after]
                    names = ", ".join(row.key for row in left)
                    raise NotDone(f"after {elapsed:.0f} s not {what}: {names}. {trouble}".strip(), left)
                time.sleep(LOOK_SECONDS)

    def _tell(self, lines: Sequence[Sequence[str]], seen: dict[str, str], elapsed: float) -> None:
        """Print what changed since the last look."""
        for kind, name, ready, reason, _, more in lines:
            key, text = f"{kind}/{name}", f"{ready:<9}{reason:<18} {more}".rstrip()
            if seen.get(key) != text:
                seen[key] = text
                self._screen.say(f"  {elapsed:5.1f} s   {key:<32} {text}")


def _line(row: Row, after: float | None, *, gone: bool) -> tuple[str, ...]:
    time_ = "" if after is None else f"{after:.1f} s"
    if gone:
        return row.kind, row.name, "gone", "", time_, ""
    more = row.id if row.ready and not row.deleting else row.message
    return row.kind, row.name, row.state, row.reason, time_, more
