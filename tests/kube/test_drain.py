"""`edge-operator drain` deletes all, waits, and says who waits for whom."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from edge_operator.engine import project
from edge_operator.kinds import DECLARED, KINDS
from edge_operator.kube import errors
from edge_operator.kube.drain import drain, in_order

EDGE, BACKEND = "TLSEdge", "WeightedBackend"


def resource(name: str = "db") -> dict[str, Any]:
    return {"metadata": {"namespace": "a", "name": name, "uid": name}}


class Cluster:
    """An API server with some resources, and an operator that does something each time somebody waits."""

    def __init__(self, *kinds: str) -> None:
        self.held = {kind: [resource()] for kind in kinds}
        self.deleted: list[str] = []
        self.steps: list[Callable[[], object]] = []
        self.now = 0.0
        self.missing: set[str] = set()

    def kind(self, path: str) -> str:
        plural = next(part for part in path.split("/") if part in {k.plural for k in DECLARED.values()})
        return next(k.name for k in DECLARED.values() if k.plural == plural)

    async def pages(self, path: str) -> AsyncIterator[Any]:
        if self.kind(path) in self.missing:
            raise errors.NotFound("no such resource")
        yield {"items": list(self.held.get(self.kind(path), ()))}

    async def delete(self, path: str, *, uid: str) -> None:
        kind = self.kind(path)
        self.deleted.append(kind)
        for found in self.held[kind]:
            if found["metadata"]["uid"] == uid:
                found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.steps:
            self.steps.pop(0)()

    def says(self, kind: str, reason: str, message: str) -> None:
        self.held[kind][0]["status"] = {"conditions": [{"type": "Ready", "reason": reason, "message": message}]}

    async def drain(self, *, sure: bool = True) -> tuple[int, list[str]]:
        out = io.StringIO()
        code = await drain(
            self, (), out, sure=sure, timeout_seconds=3.0, monotonic=lambda: self.now, sleep=self.sleep  # type: ignore[arg-type]
        )  # fmt: skip
        return code, out.getvalue().splitlines()


async def test_connections_go_last_and_those_of_the_cluster_only_with_all_of_it() -> None:
    cluster = Cluster("ClusterConnection", "Connection", EDGE)
    cluster.steps = [cluster.held.clear]

    code, lines = await cluster.drain()

    assert code == 0
    assert cluster.deleted == [EDGE, "ClusterConnection", "Connection"]
    assert lines[1:3] == ["TLSEdge a/db: is being deleted", "ClusterConnection db: is being deleted"]


async def test_it_deletes_dependants_first_waits_and_tells_each_thing_once() -> None:
    cluster = Cluster(BACKEND, EDGE)
    cluster.steps = [
        lambda: cluster.says(BACKEND, "DeletionBlocked", "still used by TLSEdge/db; delete them first"),
        lambda: cluster.held.pop(EDGE),
        lambda: cluster.held.pop(BACKEND),
    ]

    code, lines = await cluster.drain()

    assert code == 0
    assert cluster.deleted == [EDGE, BACKEND]
    assert lines == [
        "deleting 2 resources",
        "TLSEdge a/db: is being deleted",
        "WeightedBackend a/db: is being deleted",
        "WeightedBackend a/db: DeletionBlocked: still used by TLSEdge/db; delete them first",
        "all resources are gone",
    ]


async def test_after_the_time_out_it_names_what_is_left_and_fails() -> None:
    cluster = Cluster(EDGE)
    cluster.says(EDGE, "DeletionBlocked", "paused by annotation; take it off to go on")

    code, lines = await cluster.drain()

    assert code == 1
    assert lines[1] == "TLSEdge a/db: DeletionBlocked: paused by annotation; take it off to go on"
    assert lines[-1].startswith("1 resources are left after 3 s: TLSEdge a/db.")
    assert cluster.now <= 4


async def test_what_somebody_makes_again_is_named_and_not_deleted_twice() -> None:
    cluster = Cluster(EDGE)
    cluster.steps = [lambda: cluster.held.update({EDGE: [{"metadata": {**resource()["metadata"], "uid": "new"}}]})]

    code, lines = await cluster.drain()

    assert code == 1
    assert "TLSEdge a/db: was made again meanwhile; stop whatever applies it" in lines
    assert cluster.deleted == [EDGE]


async def test_without_being_sure_it_only_lists() -> None:
    cluster = Cluster(EDGE)

    code, lines = await cluster.drain(sure=False)

    assert (code, cluster.deleted) == (2, [])
    assert lines == ["TLSEdge a/db", "1 resources would be deleted; add --yes to do so. Nothing was deleted."]


@pytest.mark.parametrize("sure", [True, False])
async def test_where_there_is_nothing_or_no_crd_it_is_done(sure: bool) -> None:
    cluster = Cluster()
    cluster.missing = {EDGE, BACKEND}

    code, _ = await cluster.drain(sure=sure)

    assert code == 0


def test_every_kind_comes_before_the_other_kinds_that_it_refers_to() -> None:
    """But for two that may refer to each other."""
    order = [kind.name for kind in in_order(list(KINDS.values()))]
    backends = {"WeightedBackend", "FailoverBackend"}

    assert sorted(order) == sorted(KINDS)
    for kind in KINDS.values():
        for field in project.fields(kind.spec):
            for part in (field, *(project.fields(field.part) if field.part else ())):
                for used in part.reference.kinds if part.reference else ():
                    if used in order and used != kind.name and {used, kind.name} != backends:
                        assert order.index(kind.name) < order.index(used), f"{kind.name} uses {used}"
