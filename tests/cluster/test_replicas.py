"""Two replicas on one Lease: one acts, the other takes over, and nothing is ever done twice."""

from __future__ import annotations

import itertools
import re
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
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
def pair(
    request: pytest.FixtureRequest, installation: Installation, service: Service, key_file: Path, tmp_path: Path
) -> Iterator[Pair]:
    """A leader, and a second replica that watches; a test may give them further flags."""
    flags: dict[str, str] = getattr(request, "param", {})
    with (
        Operator(installation, service.url, key_file, tmp_path / "first.log", **flags) as first,
        Operator(installation, service.url, key_file, tmp_path / "second.log", **flags) as second,
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


def in_flight(service: Service, since: int, *methods: str) -> bool:
    """Whether calls of each of these methods are under way."""
    entries = [e for e in service.journal() if e["number"] > since and e["status"] is None]
    return {e["method"] for e in entries} >= set(methods)


KEY = {"algorithm": "ed25519", "rotationPolicy": "Never"}
HOST = {"authority": {"name": "signer"}, "principals": ["web-1.example.com"], "validFor": "720h", "privateKey": KEY}


def its_own(world: World, kind: str, name: str, *, may_be_late: bool = False) -> dict[str, Any]:
    """The resource, which has one object beside its predecessors, and the Secret of that one."""
    resource = world.ready(kind, name)
    status = resource["status"]
    left = {p["id"] for p in status.get("previous") or ()}
    ids = lambda: [o["id"] for o in world.service.owned(resource) if o["id"] not in left]
    if may_be_late:
        wait_until(lambda: len(ids()) == 1, f"one object of {kind}/{name}", SOON, explain=lambda: str(ids()))
    assert ids() == [status["id"]]
    if secret := status.get("secretName"):
        found = world.cluster.get(f"/api/v1/namespaces/{world.namespace}/secrets/{secret}")
        assert found["metadata"]["annotations"]["edge-operator.dev/id"] == status["id"]
    return resource


@pytest.mark.fault("the leader is frozen in the middle of calls and writes, and wakes up later")
@pytest.mark.parametrize("pair", [{"resync": "3s"}], indirect=True)
def test_a_leader_that_was_frozen_at_work_harms_nothing_when_it_wakes_up(shared: World, pair: Pair) -> None:
    """Creations, changes and Secrets are under way. The other one goes on from there, and is given new work.

    A request that was frozen on its way to the socket arrives late, which nothing on our side can prevent; the next
    list finds what it made.
    """
    first, second = pair
    service = shared.service
    kinds = {"APIKey": {"description": "made"}, "SSHHostCertificate": HOST, "FailoverBackend": backend(1)}
    shared.make("SSHCertificateAuthority", "signer", {"privateKeyType": "ed25519"})
    for kind, spec in kinds.items():
        shared.make(kind, "old", spec)
    for kind in kinds:
        shared.ready(kind, "old")
    host_key = (shared.data("old-sshhostcertificate") or {})["ssh-host-key"]
    mark = service.mark()
    service.faults({"kind": "latency", "seconds": 0.4})
    new = [(kind, f"new{number}") for number in range(3) for kind in kinds]
    for kind, name in new:
        shared.make(kind, name, kinds[kind])
    for kind in ("APIKey", "SSHHostCertificate"):
        shared.change(kind, "old", {"metadata": {"annotations": {"edge-operator.dev/rotate-requested-at": "now"}}})
    shared.change_spec("FailoverBackend", "old", backend(2))
    wait_until(lambda: in_flight(service, mark, "POST", "PATCH"), "calls to be under way", SOON, 0.005)

    first.running.signal(signal.SIGSTOP)
    shared.change_spec("FailoverBackend", "old", backend(3))
    second.says("work begins")
    service.faults()
    every = [*new, *((kind, "old") for kind in kinds)]
    before = [its_own(shared, kind, name)["status"]["id"] for kind, name in every]
    first.running.signal(signal.SIGCONT)
    first.says("leads no more")
    shared.make("FailoverBackend", "after", backend(4))
    exactly_one(shared, "after")

    assert [its_own(shared, kind, name, may_be_late=True)["status"]["id"] for kind, name in every] == before
    assert (shared.data("old-sshhostcertificate") or {})["ssh-host-key"] == host_key
    assert all(service.accepts((shared.data(f"{name}-apikey") or {})["token"]) for k, name in every if k == "APIKey")
    (old,) = service.owned(shared.ready("FailoverBackend", "old"))
    assert "bkdtg_3" in str(old["backends"])
    assert (leads(first), leads(second)) == (False, True)


class Traffic(threading.Thread):
    """Makes a resource, and changes an earlier one, again and again."""

    def __init__(self, world: World) -> None:
        super().__init__(name="traffic", daemon=True)
        self.world, self.stopping, self.wrong = world, threading.Event(), list[Exception]()
        self.names: list[str] = []

    def run(self) -> None:
        try:
            for number in itertools.count():
                self.world.make("FailoverBackend", f"b{number}", backend(number))
                self.names.append(f"b{number}")
                self.world.change_spec("FailoverBackend", self.names[number // 2], backend(1000 + number))
                if self.stopping.wait(0.1):
                    return
        except Exception as error:
            self.wrong.append(error)
            raise

    def stop(self) -> Sequence[str]:
        """The names of what was made."""
        self.stopping.set()
        self.join(SOON)
        assert self.wrong == []
        return self.names


@pytest.mark.fault("a rolling upgrade with work under way")
def test_a_rolling_upgrade_does_nothing_twice_and_loses_nothing(
    shared: World, pair: Pair, installation: Installation, key_file: Path, tmp_path: Path
) -> None:
    """Replica after replica is replaced, the new one started first, while resources come and change all the time."""
    service, ends, texts = shared.service, list[int | None](), list[str]()
    service.faults({"kind": "latency", "seconds": 0.15})
    traffic = Traffic(shared)
    traffic.start()
    with ExitStack() as stack:
        new = [Operator(installation, service.url, key_file, tmp_path / f"new{n}.log") for n in range(2)]
        for old, successor in zip(pair, new, strict=True):
            stack.enter_context(successor).start().says("watching ")
            enough = len(traffic.names) + 5
            wait_until(lambda enough=enough: len(traffic.names) > enough, "more work", SOON)  # type: ignore[misc]
            ends.append(old.stop()[0])
            texts.append(old.text())
        names = traffic.stop()
        service.faults()
        assert any(leads(one) for one in new) or wait_until(lambda: any(leads(o) for o in new), "a leader", SOON)

        for name in names:
            its_own(shared, "FailoverBackend", name)
        for one in new:
            ends.append(one.stop()[0])
            texts.append(one.text())
    pair[0].start()  # somebody has to clear up

    assert ends == [0] * 4
    assert len(names) > 10
    for text in texts:
        assert "a defect of the operator" not in text
        assert "Traceback" not in text


@pytest.mark.fault("the only replica is restarted while a long backlog waits")
def test_a_replica_that_is_restarted_acts_at_once(
    crds: Cluster, installation: Installation, service: Service, key_file: Path, tmp_path: Path, namespace: str
) -> None:
    """The one that stops lets none of those that wait for the limit of calls hold it up."""
    world = World(crds, service, namespace)
    with Operator(installation, service.url, key_file, tmp_path / "old.log", api_rate="60") as old:
        old.lead()
        for number in range(40):
            world.make("FailoverBackend", f"b{number}", backend(number))
        wait_until(lambda: len(world.left()) >= 15, "the burst to be used up", SOON)
        code, stopping = old.stop()
        mark, made = service.mark(), len(world.left())
        with Operator(installation, service.url, key_file, tmp_path / "new.log") as new:
            new.start().says("watching ")  # how long a process takes to get so far is the machine's affair
            began = time.monotonic()
            wait_until(lambda: [c for c in service.calls(mark) if c.startswith("POST")], "a creation", SOON, 0.01)
            starting = time.monotonic() - began

            exactly_one(world, *(f"b{number}" for number in range(40)))
            clear(world)
            assert new.stop()[0] == 0
    assert (code, made < 40) == (0, True)
    assert "has given lease" in old.text()
    assert stopping + starting < 2.0 + SLOW_SECONDS < LEASE_SECONDS
