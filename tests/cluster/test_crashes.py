"""The operator is killed after each effect of a creation, a change and a deletion, for every kind, and started again.

All kinds go through each point together: the answers to their n-th effects are held back, then the process is killed.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    SSHCertificate,
    load_ssh_private_key,
    load_ssh_public_identity,
)

from cluster.gate import Effects, Gate
from cluster.running import SOON, Installation, Operator, Service, World, clear, says
from edge_operator.derive import samples
from edge_operator.kinds import KINDS
from harness import kubeconfig
from harness.cluster import Cluster
from harness.processes import wait_until

NAME = "example"
MOST = 6
"""The most effects that anything here has: the replacement of a certificate."""
CHANGES: dict[str, Any] = {
    "AgentIngress": {"description": "changed"},
    "EventDestination": {"description": "changed", "target": {"monitoring": {"tags": "env:test"}}},
    "FailoverBackend": {"backends": [{"id": "bkdtg_2"}]},
    "HTTPSEdge": {"hostports": ["shop.example.net:443"], "mutualTLS": None},
    "HTTPSRoute": {"match": "/v2", "ipRestriction": {"ipPolicies": [{"id": "ipp_2"}]}, "compression": None},
    "SSHCertificateAuthority": {"description": "changed"},
    "SSHHostCertificate": {"principals": ["web-2.example.com"]},
    "TCPEdge": {"hostports": ["mq.example.net:5672"], "ipRestriction": None},
    "TLSEdge": {"hostports": ["db.example.net:443"], "ipRestriction": None},
    "WeightedBackend": {"backends": [{"ref": {"id": "bkdtg_2"}, "weight": 1}]},
}
"""A change of each kind: of plain fields, of a module that protects, and of what needs a new certificate."""
PATIENT = {"identity": "one", "lease": "60s", "lease_renew": "40s", "call_timeout": "20s"}
"""A held answer must not be given up. The successor takes the Lease over at once, because it has the same name."""
PLAIN = ["claim", "POST", "status"]
CREATION = {**dict.fromkeys(KINDS, PLAIN), "SSHHostCertificate": ["claim", "POST", "Secret POST", "status"]}
REPLACEMENT = ["claim", "POST", "Secret PATCH", "status", "DELETE", "status"]
DELETION = ["DELETE", "release"]


def test_every_kind_is_changed() -> None:
    assert {*CHANGES} == {*KINDS}


@dataclass
class Life:
    """One resource of each kind, independent of each other, and the operator that is killed again and again."""

    world: World
    effects: Effects
    begin: Any
    operator: Operator

    def specs(self) -> dict[str, Any]:
        """The samples, with references to objects that are there already instead of to each other."""
        found = {kind: samples.spec(KINDS[kind]) for kind in KINDS}
        service = self.world.service
        edge = service.ask("POST", "/edges/https", {"hostports": [f"{secrets.token_hex(4)}.example.com:443"]})
        authority = service.ask("POST", "/ssh_certificate_authorities", {})
        backend = {"ref": {"id": "bkdtg_1"}}
        for kind in ("TCPEdge", "TLSEdge", "HTTPSRoute"):
            found[kind]["backend"] = backend
        found["WeightedBackend"]["backends"] = [{**backend, "weight": 1}]
        found["HTTPSRoute"]["edge"] = {"id": edge["id"]}
        found["SSHHostCertificate"]["authority"] = {"id": authority["id"]}
        return found

    def crash(self, nth: int) -> dict[str, list[str]]:
        """Wait until every kind has had its n-th effect or is at rest; kill -9, start again. What was done before."""

        def there() -> bool:
            return all(self.effects.held[kind] or self._rests(kind) for kind in KINDS)

        wait_until(there, f"effect {nth} of every kind", SOON, 0.05, lambda: f"{self.effects}\n{self.operator.text()}")
        self.operator.kill()
        done, held = self.effects.done, set(self.effects.held)
        assert held == {kind for kind, effects in done.items() if len(effects) >= nth}
        assert all(len(effects) <= nth for effects in done.values()), "nothing happens to a resource beside its pass"
        self.effects.begin()
        self.operator = self.begin()
        return done

    def _rests(self, kind: str) -> bool:
        found = self.world.get(kind, NAME)
        return found is None or says(found) == "Available"

    def check(self) -> None:
        """Every resource is in sync with exactly one object, and its Secret is that object's."""
        resources = [self.world.ready(kind, NAME) for kind in KINDS]
        self.operator.rest()
        ids = {r["kind"]: [r["status"]["id"]] for r in resources}
        assert {r["kind"]: [o["id"] for o in self.world.service.owned(r)] for r in resources} == ids
        assert sorted(self.world.left()) == sorted(id_ for (id_,) in ids.values())
        self._check_secret()
        self._check_sync()

    def _check_secret(self) -> None:
        resource = self.world.get("SSHHostCertificate", NAME)
        assert resource is not None
        (answer,) = self.world.service.owned(resource)
        name = resource["status"]["secretName"]
        secret = self.world.cluster.get(f"/api/v1/namespaces/{self.world.namespace}/secrets/{name}")
        data = self.world.data(name)
        assert secret is not None
        assert data is not None
        assert secret["metadata"]["annotations"]["edge-operator.dev/id"] == answer["id"]
        assert data["ssh-host-key-cert.pub"].split()[:2] == answer["certificate"].split()[:2]
        certificate = load_ssh_public_identity(data["ssh-host-key-cert.pub"].encode())
        assert isinstance(certificate, SSHCertificate)
        public = load_ssh_private_key(data["ssh-host-key"].encode(), None).public_key()
        form = (Encoding.OpenSSH, PublicFormat.OpenSSH)
        assert public.public_bytes(*form) == certificate.public_key().public_bytes(*form)

    def _check_sync(self) -> None:
        """A look at each remote object finds nothing to do."""
        mark, sign = self.world.service.mark(), secrets.token_hex(4)
        for kind in KINDS:
            asked = {"metadata": {"annotations": {"edge-operator.dev/reconcile-requested-at": sign}}}
            self.world.change(kind, NAME, asked)

        def looked() -> bool:
            found = (self.world.get(kind, NAME) or {} for kind in KINDS)
            return all(r["status"].get("lastHandledReconcileAt") == sign for r in found)

        wait_until(looked, "a look at every object", SOON, 0.05)
        assert {call.split()[0] for call in self.world.service.calls(mark)} == {"GET"}


