"""`edge-operator drain`: deletes every resource, as kubectl would, and waits until the operator has let each one go."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Any, TextIO

from edge_operator.connections import Spec
from edge_operator.declare import CustomResource, Kind
from edge_operator.engine import project
from edge_operator.engine.operations import shown
from edge_operator.kinds import COMPANIONS, DECLARED, KINDS
from edge_operator.kube import errors
from edge_operator.kube.client import KubeAPI
from edge_operator.kube.cluster import path
from edge_operator.ports import Resource

LOOK_SECONDS = 1.0
OK, FAILED, WRONG = 0, 1, 2
_Left = dict[str, Resource]
"""What is still there, by its name for people, dependants before what they use."""
_CONNECTIONS = [companion for companion in COMPANIONS.values() if issubclass(companion.spec, Spec)]
"""They go last: without an operator, nobody would take their finalizers off."""


async def drain(
    api: KubeAPI,
    namespaces: Sequence[str],
    out: TextIO,
    *,
    sure: bool,
    timeout_seconds: float,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> int:
    """Delete all and wait; the exit code. Whoever waits for whom is printed once, and again when that changes."""
    left = await _everything(api, namespaces)
    if not sure:
        out.writelines(f"{name}\n" for name in left)
        out.write(f"{len(left)} resources would be deleted; add --yes to do so. Nothing was deleted.\n")
        return OK if not left else WRONG
    for resource in left.values():
        await _delete(api, resource)
    out.write(f"deleting {len(left)} resources\n")
    end, said = monotonic() + timeout_seconds, dict[str, str]()
    while left := await _everything(api, namespaces):
        for name, resource in left.items():
            if (text := _says(resource)) != said.get(name):
                said[name] = text
                out.write(f"{name}: {text}\n")
        out.flush()
        if monotonic() >= end:
            out.write(
                f"{len(left)} resources are left after {timeout_seconds:g} s: {shown(', '.join(left), 1000)}. What "
                "each waits for stands above; without a running operator none can go. Nothing else was removed.\n"
            )
            return FAILED
        await sleep(min(LOOK_SECONDS, timeout_seconds))
    out.write("all resources are gone\n")
    return OK


async def _everything(api: KubeAPI, namespaces: Sequence[str]) -> _Left:
    found: _Left = {}
    for kind in (*in_order(list(KINDS.values())), *_CONNECTIONS):
        if namespaces and not kind.namespaced:
            continue
        for namespace in namespaces or ("",):
            async for resource in _of(api, kind, namespace):
                meta = resource["metadata"]
                place = f"{meta['namespace']}/" if kind.namespaced else ""
                found[f"{kind.name} {place}{meta['name']}"] = {**resource, "kind": kind.name}
    return found


async def _of(api: KubeAPI, kind: CustomResource[Any], namespace: str) -> AsyncIterator[Resource]:
    try:
        async for page in api.pages(path(kind, namespace)):
            for resource in page.get("items") or ():
                yield resource
    except errors.NotFound:
        return  # there is no such CRD, hence no resource


async def _delete(api: KubeAPI, resource: Resource) -> None:
    """Delete one, and not another that took its name meanwhile."""
    meta = resource["metadata"]
    try:
        at = path(DECLARED[resource["kind"]], meta.get("namespace", ""), meta["name"])
        await api.delete(at, uid=meta["uid"])
    except (errors.NotFound, errors.Conflict):
        return


def in_order(kinds: Sequence[Kind[Any]]) -> list[Kind[Any]]:
    """The kinds, each before those that it refers to, so that as few as possible have to wait."""
    known, order = {kind.name: kind for kind in kinds}, dict[str, Kind[Any]]()

    def visit(kind: Kind[Any], above: tuple[str, ...]) -> None:
        for name in _used(kind.spec):
            if name in known and name not in (*above, kind.name) and name not in order:
                visit(known[name], (*above, kind.name))
        order.setdefault(kind.name, kind)

    for kind in kinds:
        visit(kind, ())
    return list(reversed(order.values()))


def _used(part: type[Any]) -> Iterator[str]:
    for field in project.fields(part):
        if field.reference is not None:
            yield from field.reference.kinds
        if field.part is not None:
            yield from _used(field.part)


def _says(resource: Resource) -> str:
    if not resource["metadata"].get("deletionTimestamp"):
        return "was made again meanwhile; stop whatever applies it"
    ready = next((c for c in (resource.get("status") or {}).get("conditions") or () if c["type"] == "Ready"), None)
    if ready is None or ready["reason"] == "Available":
        return "is being deleted"
    return f"{ready['reason']}: {ready['message']}"
