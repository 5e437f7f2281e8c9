"""What the operator costs, counted by the API server's audit log and the reference API's request log.

Events and Leases apart. The samples are the cases: every kind, with all that it can hold.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cluster.cases import CHANGES, EVERY
from cluster.running import SOON, Installation, Operator, Service, World, mine
from edge_operator.derive import samples
from edge_operator.kinds import KINDS
from harness.audit import AuditEvent
from harness.processes import wait_until

LISTS = len({kind.api.path for kind in KINDS.values()}) - 1
"""Collections that are listed: routes are in their edges."""


@dataclass(frozen=True)
class Bill:
    """What happened in a phase, in short: calls of the management API, writes to the cluster and reads from it."""

    calls: list[str]
    writes: list[str]
    reads: list[str]


@dataclass
class Meter:
    """Counts from the moment that it was made."""

    world: World
    operator: Operator

    def __post_init__(self) -> None:
        self.call, self._request = self.world.service.mark(), self.world.cluster.audit_mark()

    def bill(self) -> Bill:
        """What it took, once the operator is at rest again."""
        self.operator.rest()
        events = mine(self.world.cluster.audit_events(self.operator.installation.user, self._request))
        return Bill(
            self.world.service.calls(self.call),
            [what(event) for event in events if event.writes],
            [what(event) for event in events if not event.writes],
        )


def what(event: AuditEvent) -> str:
    """A request in short: "patch tlsedges/status"."""
    return f"{event.verb} {event.resource}{'/' if event.subresource else ''}{event.subresource}"


Bills = dict[str, dict[str, Bill]]


@pytest.fixture(scope="module")
def bills(
    installation: Installation, service: Service, key_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Bills]:
    """The bill of each phase in the life of a resource, by kind, one kind after the other; a restart in between."""
    log = tmp_path_factory.mktemp("operator") / "operator.log"
    world = World(installation.cluster, service, f"counts-{secrets.token_hex(4)}")
    world.cluster.create_namespace(world.namespace)
    found: Bills = {}
    try:
        with Operator(installation, service.url, key_file, log).lead() as operator:
            found["create"] = create(world, operator)
            found["touch"] = {"all": touch(world, operator)}
            found["update"] = update(world, operator)
            operator.stop()
        with Operator(installation, service.url, key_file, log) as operator:
            found["restart"] = restart(world, operator)
        with Operator(installation, service.url, key_file, log).lead() as operator:
            found["delete"] = delete(world, operator)
            left = world.left()
            operator.stop()
        yield found
    finally:
        world.cluster.clear_namespace(world.namespace)
    assert left == []


def create(world: World, operator: Operator) -> dict[str, Bill]:
    found = {}
    for kind in EVERY:
        *needs, manifest = samples.manifests(KINDS[kind])
        if needs:
            world.apply(needs)
        meter = Meter(world, operator)
        world.make(kind, "example", manifest["spec"])
        world.ready(kind, "example")
        found[kind] = meter.bill()
    return found


def touch(world: World, operator: Operator) -> Bill:
    meter = Meter(world, operator)
    for kind in EVERY:
        world.change(kind, "example", {"metadata": {"labels": {"touched": "yes"}, "annotations": {"note": "yes"}}})
    time.sleep(0.3)  # for the watches to tell
    return meter.bill()


def update(world: World, operator: Operator) -> dict[str, Bill]:
    found = {}
    for kind, change in CHANGES.items():
        meter = Meter(world, operator)
        world.change_spec(kind, "example", change)
        world.ready(kind, "example")
        found[kind] = meter.bill()
    return found


def restart(world: World, operator: Operator) -> dict[str, Bill]:
    """What a start costs by itself, and with a first look at the account."""
    meter = Meter(world, operator)
    operator.lead()
    found = {"start": meter.bill()}
    with Operator(operator.installation, world.service.url, operator.key_file, operator.log, resync="1s") as looking:
        operator.stop()
        meter = Meter(world, looking)
        looking.lead()
        wait_until(lambda: len(world.service.calls(meter.call)) >= 2 * LISTS, "two rounds of lists", SOON)
        found["look"] = meter.bill()
        looking.stop()
    return found


def delete(world: World, operator: Operator) -> dict[str, Bill]:
    found = {}
    for kind in reversed(EVERY):
        operator.rest()
        meter = Meter(world, operator)
        world.delete(kind, "example")
        world.gone(kind, "example")
        found[kind] = meter.bill()
    return found


def verbs(bills: dict[str, Bill]) -> dict[str, list[str]]:
    """The methods of the calls, by kind."""
    return {kind: [call.split()[0] for call in bill.calls] for kind, bill in bills.items()}


def writes(bills: dict[str, Bill]) -> dict[str, list[str]]:
    """The writes, by kind."""
    return {kind: bill.writes for kind, bill in bills.items()}


def test_every_kind_is_counted() -> None:
    assert {*EVERY} == {*KINDS}


def test_creating_costs_one_call_and_two_writes_and_a_third_with_a_secret(bills: Bills) -> None:
    secret = {kind.name: ["create secrets"] if kind.outputs else [] for kind in KINDS.values()}

    assert verbs(bills["create"]) == {kind: ["POST"] for kind in EVERY}
    assert writes(bills["create"]) == {
        kind: [f"patch {KINDS[kind].plural}", *secret[kind], f"patch {KINDS[kind].plural}/status"] for kind in EVERY
    }


def test_a_change_costs_one_call_and_one_write(bills: Bills) -> None:
    assert verbs(bills["update"]) == {kind: ["PATCH"] for kind in EVERY}
    assert writes(bills["update"]) == {kind: [f"patch {KINDS[kind].plural}/status"] for kind in EVERY}


def test_a_label_or_an_annotation_of_somebody_else_costs_nothing(bills: Bills) -> None:
    bill = bills["touch"]["all"]

    assert (bill.calls, bill.writes) == ([], [])


def test_deleting_costs_one_call_and_one_write(bills: Bills) -> None:
    assert verbs(bills["delete"]) == {kind: ["DELETE"] for kind in EVERY}
    assert writes(bills["delete"]) == {kind: [f"patch {KINDS[kind].plural}"] for kind in EVERY}


def test_a_restart_with_nothing_changed_makes_no_call_and_no_write(bills: Bills) -> None:
    """Secrets that a spec reads, or that a kind writes, are read by name: their values are kept nowhere."""
    bill = bills["restart"]["start"]

    assert (bill.calls, bill.writes) == ([], [])
    assert {read for read in bill.reads if read.split()[0] == "get"} == {"get secrets", "get namespaces"}


def test_a_look_at_the_account_lists_each_collection_and_writes_nothing(bills: Bills) -> None:
    bill = bills["restart"]["look"]
    addresses = {kind.api.path for kind in KINDS.values()} - {KINDS["HTTPSRoute"].api.path}

    assert bill.writes == []
    assert {call.removesuffix(" 200") for call in bill.calls} == {f"GET {path}" for path in addresses}
    assert {read for read in bill.reads if read.split()[0] == "get"} == {"get secrets", "get namespaces"}