@pytest.fixture
def life(
    crds: Cluster, installation: Installation, service: Service, key_file: Path, namespace: str, tmp_path: Path
) -> Iterator[Life]:
    effects = Effects()
    server, client = kubeconfig.read(installation.kubeconfig)
    token = client.headers["Authorization"].removeprefix("Bearer ")
    client.close()
    world = World(crds, service, namespace)
    with Gate(server.url, effects, server.context()) as cluster_gate, Gate(service.url, effects) as service_gate:
        front = kubeconfig.Server(cluster_gate.url, None)
        path = kubeconfig.write(tmp_path / "kubeconfig", front, "operator", token)

        def begin() -> Operator:
            log = tmp_path / "operator.log"
            return Operator(installation, service_gate.url, key_file, log, kubeconfig=path, **PATIENT).lead()

        found = Life(world, effects, begin, begin())
        try:
            yield found
        finally:
            effects.begin()
            clear(world)
            found.operator.kill()


def begun(life: Life) -> int:
    """How many creations the service has received."""
    return sum(entry["method"] == "POST" for entry in life.world.service.journal())


def make_all(life: Life, specs: dict[str, Any]) -> None:
    """Create one resource of each kind."""
    for manifest in [m for kind in KINDS.values() for m in samples.manifests(kind)[:-1]]:
        life.world.cluster.apply(manifest, "--namespace", life.world.namespace)
    for kind, spec in specs.items():
        life.world.make(kind, NAME, spec)


@pytest.mark.parametrize("nth", range(1, MOST + 1))
def test_killed_after_the_nth_effect_of_all_that_can_happen(life: Life, nth: int) -> None:
    world, effects = life.world, life.effects
    specs = life.specs()

    effects.begin(nth)
    make_all(life, specs)
    if nth <= max(map(len, CREATION.values())):
        assert life.crash(nth) == {kind: effects[:nth] for kind, effects in CREATION.items()}
    life.check()

    effects.begin(nth)
    for kind, change in CHANGES.items():
        world.change_spec(kind, NAME, change)
    done = life.crash(nth)
    assert done["SSHHostCertificate"] == REPLACEMENT[:nth]
    life.check()

    effects.begin(nth)
    for kind in KINDS:
        world.delete(kind, NAME)
    if nth <= len(DELETION):
        assert life.crash(nth) == dict.fromkeys(KINDS, DELETION[:nth])
    for kind in KINDS:
        world.gone(kind, NAME)
    assert world.left() == []
    wait_until(lambda: world.data(f"{NAME}-sshhostcertificate") is None, "the Secret to go", SOON)


@pytest.mark.parametrize(
    "fault",
    [{"kind": "cut", "when": "after"}, {"kind": "status", "status": 503, "when": "after"}, {"kind": "garbage"}],
    ids=["cut", "503", "garbage"],
)
def test_creations_whose_answers_are_lost_are_found_again(life: Life, fault: dict[str, Any]) -> None:
    specs = life.specs()
    life.world.service.faults({**fault, "method": "POST", "count": len(KINDS)})
    make_all(life, specs)

    life.check()


def test_creations_that_arrive_after_their_sender_died_are_found_again(life: Life) -> None:
    """The service carries them out a second and a half later; meanwhile the process is killed, and started again."""
    specs = life.specs()
    before = begun(life)
    life.world.service.faults({"kind": "latency", "seconds": 1.5, "method": "POST"})
    make_all(life, specs)
    wait_until(lambda: begun(life) == before + len(KINDS), "all creations to be under way", SOON, 0.02)

    life.operator.kill()
    assert life.world.left() == []
    life.operator = life.begin()

    life.check()
