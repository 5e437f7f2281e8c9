"""The API server goes away while work is under way; whole namespaces go with everything in them."""

from __future__ import annotations

import json
import secrets
import signal
import time
from collections.abc import Iterator

import pytest

from cluster.cases import application
from cluster.running import SOON, Operator, World
from edge_operator.kinds import KINDS
from harness.cluster import Cluster
from harness.processes import wait_until

BACKEND = {"backends": [{"id": "bkdtg_1"}]}


def on(domain: str) -> str:
    """Every sample, on hosts of this domain."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": application()})
    return text.replace("example.com", domain)


def gone(world: World, operator: Operator) -> None:
    """Wait until the namespace is gone."""
    path = f"/api/v1/namespaces/{world.namespace}"
    wait_until(lambda: world.cluster.get(path) is None, f"{path} to go", 60, 0.1, operator.text)


@pytest.fixture
def outage(crds: Cluster) -> Iterator[Cluster]:
    """The cluster, whose controllers are started again afterwards: left alone, they take half a minute to come back."""
    yield crds
    crds.restart_controller_manager()


@pytest.mark.fault("the API server crashes and comes back")
def test_a_crash_of_the_api_server_is_survived_by_watches_and_by_work_under_way(world: World, outage: Cluster) -> None:
    """The service answers while the API server is away: the id cannot be recorded, and is found again."""
    world.make("FailoverBackend", "before", BACKEND)
    world.ready("FailoverBackend", "before")
    mark = world.service.mark()
    world.service.faults({"kind": "latency", "seconds": 1.0, "method": "POST"})
    while_away = world.make("FailoverBackend", "while", BACKEND)
    arrived = lambda: any(e["method"] == "POST" and e["number"] > mark for e in world.service.journal())
    wait_until(arrived, "the creation to be under way", SOON, 0.01)

    outage.restart_apiserver(graceful=False, pause_seconds=1.5)
    world.service.faults()

    found = world.ready("FailoverBackend", "while", within=40)
    assert [o["id"] for o in world.service.owned(while_away)] == [found["status"]["id"]]
    world.change_spec("FailoverBackend", "before", {"description": "after"})
    before = world.ready("FailoverBackend", "before", within=40)
    assert [o["description"] for o in world.service.owned(before)] == ["after"]
    world.make("FailoverBackend", "after", BACKEND)
    world.ready("FailoverBackend", "after", within=40)


@pytest.mark.fault("the API server is away for longer than the Lease")
def test_an_api_server_that_is_away_for_longer_than_the_lease_costs_nothing_but_time(
    world: World, operator: Operator, outage: Cluster
) -> None:
    world.make("FailoverBackend", "before", BACKEND)
    before = world.ready("FailoverBackend", "before")
    operator.rest()
    calls = world.service.mark()

    outage.restart_apiserver(pause_seconds=5)

    wait_until(lambda: operator.text().count("leads now") >= 2, "the operator to lead again", 40)
    world.make("FailoverBackend", "after", BACKEND)
    world.ready("FailoverBackend", "after", within=40)
    assert [call.split()[0] for call in world.service.calls(calls)] == ["POST"]
    assert world.get("FailoverBackend", "before") == before


@pytest.mark.fault("resources are deleted while their watches have expired")
def test_what_goes_while_watches_have_expired_holds_nothing_up(
    world: World, operator: Operator, outage: Cluster
) -> None:
    """Without a finalizer a resource goes at once, and a watch that has to list again never says so."""
    world.make("FailoverBackend", "used", BACKEND)
    used = world.ready("FailoverBackend", "used")
    backend = {"ref": {"kind": "FailoverBackend", "name": "used"}}
    found = world.service.ask("POST", "/edges/tcp", {"hostports": ["ghost.example.com:1"]})
    adopts = {"externalID": found["id"], "deletionPolicy": "Retain", "managementPolicy": "Observe"}
    world.make("TCPEdge", "watched", {"hostports": ["ghost.example.com:1"], "backend": backend, **adopts})
    world.until("TCPEdge", "watched", "Observed")
    twice = {"externalID": used["status"]["id"], "deletionPolicy": "Retain", **BACKEND}
    world.make("FailoverBackend", "yields", twice)
    world.until("FailoverBackend", "yields", "OwnershipConflict")
    world.delete("FailoverBackend", "used")
    world.until("FailoverBackend", "used", "DeletionBlocked")

    operator.running.signal(signal.SIGSTOP)  # no watch of its own is open while all this happens
    outage.restart_apiserver(graceful=False)
    for kind, name in (("TCPEdge", "watched"), ("FailoverBackend", "yields")):
        world.delete(kind, name)
        world.gone(kind, name)
    operator.running.signal(signal.SIGCONT)

    world.gone("FailoverBackend", "used", within=40)
    assert "/watched went unnoticed" in operator.text()
    world.service.ask("DELETE", f"/edges/tcp/{found['id']}")


@pytest.mark.fault("whole namespaces are deleted")
def test_namespaces_deleted_as_a_whole_go_and_leave_nothing_in_the_account(
    crds: Cluster, world: World, operator: Operator
) -> None:
    """Several at once: in which order their contents go is the cluster's choice."""
    worlds = [World(crds, world.service, f"gone-{secrets.token_hex(4)}") for _ in range(3)]
    for one in worlds:
        crds.create_namespace(one.namespace)
        crds.kubectl("apply", "--namespace", one.namespace, "-f", "-", input=on(f"{one.namespace}.example.com"))
    for one in worlds:
        for kind in KINDS:
            one.ready(kind, "example")

    began = time.monotonic()
    for one in worlds:
        crds.delete_namespace(one.namespace)
    for one in worlds:
        gone(one, operator)

    assert [one.left() for one in worlds] == [[], [], []]
    assert time.monotonic() - began < 60
    assert "a defect of the operator" not in operator.text()


@pytest.mark.fault("a namespace is deleted while its resources are being made")
def test_a_namespace_deleted_while_its_resources_are_being_made_goes_too(
    crds: Cluster, world: World, operator: Operator
) -> None:
    one = World(crds, world.service, f"gone-{secrets.token_hex(4)}")
    crds.create_namespace(one.namespace)
    one.service.faults({"kind": "latency", "seconds": 0.4})
    crds.kubectl("apply", "--namespace", one.namespace, "-f", "-", input=on(f"{one.namespace}.example.com"))

    crds.delete_namespace(one.namespace)
    one.service.faults()

    gone(one, operator)
    assert one.left() == []


@pytest.mark.fault("a namespace is deleted between a token and its Secret")
def test_a_token_whose_secret_can_no_longer_be_made_is_deleted_at_once(
    crds: Cluster, world: World, operator: Operator
) -> None:
    one = World(crds, world.service, f"gone-{secrets.token_hex(4)}")
    crds.create_namespace(one.namespace)
    mark = one.service.mark()
    one.service.faults({"kind": "latency", "seconds": 1.0, "method": "POST"})
    one.make("APIKey", "late", {})
    arrived = lambda: any(e["method"] == "POST" and e["number"] > mark for e in one.service.journal())
    wait_until(arrived, "the creation to be under way", SOON, 0.01)

    crds.delete_namespace(one.namespace)

    gone(one, operator)
    one.service.faults()
    assert [call.split()[0] for call in one.service.calls(mark)] == ["POST", "DELETE"]
    assert one.left() == []
    assert "refuses or does not answer" not in operator.text().partition(one.namespace)[2]
