"""The operator is killed after each effect of a creation, a change and a deletion, for every kind, and started again.

All kinds go through each point together: the answers to their n-th effects are held back, then the process is killed.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    SSHCertificate,
    load_ssh_private_key,
    load_ssh_public_identity,
)
from cryptography.x509.oid import NameOID

from cluster.cases import CHANGES, SSH, TOKENS, needs
from cluster.gate import Effects, Gate
from cluster.running import SOON, Body, Installation, Operator, Service, World, clear
from edge_operator.derive import samples
from edge_operator.kinds import KINDS
from harness import kubeconfig
from harness.cluster import Cluster
from harness.processes import wait_until

NAME = "example"
MOST = 6
"""The most effects that anything here has: the replacement of a certificate or a token."""
ROTATE = {"annotations": {"edge-operator.dev/rotate-requested-at": "now"}}
PATCHES: dict[str, Any] = {
    **{kind: {"spec": change} for kind, change in CHANGES.items()},
    "APIKey": {"metadata": ROTATE, "spec": CHANGES["APIKey"]},
    "HTTPSEdge": {"spec": {"hostports": ["shop.example.net:443"], "mutualTLS": None}},
    "HTTPSRoute": {"spec": {"match": "/v2", "ipRestriction": {"ipPolicies": [{"id": "ipp_2"}]}, "compression": None}},
    "SSHHostCertificate": {"spec": {"principals": ["web-2.example.com"]}},
    "SSHUserCertificate": {"spec": {"principals": ["admin"]}},
    "TCPEdge": {"spec": {"hostports": ["mq.example.net:5672"], "ipRestriction": None}},
    "TLSCertificate": {"spec": {"secretRef": {"name": "other-tls"}}},
    "TLSEdge": {"spec": {"hostports": ["db.example.net:443"], "ipRestriction": None}},
}
"""A change of each kind: of plain fields, of a module that protects, or of what needs a new object."""
PATIENT = {"identity": "one", "lease": "60s", "lease_renew": "40s", "call_timeout": "20s"}
"""A held answer must not be given up. The successor takes the Lease over at once, because it has the same name."""
Points = dict[str, list[str]]
CREATION: Points = {
    name: ["claim", "POST", *(["Secret POST"] if kind.outputs else []), "status"] for name, kind in KINDS.items()
}
REPLACEMENT = ["claim", "POST", "Secret PATCH", "status", "DELETE", "status"]
CHANGE: Points = {
    **{kind: ["PATCH", "status"] for kind in KINDS},
    **{kind: ["PATCH", "DELETE", "status"] for kind in ("TCPEdge", "TLSEdge", "HTTPSEdge")},
    **dict.fromkeys(("APIKey", *SSH), REPLACEMENT),
    "HTTPSRoute": ["PUT", "PATCH", "DELETE", "status"],
    "TLSCertificate": [effect for effect in REPLACEMENT if effect != "Secret PATCH"],
}
DELETION: Points = {kind: ["DELETE", "release"] for kind in KINDS}


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
        for kind in SSH:
            found[kind]["authority"] = {"id": authority["id"]}
        found["APIKey"]["rotation"]["overlap"] = "0s"
        return found

    def crash(self, nth: int, points: Points) -> None:
        """Wait until every kind has had its n-th effect, or its last; then kill -9, and start again."""
        expected = {kind: effects[:nth] for kind, effects in points.items()}
        wait_until(
            lambda: all(len(self.effects.done.get(kind, ())) >= len(expected[kind]) for kind in KINDS),
            f"effect {nth} of every kind", SOON, 0.05, lambda: f"{self.effects}\n{self.operator.text()}",
        )  # fmt: skip
        self.operator.kill()
        assert self.effects.done == expected
        assert set(self.effects.held) == {kind for kind, effects in points.items() if len(effects) >= nth}
        self.effects.begin()
        self.operator = self.begin()

    def check(self) -> None:
        """Every resource is in sync with exactly one object, and its Secret is that object's."""
        for kind in KINDS:
            self.world.ready(kind, NAME)
        self.operator.rest()
        resources = [self.world.ready(kind, NAME) for kind in KINDS]
        ids = {r["kind"]: [r["status"]["id"]] for r in resources}
        assert {r["kind"]: [o["id"] for o in self.world.service.owned(r)] for r in resources} == ids
        assert sorted(self.world.left()) == sorted(id_ for (id_,) in ids.values())
        for resource in resources:
            if KINDS[resource["kind"]].outputs:
                self._check_secret(resource)
        self._check_sync()

    def _check_secret(self, resource: Body) -> None:
        (answer,) = self.world.service.owned(resource)
        name = resource["status"]["secretName"]
        secret = self.world.cluster.get(f"/api/v1/namespaces/{self.world.namespace}/secrets/{name}")
        data = self.world.data(name)
        assert secret is not None
        assert data is not None
        assert secret["metadata"]["annotations"]["edge-operator.dev/id"] == answer["id"]
        if resource["kind"] in TOKENS:
            assert data["id"] == answer["id"]
            assert self.world.service.accepts(data["token"]) == (resource["kind"] == "APIKey")
        else:
            check_pair({o.source: data[o.key] for o in KINDS[resource["kind"]].outputs}, answer)

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


