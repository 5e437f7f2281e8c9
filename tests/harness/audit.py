"""The API server's audit log: what is written to it, and a reader that returns it as records."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
READS = frozenset({"get", "list", "watch"})

UNLOGGED = ["/healthz*", "/livez*", "/readyz*", "/version", "/openapi/*", "/api", "/api/*", "/apis", "/apis/*"]
POLICY: dict[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "nonResourceURLs": UNLOGGED},
        {"level": "None", "users": ["system:apiserver"]},
        {"level": "None", "users": ["system:kube-controller-manager"], "verbs": sorted(READS)},
        {"level": "Metadata"},
    ],
}
"""Every request of a client with who, what and the answer's code; without bodies, health checks and discovery."""


@dataclass(frozen=True)
class AuditEvent:
    """One request that the API server answered; a watch counts when it starts."""

    time: datetime
    user: str
    user_agent: str
    verb: str
    """For example `create`; `patch` for a server-side apply as well."""
    group: str
    """The API group; empty for the core group and for paths that are no resource."""
    resource: str
    """The plural, for example `secrets`."""
    subresource: str
    """For example `status`, mostly empty."""
    namespace: str
    name: str
    """Empty for lists, and for creations whose name the server makes."""
    code: int
    uri: str

    @property
    def writes(self) -> bool:
        """Whether it changed something, or tried to."""
        return self.verb in WRITES

    @property
    def housekeeping(self) -> bool:
        """Whether it is about Events or Leases, which counts of an operator's work leave out."""
        return self.resource in {"events", "leases"}

    @property
    def what(self) -> str:
        """The request in short, for example `patch httpsedges/status demo/web 200`."""
        kind = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        return f"{self.verb} {kind or self.uri} {self.namespace}/{self.name} {self.code}"


class AuditLog:
    """The audit log in a file, one JSON document a line, that an API server appends to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def size(self) -> int:
        """The number of bytes that the log has now."""
        return self.path.stat().st_size if self.path.exists() else 0

    def records(self, offset: int = 0) -> Iterator[AuditEvent]:
        """The records from an offset in bytes on; a line that is still being written is left out."""
        if not self.path.exists():
            return
        with self.path.open("rb") as log:
            log.seek(offset)
            for line in log:
                if not line.endswith(b"\n"):
                    return
                record = json.loads(line)
                if _counts(record):
                    yield _event(record)


def writes(events: list[AuditEvent]) -> list[AuditEvent]:
    """The writes among some records, Events and Leases apart: what an operator costs a cluster."""
    return [event for event in events if event.writes and not event.housekeeping]


def _counts(record: dict[str, Any]) -> bool:
    """Whether this is the one record by which a request is counted; a watch has one at its start and one at its end."""
    return bool((record["stage"] == "ResponseStarted") == (record["verb"] == "watch"))


def _event(record: dict[str, Any]) -> AuditEvent:
    about = record.get("objectRef") or {}
    return AuditEvent(
        time=datetime.fromisoformat(record["requestReceivedTimestamp"]),
        user=record["user"].get("username", ""),
        user_agent=record.get("userAgent", ""),
        verb=record["verb"],
        group=about.get("apiGroup", ""),
        resource=about.get("resource", ""),
        subresource=about.get("subresource", ""),
        namespace=about.get("namespace", ""),
        name=about.get("name", ""),
        code=(record.get("responseStatus") or {}).get("code", 0),
        uri=record["requestURI"],
    )
