"""The index: who points at whom, and what an event brings."""

from __future__ import annotations

from typing import Any

from edge_operator.engine import seal, state
from edge_operator.engine.references import Referent
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


def test_who_adopts_what_another_has_is_a_holder_beside_it() -> None:
    maker = resource(BACKEND, 1, id_="bkdfo_1", creationTimestamp="2026-01-01T00:00:01Z")
    adopter = resource(("FailoverBackend", "default", "red"), 2, creationTimestamp="2026-01-01T00:00:00Z")
    adopter["spec"]["externalID"] = "bkdfo_1"
    index = indexed(maker, adopter)

    found = sorted(index.holders("FailoverBackend", "bkdfo_1"))

    assert [(h.place, h.adopts) for h in found] == [("default/blue", False), ("default/red", True)]
    assert list(index.holders("TCPEdge", "bkdfo_1")) == []


def test_the_end_of_a_holder_wakes_who_adopts_the_same() -> None:
    adopters = [("FailoverBackend", "default", name) for name in ("red", "green")]
    found = [resource(key, number) for number, key in enumerate(adopters)]
    for each in found:
        each["spec"]["externalID"] = "bkdfo_1"
    index = indexed(found[0])

    assert index.observe(KINDS["FailoverBackend"], found[1]).wake == {adopters[0]}
    assert index.forget(adopters[0]) == {adopters[1]}


def test_a_uid_lives_until_its_resource_goes_or_another_takes_the_name() -> None:
    index = indexed(resource(EDGE, 1, uid="one"))
    assert index.lives("one")

    index.observe(KINDS["TCPEdge"], resource(EDGE, 2, uid="two"))

    assert (index.lives("one"), index.lives("two")) == (False, True)
    index.forget(EDGE)
    assert not index.lives("two")


def test_a_status_under_the_claim_of_another_resource_gives_no_id_to_refer_to() -> None:
    claimed = {"annotations": {"edge-operator.dev/claim": "uid-of-the-original.n"}}

    index = indexed(resource(BACKEND, 1, id_="bkdfo_1", **claimed))

    assert index.referent("default", BACKEND[::2]) == Referent(None)


def test_a_creation_that_began_through_a_connection_keeps_the_resource_there() -> None:
    """Its deletion, too, goes to the account in which the object is, or may be."""
    first, second = ("Connection", "default", "first"), ("ClusterConnection", "", "second")
    found = resource(EDGE, 7)
    found["spec"]["connectionRef"] = {"name": "first"}
    index = indexed(found)
    found["metadata"]["annotations"] = state.claim(found, "n")
    found["metadata"] |= {"generation": 2, "resourceVersion": "8"}
    found["spec"]["connectionRef"] = {"kind": "ClusterConnection", "name": "second"}
    index.observe(KINDS["TCPEdge"], found)

    assert [e.key for e in index.using(first)] == [EDGE]
    assert [e.key for e in index.using(second)] == []

    found["metadata"]["annotations"][state.CLAIM] = "uid-of-the-original.n"
    found["metadata"] |= {"generation": 3, "resourceVersion": "9"}
    index.observe(KINDS["TCPEdge"], found)

    assert [e.key for e in index.using(second)] == [EDGE], "a copy has nothing there"


def sealed(version: int, id_: str, claim: str = "uid-blue.n1", through: str = "Connection/main") -> Resource:
    found = resource(BACKEND, version, annotations={state.CLAIM: claim, state.THROUGH: through})
    status = {"id": "bkdfo_1", "nonce": "n1"}
    return {**found, "status": {**status, "seal": seal.of(b"key", "uid-blue", status, "Connection/main"), "id": id_}}


def test_an_id_that_does_not_fit_its_seal_is_nobodys_until_it_was_verified() -> None:
    index = indexed(resource(EDGE, 1))
    index.digest_key = b"key"
    index.observe(KINDS["FailoverBackend"], sealed(2, "bkdfo_1"))
    assert index.referent("default", ("FailoverBackend", "blue")) == Referent("bkdfo_1", deleting=False)

    change = index.observe(KINDS["FailoverBackend"], sealed(3, "bkdfo_foreign"))

    assert index.referent("default", ("FailoverBackend", "blue")) == Referent(None, deleting=False)
    assert list(index.holders("FailoverBackend", "bkdfo_foreign")) == []
    assert change.wake == {EDGE}


def test_a_sealed_id_stays_whatever_the_claim_says() -> None:
    index = indexed(resource(EDGE, 1))
    index.digest_key = b"key"
    index.observe(KINDS["FailoverBackend"], sealed(2, "bkdfo_1"))

    change = index.observe(KINDS["FailoverBackend"], sealed(3, "bkdfo_1", claim="uid-other.n9"))

    assert index.referent("default", ("FailoverBackend", "blue")) == Referent("bkdfo_1", deleting=False)
    assert change.wake == set()


def test_the_sealed_connection_is_the_one_that_a_resource_goes_through() -> None:
    index = indexed(sealed(1, "bkdfo_1", through="Connection/other"))

    assert [e.key for e in index.using(("Connection", "default", "main"))] == [BACKEND]
