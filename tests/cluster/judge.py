"""Holds every status that the operator writes in a cluster to the rules, as a watch sees it: also those in between."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from contextlib import aclosing
from typing import Any, Self

from doubles import legal
from edge_operator.declare import CustomResource
from edge_operator.kinds import DECLARED
from edge_operator.kube import errors
from edge_operator.kube.client import KubeAPI, Options
from edge_operator.kube.cluster import path
from harness.cluster import Cluster

Body = dict[str, Any]
WRITER = "edge-operator"
"""The field manager that the operator's writes have; statuses that a test wrote by hand are its own business."""
AGAIN_SECONDS = 0.2


class Judge:
    """Watches resources of all kinds in a thread of its own. A context manager; `found` are the faults so far."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.found: list[str] = []
        self.judged = 0
        """How many statuses were looked at."""
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="judge", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(20), "the watches did not begin"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(20)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._watch())

    async def _watch(self) -> None:
        options = Options(max_connections=len(DECLARED) + 2)
        async with await KubeAPI.connect(self._cluster.kubeconfig, options) as api:
            begun = {name: asyncio.Event() for name in DECLARED}
            tasks = [asyncio.create_task(self._follow(api, kind, begun[kind.name])) for kind in DECLARED.values()]
            await asyncio.gather(*(event.wait() for event in begun.values()))
            self._ready.set()
            await self._stop.wait()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self, api: KubeAPI, kind: CustomResource[Any], begun: asyncio.Event) -> None:
        """One kind, for ever; after a gap, what came before a status is not known."""
        while True:
            with contextlib.suppress(errors.KubeError):
                listing = await api.list(path(kind))
                before = {item["metadata"]["uid"]: item.get("status") or {} for item in listing.items}
                begun.set()
                version = listing.resource_version
                while True:
                    async with aclosing(api.watch(path(kind), resource_version=version)) as events:
                        async for type_, resource in events:
                            version = resource["metadata"]["resourceVersion"]
                            if type_ in ("ADDED", "MODIFIED"):
                                uid = resource["metadata"]["uid"]
                                self._judge(resource, before.get(uid, {}))
                                before[uid] = resource.get("status") or {}
            begun.set()
            await asyncio.sleep(AGAIN_SECONDS)

    def _judge(self, resource: Body, before: Body) -> None:
        status, meta = resource.get("status") or {}, resource["metadata"]
        writers = {f["manager"] for f in meta.get("managedFields") or () if f.get("subresource") == "status"}
        if status == before or not status.get("conditions") or writers != {WRITER}:
            return
        self.judged += 1
        try:
            legal.check(resource, before)
        except legal.IllegalStatus as why:
            self.found.append(f"{resource['kind']} {meta.get('namespace', '')}/{meta['name']}: {why}")
