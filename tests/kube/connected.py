"""Connections on an API server in memory and a real HTTP service with several accounts, and a queue that is read."""

from __future__ import annotations

import base64
import contextlib
import copy
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any

from aiohttp import web

from edge_operator.api import profiles
from edge_operator.door import Door
from edge_operator.engine.references import ConnectionKey
from edge_operator.kinds import COMPANIONS, KINDS
from edge_operator.kube import errors, paths
from edge_operator.kube.anchors import Anchors
from edge_operator.kube.bootstrap import DIGEST_SECRET
from edge_operator.kube.cluster import path
from edge_operator.kube.connections import Connections
from edge_operator.kube.index import Index, Key
from edge_operator.kube.terms import Terms
from edge_operator.kube.world import System

from .apiserver import serving

JSON = dict[str, Any]
MAIN: ConnectionKey = ("Connection", "a", "main")
KIND = "FailoverBackend"


async def nothing(what: str) -> None:
    """No disturbance."""


class Cluster:
    """An API server: versions, conflicts, merge patches. `before` is told of each request and may do anything."""

    def __init__(self) -> None:
        self.objects: dict[str, JSON] = {}
        self.version = 0
        self.log: list[str] = []
        self.before: Callable[[str], Awaitable[None]] = nothing

    def put(self, at: str, body: JSON) -> JSON:
        self.version += 1
        stored = copy.deepcopy(body)
        stored["metadata"]["resourceVersion"] = str(self.version)
        self.objects[at] = stored
        return copy.deepcopy(stored)

    async def get(self, at: str, *, metadata_only: bool = False) -> JSON:
        del metadata_only
        await self._enter(f"GET {at}")
        return copy.deepcopy(self._at(at))

    async def merge_patch(self, at: str, body: JSON, *, subresource: str = "") -> JSON:
        await self._enter(f"PATCH {at} {subresource}".rstrip())
        found = self._at(at)
        if (
            body["metadata"].get("resourceVersion", found["metadata"]["resourceVersion"])
            != (found["metadata"]["resourceVersion"])
        ):
            raise errors.Conflict("no", status=409)
        stored = self.put(at, _merged(found, body))
        meta = stored["metadata"]
        if meta.get("deletionTimestamp") and not meta.get("finalizers"):
            del self.objects[at]
        return stored

    def _at(self, at: str) -> JSON:
        if at not in self.objects:
            raise errors.NotFound("no", status=404)
        return self.objects[at]

    async def _enter(self, what: str) -> None:
        self.log.append(what)
        await self.before(what)


