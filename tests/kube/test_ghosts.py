"""Resources that went while nobody watched: the index forgets them, at the cost of a count where there are none."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest

from edge_operator.engine.references import DEFAULT_CONNECTION
from edge_operator.kinds import KINDS
from edge_operator.kube import errors
from edge_operator.kube.ghosts import Ghosts
from edge_operator.kube.index import Index, Key
from edge_operator.ports import Resource

BACKEND: Key = ("FailoverBackend", "a", "blue")
EDGE: Key = ("TCPEdge", "a", "mq")
SPECS = {
    "FailoverBackend": {"backends": [{"id": "bkdhr_1"}]},
    "TCPEdge": {"hostports": ["a.example.com:1"], "backend": {"ref": {"kind": "FailoverBackend", "name": "blue"}}},
}


def resource(key: Key, version: int = 1, uid: str = "", **meta: Any) -> Resource:
    kind, namespace, name = key
    own = {"namespace": namespace, "name": name, "uid": uid or name, "resourceVersion": str(version), "generation": 1}
    return {"kind": kind, "metadata": {**own, **meta}, "spec": SPECS[kind]}


class Cluster:
    """An index, the lists of an API server that says how many there are, and what the index was told to forget."""

    def __init__(self, *known: Resource, namespaces: Sequence[str] = ()) -> None:
        self.index, self.stored = Index(KINDS), {(r["kind"], r["metadata"]["name"]): r for r in known}
        for one in known:
            self.index.observe(KINDS[one["kind"]], one)
        self.lists: list[str] = []
        self.woken: set[Key] = set()
        self.counts, self.failures = True, 0
        self.ghosts = Ghosts(
            self, KINDS, self.index, self.gone, namespaces=namespaces, interval_seconds=3600, settle_seconds=0
        )

    def gone(self, key: Key, uid: str) -> None:
        self.woken |= self.index.forget(key, uid)

    async def pages(
        self, path: str, *, metadata_only: bool, limit: str = "500", **query: str
    ) -> AsyncGenerator[dict[str, Any]]:
        assert metadata_only
        assert not query
        self.lists.append(f"{path.rpartition('v1alpha1/')[2]} {limit}")
        if self.failures:
            self.failures -= 1
            raise errors.Unreachable("no", sent=True)
        items = [r for (kind, _), r in self.stored.items() if path.endswith(f"/{KINDS[kind].plural}")]
        if "/namespaces/" in path:
            items = [r for r in items if f"/namespaces/{r['metadata']['namespace']}/" in path]
        rest = max(0, len(items) - int(limit))
        meta: dict[str, Any] = {"resourceVersion": "9"}
        if rest:
            meta |= {"continue": "more", **({"remainingItemCount": rest} if self.counts else {})}
        yield {"metadata": meta, "items": items[: int(limit)]}
        assert not rest or limit == "1", "a whole list is short here"


@pytest.mark.fault("a resource goes while its kind is not watched")
async def test_what_went_unseen_is_forgotten_and_wakes_who_waited_for_its_end() -> None:
    found = Cluster(resource(BACKEND, deletionTimestamp="2026-01-01T00:00:00Z"), resource(EDGE, 2))
    del found.stored["TCPEdge", "mq"]
    assert found.index.dependants(BACKEND, None) == {EDGE}

    await found.ghosts.look("TCPEdge")

    assert found.index.get(EDGE) is None
    assert found.index.dependants(BACKEND, None) == frozenset()
    assert list(found.index.using(DEFAULT_CONNECTION)) == [found.index.get(BACKEND)]
    assert found.woken == {BACKEND}


async def test_where_nothing_is_amiss_a_kind_costs_one_request_for_one_name() -> None:
    found = Cluster(*(resource(("TCPEdge", "a", f"e{n}"), n + 1) for n in range(7)))

    await found.ghosts.look("TCPEdge")
    await found.ghosts.look("FailoverBackend")

    assert found.lists == ["tcpedges 1"], "a kind of which nothing is known costs nothing"
    assert len(found.index) == 7


async def test_a_resource_that_took_the_name_of_one_that_went_stays() -> None:
    found = Cluster(resource(BACKEND), resource(EDGE, 2))
    found.stored["TCPEdge", "mq"] = resource(EDGE, 5, uid="another")
    found.stored["TCPEdge", "more"] = resource(("TCPEdge", "a", "more"), 6)
    found.index.observe(KINDS["TCPEdge"], found.stored["TCPEdge", "mq"])

    await found.ghosts.look("TCPEdge")

    entry = found.index.get(EDGE)
    assert entry is not None
    assert entry.uid == "another"


async def test_what_appears_while_it_is_counted_is_no_ghost() -> None:
    found = Cluster(resource(EDGE))
    del found.stored["TCPEdge", "mq"]
    new = resource(("TCPEdge", "a", "new"), 9)
    uids = found.ghosts._uids

    async def appears(kind: str) -> set[str]:
        seen = await uids(kind)
        found.index.observe(KINDS["TCPEdge"], new)
        return seen

    found.ghosts._uids = appears  # type: ignore[method-assign]

    await found.ghosts.look("TCPEdge")

    assert [e.key[2] for e in found.index.entries()] == ["new"]


async def test_where_the_api_server_does_not_count_names_are_listed() -> None:
    found = Cluster(resource(EDGE), resource(("TCPEdge", "a", "e1"), 2), resource(("TCPEdge", "a", "e2"), 3))
    found.counts = False
    del found.stored["TCPEdge", "mq"]

    await found.ghosts.look("TCPEdge")

    assert found.lists == ["tcpedges 1", "tcpedges 500"]
    assert found.index.get(EDGE) is None


async def test_chosen_namespaces_are_looked_at_one_by_one() -> None:
    found = Cluster(resource(EDGE), resource(("TCPEdge", "b", "other"), 2), namespaces=("a", "b"))
    del found.stored["TCPEdge", "mq"]

    await found.ghosts.look("TCPEdge")

    assert found.lists == [f"namespaces/{n}/tcpedges {size}" for size in ("1", "500") for n in ("a", "b")]
    assert [e.key[2] for e in found.index.entries()] == ["other"]


@pytest.mark.fault("the API server fails while it is asked what went unnoticed")
async def test_doubts_are_gathered_and_stay_until_they_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edge_operator.kube.ghosts.FAILED_SECONDS", 0)
    found = Cluster(resource(BACKEND), resource(EDGE, 2))
    del found.stored["TCPEdge", "mq"]
    found.failures = 1
    for _ in range(3):
        found.ghosts.doubt(["TCPEdge"])
    running = asyncio.create_task(found.ghosts.run())
    async with asyncio.timeout(5):
        while found.index.get(EDGE) is not None:
            await asyncio.sleep(0)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running

    assert found.lists == ["tcpedges 1", "tcpedges 1", "tcpedges 500"]