def check_pair(values: dict[str, str], answer: Body) -> None:
    """The private key belongs to the certificate, and that is the one that the service shows."""
    assert values["certificate"].split()[:2] == answer["certificate"].split()[:2]
    certificate = load_ssh_public_identity(values["certificate"].encode())
    assert isinstance(certificate, SSHCertificate)
    public = load_ssh_private_key(values["private_key"].encode(), None).public_key()
    form = (Encoding.OpenSSH, PublicFormat.OpenSSH)
    assert public.public_bytes(*form) == certificate.public_key().public_bytes(*form)


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
    life.world.apply(needs())
    life.world.secret("other-tls", "kubernetes.io/tls", **tls_pair("other.example.com"))
    for kind, spec in specs.items():
        life.world.make(kind, NAME, spec)


def tls_pair(host: str) -> dict[str, str]:
    """A certificate signed by itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now).not_valid_after(now + timedelta(days=1))
    certificate = builder.sign(key, hashes.SHA256())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return {"tls.crt": certificate.public_bytes(Encoding.PEM).decode(), "tls.key": pem.decode()}


@pytest.mark.fault("SIGKILL after any effect, on a real control plane")
@pytest.mark.parametrize("nth", range(1, MOST + 1))
def test_killed_after_the_nth_effect_of_all_that_can_happen(life: Life, nth: int) -> None:
    world, effects = life.world, life.effects
    specs = life.specs()

    effects.begin(nth)
    make_all(life, specs)
    if nth <= most(CREATION):
        life.crash(nth, CREATION)
    life.check()

    effects.begin(nth)
    for kind, patch in PATCHES.items():
        world.change(kind, NAME, patch)
    life.crash(nth, CHANGE)
    life.check()

    effects.begin(nth)
    for kind in KINDS:
        world.delete(kind, NAME)
    if nth <= most(DELETION):
        life.crash(nth, DELETION)
    for kind in KINDS:
        world.gone(kind, NAME)
    assert world.left() == []
    outputs = [f"{NAME}-{name.lower()}" for name, kind in KINDS.items() if kind.outputs]
    wait_until(lambda: not any(map(world.data, outputs)), f"the Secrets {outputs} to go", SOON)


def most(points: Points) -> int:
    """The most effects that a kind has."""
    return max(map(len, points.values()))


def test_every_point_is_reached() -> None:
    """A new kind is changed too, and nothing has more effects than there are points."""
    assert {*PATCHES} == {*KINDS}
    assert max(most(CREATION), most(CHANGE), most(DELETION)) == MOST


@pytest.mark.fault("creations whose answers are lost, on a real control plane")
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


@pytest.mark.fault("a creation that arrives after its sender died")
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