def _merged(old: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    out = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        else:
            out[key] = _merged(out.get(key), value)
    return out


class Queue:
    """What was offered, with the time at which it is due; None is now."""

    def __init__(self) -> None:
        self.offers: list[tuple[Key, float | None]] = []
        self.priorities: dict[Key, list[Any]] = {}

    def offer(self, key: Key, *, priority: Any, due: float | None = None) -> None:
        self.offers.append((key, due))
        self.priorities.setdefault(key, []).append(priority)

    def failed(self, key: Key) -> float:
        del key
        return 1.0

    def succeeded(self, key: Key) -> None:
        del key


class Service:
    """Several accounts behind one address: by API key, the ids of failover backends that each holds."""

    def __init__(self) -> None:
        self.url = ""
        self.accounts: dict[str, list[str]] = {"key-a": [], "key-b": []}
        self.calls: list[str] = []
        self.before: Callable[[str], Awaitable[None]] = nothing
        self.refuses: dict[str, tuple[int, dict[str, str]]] = {}
        """Status and headers of the answer, by method and path."""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        what = f"{request.method} {request.path}"
        self.calls.append(what)
        await self.before(what)
        key = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if key not in self.accounts:
            return self._no(401)
        if what in self.refuses:
            return self._no(*self.refuses[what])
        if request.path == "/backends/failover":
            items = [{"id": id_, "metadata": ""} for id_ in self.accounts[key]]
            return web.json_response({"backends": items, "failover_backends": items, "next_page_uri": None})
        id_ = request.path.rpartition("/")[2]
        if id_ in self.accounts[key]:
            return web.json_response({"id": id_, "metadata": ""})
        if request.path == "/api_keys":
            return web.json_response({"keys": [], "next_page_uri": None})
        return self._no(404)

    @staticmethod
    def _no(status: int, headers: dict[str, str] | None = None) -> web.Response:
        body = {"status_code": status, "error_code": "ERR_1", "msg": "no", "details": {}}
        return web.json_response(body, status=status, headers=headers)


class Scene:
    """An operator's connections, with the hands of a user."""

    def __init__(self, service: Service) -> None:
        self.service, self.cluster, self.queue, self.index = service, Cluster(), Queue(), Index(KINDS)
        self.woken: list[Key] = []
        self.told: list[str] = []
        self.world = System()
        self.connections = Connections(
            self.index,
            self.world,
            namespace="op",
            clusterwide=True,
            call_seconds=5.0,
            door=lambda: Door(self.world.monotonic),
            observer=lambda _: None,
            wake=self._wake,
            tell=lambda _, reason, __, ___: self.told.append(reason),
        )
        self.connections.queue = self.queue  # type: ignore[assignment]  # what is asked of it
        self.connections.anchors = Anchors(self.cluster, "op", lambda: None)  # type: ignore[arg-type]  # likewise
        self.connections.digest_key = b"digest key"
        self.cluster.put(paths.secret("op", DIGEST_SECRET), {"metadata": {"name": DIGEST_SECRET}})

    def _wake(self, keys: Iterable[Key]) -> None:
        self.woken += keys

    def secret(self, name: str = "account", key: str = "key-a", namespace: str = "a") -> None:
        at = paths.secret(namespace, name)
        meta = self.cluster.objects.get(at, {}).get("metadata") or {"name": name}
        data = {"api-key": base64.b64encode(key.encode()).decode()}
        self.cluster.put(at, {"metadata": meta, "data": data})

    def finalizers(self, name: str = "account") -> Sequence[str]:
        return self.cluster.objects[paths.secret("a", name)]["metadata"].get("finalizers") or ()

    def terms(self, key: str) -> Terms:
        """Terms as the operator's flags may state them."""
        return Terms(self.service.url, key, profiles.load("neutral"), call_seconds=5.0, concurrency=4)

    def at(self, key: ConnectionKey = MAIN) -> str:
        return path(COMPANIONS[key[0]], key[1], key[2])

    def connect(self, key: ConnectionKey = MAIN, *, uid: str = "u1", account: str = "account", **spec: Any) -> JSON:
        """Create a connection or replace its spec, without the event."""
        old = self.cluster.objects.get(self.at(key))
        wanted = {"url": self.service.url, "apiKey": {"secretKeyRef": {"name": account, "key": "api-key"}}, **spec}
        if old is None or old["metadata"]["uid"] != uid:
            meta = {"uid": uid, "name": key[2], "generation": 1, **({"namespace": key[1]} if key[1] else {})}
            return self.cluster.put(self.at(key), {"kind": key[0], "metadata": meta, "spec": wanted})
        meta = {**old["metadata"], "generation": old["metadata"]["generation"] + 1}
        return self.cluster.put(self.at(key), {**old, "metadata": meta, "spec": wanted})

    def delete(self, key: ConnectionKey = MAIN) -> None:
        """As `kubectl delete` does where there is a finalizer, with the event."""
        body = self.cluster.objects[self.at(key)]
        meta = {**body["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
        self.event(self.cluster.put(self.at(key), {**body, "metadata": meta}))

    def event(self, body: JSON, type_: str = "MODIFIED") -> None:
        self.connections.event(COMPANIONS[body["kind"]], type_, body)

    def gone(self, key: ConnectionKey = MAIN) -> None:
        """The connection is away, by force, with the event."""
        self.event(self.cluster.objects.pop(self.at(key)), "DELETED")

    def resource(self, name: str, id_: str | None = None, ref: JSON | None = None, *, looked: bool = True) -> None:
        """A resource that goes through a connection, and is not in sync."""
        self.cluster.version += 1
        meta = {"namespace": "a", "name": name, "uid": name, "resourceVersion": str(self.cluster.version)}
        status = {"id": id_} if id_ else {}
        spec = {"backends": [{"id": "bkdtg_1"}], **({"connectionRef": ref} if ref else {})}
        self.index.observe(KINDS[KIND], {"metadata": meta, "spec": spec, "status": status})
        entry = self.index.get((KIND, "a", name))
        assert entry is not None
        entry.looked = looked

    async def work(self, key: ConnectionKey = MAIN) -> None:
        await self.connections.work(key)

    def status(self, key: ConnectionKey = MAIN) -> JSON:
        return self.cluster.objects[self.at(key)].get("status") or {}

    def reason(self, key: ConnectionKey = MAIN) -> str:
        found = [c["reason"] for c in self.status(key).get("conditions") or () if c["type"] == "Ready"]
        return found[0] if found else ""

    def door(self, key: ConnectionKey = MAIN) -> Door:
        return self.connections.remote(key, "a").door

    def key_in_use(self, key: ConnectionKey = MAIN) -> str | None:
        """The API key that a resource would use now; None where the door is shut."""
        if self.door(key).shut is not None:
            return None
        terms = self.connections._accounts[key].terms
        return terms.api_key if terms else None


@contextlib.asynccontextmanager
async def scene(*, connected: bool = True) -> AsyncIterator[Scene]:
    """A scene, by default with the connection `main` to the account of `key-a`."""
    service = Service()
    async with serving(service.answer) as server:
        service.url = server.url
        found = Scene(service)
        if connected:
            found.secret()
            found.event(found.connect(), "ADDED")
            await found.work()
            assert found.reason() == "Connected"
        try:
            yield found
        finally:
            await found.connections.close()
