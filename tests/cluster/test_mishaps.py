"""Two real replicas, a real API server and a service, and everything that can happen to them, at random, at once.

What happened is printed; the seed is EDGE_OPERATOR_SEED. Afterwards every resource has its one object, a Secret that
belongs to it, and nothing is left in the account when all are deleted.
"""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cluster.cases import EVERY, TOKENS, application
from cluster.running import Body, Installation, Operator, Service, World, clear
from doubles import schedules
from doubles.scenarios import EDITS
from doubles.trial import FAULTS
from edge_operator.declare import GROUP
from edge_operator.kinds import KINDS
from harness.cluster import Cluster
from harness.processes import HarnessError

NAME = "example"
PATIENCE_SECONDS = 90.0
"""A replica that dies and a Lease that has to run out, some times over."""
FLAGS = {
    "grace": "3s",
    "resync": "4s",
    "lease": "3s",
    "lease_renew": "2s",
    "lease_retry": "300ms",
    "call_timeout": "1s",
}
LASTING = ("lag", "page_size")
"""Faults that are no harm to be left on; others are for a few calls."""


def own(world: World, of: Any) -> Any:
    """The same, on hosts that are this namespace's."""
    return json.loads(json.dumps(of).replace("example.com", f"{world.namespace}.example.com"))


@dataclass
class Mishaps:
    """What can happen, drawn by a seed."""

    cluster: Cluster
    worlds: list[World]
    replicas: list[Operator]
    dice: random.Random
    told: list[str] = field(default_factory=list)
    frozen: dict[int, float] = field(default_factory=dict)
    """Replicas that do not run at present, and when they wake up."""

    def manifests(self, world: World) -> list[Body]:
        """A whole application, on hosts of its own."""
        found: list[Body] = own(world, application())
        return found

    def step(self) -> None:
        """Let something happen."""
        for number, until in list(self.frozen.items()):
            if time.monotonic() > until:
                self.wake(number)
        world, kind = self.dice.choice(self.worlds), self.dice.choice(EVERY)
        happening: Callable[[World, str], str] = self.dice.choices(
            [self.edit, self.delete, self.create, self.rotate, self.lose_secret, self.theirs, self.fault, self.replica,
             self.service, self.label],
            [20, 12, 18, 5, 4, 4, 14, 8, 1, 4],
        )[0]  # fmt: skip
        try:
            said = happening(world, kind)
        except HarnessError as error:
            said = f"{happening.__name__} {kind}: refused: {str(error)[:100]}"
        self.told.append(f"{time.monotonic():.2f} {said}")
        time.sleep(self.dice.choice((0.0, 0.02, 0.1, 0.4)))

    # What a user does -----------------------------------------------------------------------------

    def edit(self, world: World, kind: str) -> str:
        members = [edit.members for edit in EDITS[kind]]
        drawn = self.dice.choice([*members, {"description": f"number {self.dice.randrange(99)}"}])
        spec = own(world, drawn)
        world.change_spec(kind, NAME, spec)
        return f"edit {kind} {spec}"

    def label(self, world: World, kind: str) -> str:
        world.change(kind, NAME, {"metadata": {"labels": {"touched": str(self.dice.randrange(99))}}})
        return f"label {kind}"

    def delete(self, world: World, kind: str) -> str:
        world.delete(kind, NAME)
        return f"delete {kind}"

    def create(self, world: World, kind: str) -> str:
        """Something that is not there is made again."""
        del kind
        gone = [m for m in self.manifests(world) if m["kind"] in KINDS and world.get(m["kind"], NAME) is None]
        for manifest in gone[:1]:
            world.make(manifest["kind"], NAME, manifest["spec"])
        return f"create {[m['kind'] for m in gone[:1]]}"

    def rotate(self, world: World, kind: str) -> str:
        kind = self.dice.choice([name for name, one in KINDS.items() if one.outputs])
        world.change(kind, NAME, {"metadata": {"annotations": {f"{GROUP}/rotate-requested-at": str(time.time())}}})
        return f"rotate {kind}"

    def lose_secret(self, world: World, kind: str) -> str:
        kind = self.dice.choice([name for name, one in KINDS.items() if one.outputs])
        name = f"{NAME}-{kind.lower()}"
        world.cluster.request("DELETE", f"/api/v1/namespaces/{world.namespace}/secrets/{name}")
        return f"delete the Secret of {kind}"

    # What happens to the service ------------------------------------------------------------------

    def theirs(self, world: World, kind: str) -> str:
        """Somebody changes an object by hand."""
        world.service.faults()
        mine = [o for o in world.service.objects(kind) if f"{world.namespace}/" in str(o.get("metadata"))]
        if not mine:
            return f"nothing of {kind} to change by hand"
        address = world.service.address(KINDS[kind], mine[0])
        world.service.ask("PATCH", address, {"description": "theirs"})
        return f"PATCH {address} by hand"

    def fault(self, world: World, kind: str) -> str:
        del kind
        drawn = [self.dice.choice(FAULTS) for _ in range(self.dice.randint(0, 3))]
        faults = [f if f["kind"] in LASTING else {**f, "count": self.dice.randint(1, 4)} for f in drawn]
        faults = [{**f, "seconds": 1} if f["kind"] == "lag" else f for f in faults]
        faults = [{**f, "retry_after": "1"} if "retry_after" in f else f for f in faults]
        world.service.faults({"kind": "latency", "seconds": self.dice.choice((0, 0.05, 0.3))}, *faults)
        return f"faults {faults}"

    def service(self, world: World, kind: str) -> str:
        del kind
        world.service.kill()
        time.sleep(self.dice.choice((0.0, 1.0)))
        world.service.start()
        return "the service is killed and comes back"

    # What happens to the operator -----------------------------------------------------------------

    def replica(self, world: World, kind: str) -> str:
        del world, kind
        number = self.dice.randrange(len(self.replicas))
        if number in self.frozen:
            self.wake(number)
        how = self.dice.choice(("killed", "stopped", "frozen"))
        replica = self.replicas[number]
        if how == "killed":
            replica.kill()
            replica.start()
        elif how == "stopped":
            replica.stop()
            replica.start()
        else:
            replica.running.signal(signal.SIGSTOP)
            self.frozen[number] = time.monotonic() + self.dice.choice((0.5, 2.5, 5.0))
        return f"replica {number} is {how}"

    def wake(self, number: int) -> None:
        """Let a replica go on."""
        self.replicas[number].running.signal(signal.SIGCONT)
        del self.frozen[number]
        self.told.append(f"{time.monotonic():.2f} replica {number} wakes up")

    # What has to hold -----------------------------------------------------------------------------

    def calm(self) -> None:
        """No more mishaps."""
        for number in list(self.frozen):
            self.wake(number)
        self.worlds[0].service.faults()

    def settle(self) -> list[tuple[World, Body]]:
        """Wait until everything is as declared; the resources."""
        for world in self.worlds:
            for kind in EVERY:  # what waits for somebody else to be deleted is deleted with them
                if (found := world.get(kind, NAME)) is not None and found["metadata"].get("deletionTimestamp"):
                    clear(world, PATIENCE_SECONDS)
                    break
            world.apply(self.manifests(world))
        return [(world, world.ready(kind, NAME, PATIENCE_SECONDS)) for world in self.worlds for kind in EVERY]

    def judge(self, world: World, resource: Body) -> None:
        """One resource, once it is settled."""
        kind = resource["kind"]
        status = world.ready(kind, NAME)["status"]
        ids = {o["id"] for o in world.service.owned(resource)}
        previous = {p["id"] for p in status.get("previous") or ()}
        assert ids - previous == {status["id"]}, f"{kind}: {ids}, {status}"
        if not KINDS[kind].outputs:
            return
        secret = world.cluster.get(f"/api/v1/namespaces/{world.namespace}/secrets/{status['secretName']}")
        assert secret is not None
        assert secret["metadata"]["annotations"][f"{GROUP}/id"] == status["id"]
        if kind in TOKENS:
            data = world.data(status["secretName"])
            assert data is not None
            assert data["id"] == status["id"]
            assert world.service.accepts(data["token"]) == (kind == "APIKey")


