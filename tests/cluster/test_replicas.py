"""Two replicas on one Lease: one acts, the other takes over, and nothing is ever done twice."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.running import QUICK, SOON, Installation, Operator, Service, World, clear
from harness.cluster import Cluster
from harness.processes import wait_until

LEASE_SECONDS = float(QUICK["lease"].removesuffix("s"))
LOOK_SECONDS = 0.5
SLOW_SECONDS = 2.0
"""What a busy machine may add."""
Pair = tuple[Operator, Operator]


def backend(number: int) -> dict[str, Any]:
    return {"backends": [{"id": f"bkdtg_{number}"}]}


@pytest.fixture
def pair(installation: Installation, service: Service, key_file: Path, tmp_path: Path) -> Iterator[Pair]:
    """A leader, and a second replica that watches."""
    with (
        Operator(installation, service.url, key_file, tmp_path / "first.log") as first,
        Operator(installation, service.url, key_file, tmp_path / "second.log") as second,
    ):
        first.lead()
        second.start().says("watching ")
        yield first, second
        for one in (second, first):
            if one.running.running:
                one.stop()  # so that the next leader need not wait for the Lease


@pytest.fixture
def shared(crds: Cluster, service: Service, pair: Pair, namespace: str) -> Iterator[World]:
    """A namespace that both replicas watch; at the end somebody acts, and leaves nothing behind."""
    found = World(crds, service, namespace)
    yield found
    clear(found)
    assert found.left() == []


def leads(operator: Operator) -> bool:
    return bool(re.search(r"^edge_operator_leader 1", operator.metrics(), re.MULTILINE))


def exactly_one(world: World, *names: str) -> None:
    """Each of these backends is ready, and has one object."""
    found = [world.ready("FailoverBackend", name) for name in names]
    objects = [[o["id"] for o in world.service.owned(resource)] for resource in found]
    assert objects == [[resource["status"]["id"]] for resource in found]


def test_one_replica_acts_and_the_other_only_watches(shared: World, pair: Pair) -> None:
    first, second = pair
    for number in range(5):
        shared.make("FailoverBackend", f"b{number}", backend(number))

    exactly_one(shared, *(f"b{number}" for number in range(5)))
    assert (leads(first), leads(second)) == (True, False)
    assert "edge_operator_api_calls_total{" not in second.metrics()
    assert "edge_operator_cluster_writes_total{" not in second.metrics()


@pytest.mark.fault("the leader is killed")
def test_a_killed_leader_is_succeeded_within_the_time_of_the_lease(shared: World, pair: Pair) -> None:
    """Creations are under way when it dies: some were carried out and not recorded."""
    first, second = pair
    names = [f"b{number}" for number in range(12)]
    for number, name in enumerate(names):
        shared.make("FailoverBackend", name, backend(number))
        if number == len(names) // 2:
            wait_until(lambda: shared.left() != [], "the first object", SOON, 0.005)
            first.kill()
    began = time.monotonic()

    second.says("work begins")

    assert time.monotonic() - began < LEASE_SECONDS + LOOK_SECONDS + SLOW_SECONDS
    exactly_one(shared, *names)


@pytest.mark.fault("the leader is asked to stop")
def test_a_leader_that_is_asked_to_stop_is_succeeded_within_two_seconds(shared: World, pair: Pair) -> None:
    first, second = pair
    names = [f"b{number}" for number in range(12)]
    for number, name in enumerate(names):
        shared.make("FailoverBackend", name, backend(number))
    began = time.monotonic()

    first.running.signal(signal.SIGTERM)
    second.says("work begins")

    assert time.monotonic() - began < 2.0
    assert first.running.wait(SOON) == 0
    exactly_one(shared, *names)


@pytest.mark.fault("the leader is frozen and wakes up later")
def test_a_leader_that_was_frozen_does_nothing_when_it_wakes_up(shared: World, pair: Pair) -> None:
    first, second = pair
    shared.make("FailoverBackend", "before", backend(1))
    exactly_one(shared, "before")
    first.running.signal(signal.SIGSTOP)
    shared.make("FailoverBackend", "while", backend(2))
    second.says("work begins")
    exactly_one(shared, "while")

    first.running.signal(signal.SIGCONT)
    first.says("leads no more")
    shared.make("FailoverBackend", "after", backend(3))

    exactly_one(shared, "before", "while", "after")
    assert (leads(first), leads(second)) == (False, True)
