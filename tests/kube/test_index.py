"""The index: who points at whom, and what an event brings."""

from __future__ import annotations

from typing import Any

from edge_operator.kinds import KINDS
from edge_operator.kube.index import Index, Key
from edge_operator.ports import Resource

BACKEND: Key = ("FailoverBackend", "default", "blue")
EDGE: Key = ("TCPEdge", "default", "mq")


def resource(key: Key, version: int, uid: str = "", id_: str | None = None, **meta: Any) -> Resource:
    kind, namespace, name = key
    spec: dict[str, Any] = {"backends": [{"id": "bkdhr_1"}]}
    if kind == "TCPEdge":
        spec = {"hostports": ["a.example.com:1"], "backend": {"ref": {"kind": "FailoverBackend", "name": "blue"}}}
    metadata = {"namespace": namespace, "name": name, "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {
        "kind": kind,
        "metadata": {**metadata, "generation": 1, **meta},
        "spec": spec,
        "status": {"id": id_} if id_ else {},
    }


def indexed(*resources: Resource) -> Index:
    index = Index(KINDS)
    for found in resources:
        index.observe(KINDS[found["kind"]], found)
    return index


def test_an_event_that_is_not_newer_is_an_echo() -> None:
    index = indexed(resource(EDGE, 7))

    assert not index.observe(KINDS["TCPEdge"], resource(EDGE, 7)).news
    assert not index.observe(KINDS["TCPEdge"], resource(EDGE, 6)).news
    assert index.observe(KINDS["TCPEdge"], resource(EDGE, 8)).news


def test_versions_are_compared_as_numbers() -> None:
    index = indexed(resource(EDGE, 9))

    assert index.observe(KINDS["TCPEdge"], resource(EDGE, 10)).news


def test_an_id_that_appears_wakes_those_that_wait_for_it() -> None:
    index = indexed(resource(EDGE, 1), resource(BACKEND, 2))

    change = index.observe(KINDS["FailoverBackend"], resource(BACKEND, 3, id_="bkdfo_1"))

    assert change.wake == {EDGE}


def test_a_late_event_does_not_bring_back_what_is_gone() -> None:
    index = indexed(resource(EDGE, 1))
    index.forget(EDGE)

    change = index.observe(KINDS["TCPEdge"], resource(EDGE, 2, deletionTimestamp="2026-01-01T00:00:00Z"))

    assert not change.news
    assert index.get(EDGE) is None


def test_a_new_resource_of_an_old_name_is_news() -> None:
    index = indexed(resource(EDGE, 1))
    index.forget(EDGE)

    assert index.observe(KINDS["TCPEdge"], resource(EDGE, 2, uid="another")).news


def test_what_goes_wakes_what_waited_for_its_end() -> None:
    index = indexed(resource(EDGE, 1), resource(BACKEND, 2, deletionTimestamp="2026-01-01T00:00:00Z"))

    assert index.forget(EDGE) == {BACKEND}


def test_what_goes_leaves_healthy_neighbours_alone() -> None:
    index = indexed(resource(EDGE, 1), resource(BACKEND, 2, id_="bkdfo_1"))
    healthy = index.get(BACKEND)
    assert healthy is not None
    healthy.ready = True

    assert index.forget(EDGE) == frozenset()


def test_dependants_point_by_name_or_by_id() -> None:
    other: Key = ("FailoverBackend", "default", "parent")
    parent = {**resource(other, 5), "spec": {"backends": [{"id": "bkdfo_1"}]}}
    index = indexed(resource(BACKEND, 1, id_="bkdfo_1"), resource(EDGE, 2), parent)

    assert index.dependants(BACKEND, "bkdfo_1") == {EDGE, other}


def test_a_secret_leads_to_those_that_read_or_write_it() -> None:
    key: Key = ("APIKey", "default", "ci")
    made = {**resource(key, 1), "spec": {}}

    index = indexed(made)

    assert index.about_secret("default", "ci-apikey") == {key}
    assert index.about_secret("default", "other") == frozenset()