@pytest.fixture
def mishaps(
    crds: Cluster, installation: Installation, service: Service, key_file: Path, tmp_path: Path, namespace: str
) -> Iterator[Mishaps]:
    """Two replicas, and a namespace beside another."""
    second = f"{namespace}-2"
    crds.create_namespace(second)
    worlds = [World(crds, service, name) for name in (namespace, second)]
    with (
        Operator(installation, service.url, key_file, tmp_path / "first.log", **FLAGS) as first,
        Operator(installation, service.url, key_file, tmp_path / "second.log", **FLAGS) as other,
    ):
        first.lead()
        other.start().says("watching ")
        yield Mishaps(crds, worlds, [first, other], random.Random(schedules.SEED))
    crds.clear_namespace(second)


@pytest.mark.timeout(schedules.TIMEOUT_SECONDS)
@pytest.mark.fault("all of these at random, on a real control plane, with two replicas")
def test_whatever_happens_to_real_processes_each_resource_ends_with_one_object(mishaps: Mishaps) -> None:
    for world in mishaps.worlds:
        world.apply(mishaps.manifests(world))
    try:
        for _ in range(schedules.SIZE.mishaps):
            mishaps.step()
        mishaps.calm()
        settled = mishaps.settle()
        for world, resource in settled:
            mishaps.judge(world, resource)
        for world in mishaps.worlds:
            clear(world, PATIENCE_SECONDS)
        assert [world.left() for world in mishaps.worlds] == [[], []]
        for replica in mishaps.replicas:
            assert "a defect of the operator" not in replica.log.read_text()
    finally:
        mishaps.calm()
        print("\n".join(mishaps.told))
