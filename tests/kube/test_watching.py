"""kopf's watch of custom resources, on a server that speaks HTTP."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from edge_operator.declare import GROUP, VERSION
from edge_operator.kinds import KINDS
from edge_operator.kube import watching
from edge_operator.kube.credentials import Credentials

from .apiserver import kubeconfig, serving

KIND = KINDS["FailoverBackend"]


def resource(name: str, version: int) -> dict[str, Any]:
    meta = {"namespace": "a", "name": name, "uid": name, "resourceVersion": str(version), "generation": 1}
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND.name, "metadata": meta, "spec": {}}


def group(name: str, version: str) -> dict[str, Any]:
    found = {"groupVersion": f"{name}/{version}", "version": version}
    return {"name": name, "versions": [found], "preferredVersion": found}


def resources(plural: str, kind: str) -> dict[str, Any]:
    """What discovery says of one resource."""
    found = {"name": plural, "kind": kind, "singularName": "", "shortNames": [], "categories": []}
    return {"resources": [{**found, "namespaced": True, "verbs": ["list", "watch", "patch"]}]}


DEFINITIONS = "apiextensions.k8s.io"
DISCOVERY: dict[str, dict[str, Any]] = {
    "/api": {"versions": ["v1"]},
    "/api/v1": resources("namespaces", "Namespace"),
    "/apis": {"groups": [group(GROUP, VERSION), group(DEFINITIONS, "v1")]},
    f"/apis/{GROUP}/{VERSION}": resources(KIND.plural, KIND.name),
    f"/apis/{DEFINITIONS}/v1": resources("customresourcedefinitions", "CustomResourceDefinition"),
}


class Server:
    """One list after the other, and watches that say what they are told to and then wait."""

    def __init__(self) -> None:
        self.lists = [(10, ["x", "goes"]), (20, ["x", "new"])]
        self.watches: list[list[dict[str, Any]]] = [[gone(410)], [{"type": "ADDED", "object": resource("later", 21)}]]
        self.since: list[str] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if (found := DISCOVERY.get(request.path)) is not None:
            return web.json_response(found)
        if request.query.get("watch"):
            return await self._watch(request)
        version, names = self.lists.pop(0) if len(self.lists) > 1 else self.lists[0]
        items = [resource(name, version) for name in names]
        return web.json_response(
            {"kind": f"{KIND.name}List", "metadata": {"resourceVersion": str(version)}, "items": items}
        )

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        self.since.append(request.query["resourceVersion"])
        response = web.StreamResponse()
        await response.prepare(request)
        for event in self.watches.pop(0) if self.watches else ():
            await response.write(json.dumps(event).encode() + b"\n")
        await asyncio.sleep(30)
        return response


def gone(code: int) -> dict[str, Any]:
    return {"type": "ERROR", "object": {"kind": "Status", "code": code, "reason": "Expired", "message": "too old"}}


@pytest.mark.fault("a watch of custom resources that expires (410)")
async def test_after_an_expiry_all_is_listed_anew_and_the_watch_goes_on_from_there(tmp_path: Path) -> None:
    server, told, enough = Server(), list[tuple[str | None, str, str]](), asyncio.Event()

    def seen(_: Any, type_: str | None, found: Any) -> None:
        told.append((type_, found["metadata"]["name"], found["metadata"]["resourceVersion"]))
        if found["metadata"]["name"] == "later":
            enough.set()

    async with serving(server.answer) as running:
        credentials = await Credentials.load(kubeconfig(tmp_path, running.url, {"token": "t"}))
        stop, ready = asyncio.Event(), asyncio.Event()
        registry = watching.registry({KIND.name: KIND}, credentials, seen)
        task = asyncio.create_task(watching.watch(registry, ("a",), stop=stop, ready=ready))
        try:
            await asyncio.wait_for(enough.wait(), 20)
        finally:
            stop.set()
            await asyncio.wait({task}, timeout=10)

    first, second = {(None, "x", "10"), (None, "goes", "10")}, {(None, "x", "20"), (None, "new", "20")}
    assert {*told} == first | second | {("ADDED", "later", "21")}
    assert server.since[:2] == ["10", "20"]


@pytest.mark.fault("a watch of custom resources that is given up")
async def test_a_watch_that_is_given_up_is_noticed(tmp_path: Path) -> None:
    """kopf logs it and goes on without; nobody would hear of those resources again."""
    server = Server()

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path.endswith(KIND.plural):
            return web.Response(text="{", content_type="application/json")
        return await server.answer(request)

    async with serving(answer) as running:
        credentials = await Credentials.load(kubeconfig(tmp_path, running.url, {"token": "t"}))
        stop, ready = asyncio.Event(), asyncio.Event()
        registry = watching.registry({KIND.name: KIND}, credentials, lambda *_: None)
        task = asyncio.create_task(watching.watch(registry, ("a",), stop=stop, ready=ready))
        try:
            with pytest.raises(watching.WatchFailed, match=f"watcher for {KIND.plural}"):
                await asyncio.wait_for(watching.guard(0.0), 20)
        finally:
            stop.set()
            await asyncio.gather(task, return_exceptions=True)
