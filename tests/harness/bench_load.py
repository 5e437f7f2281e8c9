"""The resources of the benchmark, and a client that creates, patches and deletes many at a time."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import httpx_aiohttp

from edge_operator.declare import GROUP, VERSION, Kind
from edge_operator.kinds import KINDS
from harness import kubeconfig
from harness.cluster import MERGE_PATCH, Cluster
from harness.processes import HarnessError

CONCURRENCY = 24
"""Requests at one time: as many as the operator has workers."""
Body = dict[str, Any]
Task = Callable[[httpx.AsyncClient], Awaitable[None]]


def weighted_backend(number: int) -> Body:
    """Two children by id: nothing that has to be looked up."""
    children = [
        {"ref": {"id": f"bkdhr_{number:027d}"}, "weight": 90},
        {"ref": {"id": f"bkdtg_{number:027d}"}, "weight": 10},
    ]
    return {"description": f"backend {number}", "backends": children}


def tls_edge(number: int) -> Body:
    """An edge with a backend by name and a termination; every second has an IP restriction, every fourth mutual TLS."""
    spec: Body = {
        "description": f"edge {number}",
        "hostports": [f"host-{number}.example.com:443"],
        "backend": {"ref": {"kind": "WeightedBackend", "name": name(number)}},
        "tlsTermination": {"terminateAt": "edge", "minVersion": "1.3"},
    }
    if number % 2 == 0:
        spec["ipRestriction"] = {"ipPolicies": [{"id": f"ipp_{number:027d}"}]}
    if number % 4 == 0:
        spec["mutualTLS"] = {"certificateAuthorities": [{"id": f"ca_{number:027d}"}]}
    return spec


SPECS: Mapping[str, Callable[[int], Body]] = {"WeightedBackend": weighted_backend, "TLSEdge": tls_edge}
"""The kinds that are measured, in the order of their creation: edges name backends."""


def name(number: int) -> str:
    """The name of a resource by its number."""
    return f"bench-{number}"


@dataclass(frozen=True)
class Load:
    """`count` resources of a kind in a namespace."""

    cluster: Cluster
    kind: Kind[Any]
    namespace: str
    count: int

    @property
    def collection(self) -> str:
        """Where they are in the Kubernetes API."""
        return f"/apis/{GROUP}/{VERSION}/namespaces/{self.namespace}/{self.kind.plural}"

    def create(self) -> None:
        """Create them all."""
        self._all(lambda number: _sending("POST", self.collection, self._manifest(number)))

    def delete(self) -> None:
        """Delete them all; do not wait until they are gone."""
        self._all(lambda number: _sending("DELETE", self._path(number)))

    def write_plainly(self) -> float:
        """Two writes to each, one to the metadata and one to the status, back to back: how long it took, in seconds."""
        started = time.perf_counter()
        self._all(self._two_writes)
        return time.perf_counter() - started

    def left(self) -> int:
        """How many there are."""
        return len(self._items())

    def ready(self) -> int:
        """How many are Ready in their newest generation."""
        return sum(_is_ready(item) for item in self._items())

    def unready(self) -> str:
        """A few that are not Ready, and why."""
        found = [item for item in self._items() if not _is_ready(item)]
        texts = [f"{item['metadata']['name']}: {(item.get('status') or {}).get('conditions')}" for item in found[:3]]
        return "\n".join([f"{len(found)} of {self.kind.name} are not Ready", *texts])

    def _items(self) -> list[Body]:
        found: list[Body] = self.cluster.request("GET", self.collection, resourceVersion="0")["items"]
        return found

    def _path(self, number: int) -> str:
        return f"{self.collection}/{name(number)}"

    def _manifest(self, number: int) -> Body:
        return {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": self.kind.name,
            "metadata": {"name": name(number)},
            "spec": SPECS[self.kind.name](number),
        }

    def _two_writes(self, number: int) -> Task:
        metadata = {"metadata": {"annotations": {f"{GROUP}/bench": f"{number:064d}"}}}
        condition = {"type": "Ready", "status": "True", "reason": "Available", "message": "the remote object is there"}
        condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
        status = {"status": {"id": f"{self.kind.api.prefix}{number:027d}", "conditions": [condition]}}

        async def write(client: httpx.AsyncClient) -> None:
            await _sending("PATCH", self._path(number), metadata)(client)
            await _sending("PATCH", f"{self._path(number)}/status", status)(client)

        return write

    def _all(self, task: Callable[[int], Task]) -> None:
        asyncio.run(_together(self.cluster, [task(number) for number in range(self.count)]))


def load(cluster: Cluster, kind: str, namespace: str, count: int) -> Load:
    """Resources of a kind by its name."""
    return Load(cluster, KINDS[kind], namespace, count)


def _is_ready(item: Mapping[str, Any]) -> bool:
    status = item.get("status") or {}
    current = status.get("observedGeneration") == item["metadata"]["generation"]
    return current and any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions") or ())


def _sending(method: str, path: str, body: Body | None = None) -> Task:
    """A request that has to succeed."""
    headers = {"Content-Type": MERGE_PATCH if method == "PATCH" else "application/json"}

    async def send(client: httpx.AsyncClient) -> None:
        answer = await client.request(method, path, json=body, headers=headers)
        if not answer.is_success:
            raise HarnessError(f"{method} {path}: {answer.status_code} {answer.text[:300]}")

    return send


async def _together(cluster: Cluster, tasks: Sequence[Task]) -> None:
    """Carry out tasks, a bounded number at one time."""
    server, admin = kubeconfig.read(cluster.kubeconfig)
    headers = {"Authorization": admin.headers["Authorization"]}
    admin.close()
    rest = iter(tasks)
    transport = httpx_aiohttp.AiohttpTransport(verify=server.context())
    async with httpx.AsyncClient(base_url=server.url, headers=headers, transport=transport, timeout=60) as client:

        async def work() -> None:
            for task in rest:
                await task(client)

        async with asyncio.TaskGroup() as group:
            for _ in range(CONCURRENCY):
                group.create_task(work())
