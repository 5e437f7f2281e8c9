"""Secret values are in Secrets and at the service, and in nothing else that the operator or the service ever writes.

Every secret input is a canary: a text that is nowhere else. They go through everything that can happen to a resource;
then all that was written is searched. This module has an operator and a service of its own, whose logs it owns.
"""

from __future__ import annotations

import base64
import json
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.running import ADMIN_KEY, SOON, Installation, Operator, Service, World, message
from edge_operator.derive import samples
from edge_operator.kinds import KINDS
from harness.processes import wait_until

SECRET = "canaries"
ROUNDS = ("first", "second")


def canary(name: str, turn: str) -> str:
    """A value that is found nowhere else, with characters that JSON and addresses write differently."""
    return f'{turn}-canary "{name}" ü&<>\\end'


def specs() -> dict[str, dict[str, Any]]:
    """Resources that together have every secret input, each as a reference to a key of one Secret."""
    found: dict[str, dict[str, Any]] = {}
    clouds = {"batchStream": "deliveryStreamARN", "dataStream": "streamARN", "logGroup": "logGroupARN"}
    creds = {"cloudAccessKeyID": key("id"), "cloudSecretAccessKey": key("cloud")}
    for target, arn in clouds.items():
        found[target.lower()] = {"target": {target: {"auth": {"creds": creds}, arn: "arn:x"}}}
    found["monitoring"] = {"target": {"monitoring": {"apiKey": key("monitoring")}}}
    return found


def key(name: str) -> dict[str, Any]:
    return {"secretKeyRef": {"name": SECRET, "key": name}}


def route() -> dict[str, Any]:
    """The route of the samples, with its secrets from ours."""
    found = samples.spec(KINDS["HTTPSRoute"])
    found["webhookVerification"]["secret"] = key("webhook")
    found["oauth"]["provider"]["codeHostA"]["clientSecret"] = key("oauth")
    found["oidc"]["clientSecret"] = key("oidc")
    del found["saml"], found["backend"]
    return found


NAMES = ("id", "cloud", "monitoring", "webhook", "oauth", "oidc")


def put(world: World, turn: str) -> None:
    world.secret(SECRET, **{name: canary(name, turn) for name in NAMES})


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(tmp_path_factory.mktemp("service")) as found:
        found.start()
        yield found


@pytest.fixture(scope="module")
def operator(
    installation: Installation, service: Service, key_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Operator]:
    log = tmp_path_factory.mktemp("operator") / "operator.log"
    with Operator(installation, service.url, key_file, log, resync="1s", log_level="debug") as found:
        found.lead()
        yield found
        code, _ = found.stop()
        assert code == 0


def everything(world: World, operator: Operator) -> dict[str, str]:
    """All that was written about the resources, by where; Secrets and the service's objects apart."""
    cluster, service = world.cluster, world.service
    places = {
        "the operator's log": operator.text(),
        "the metrics": operator.metrics(),
        "the service's log": service.text(),
        "the request log": service.request_log.read_text(),
        "the requests in memory": json.dumps(service.journal()),
        "the OpenAPI document": json.dumps(service.ask("GET", "/openapi.json")),
        "the events": json.dumps(cluster.request("GET", "/api/v1/events")),
        "the Leases": json.dumps(cluster.request("GET", "/apis/coordination.k8s.io/v1/leases")),
    }
    for process in (operator.running, service.process):
        assert process is not None
        places[f"the arguments of the {process.name}"] = Path(f"/proc/{process.pid}/cmdline").read_text()
    for kind in KINDS.values():
        found = cluster.request("GET", f"/apis/edge-operator.dev/v1alpha1/{kind.plural}")
        places[f"the {kind.plural}"] = json.dumps(found)
    return places


def forms(value: str) -> set[str]:
    """A value as it is, and as JSON, addresses, Python and base64 write it."""
    raw = value.encode()
    found = {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1]}
    found |= {urllib.parse.quote(value), urllib.parse.quote_plus(value), base64.b64encode(raw).decode()}
    return found


def leaks(values: dict[str, str], places: dict[str, str]) -> list[str]:
    return [
        f"{name} is in {place}"
        for name, value in values.items()
        for place, text in places.items()
        if any(form in text for form in forms(value))
    ]


def test_secret_values_are_found_nowhere_but_in_secrets_and_at_the_service(
    world: World, operator: Operator, service: Service, key_file: Path
) -> None:
    world.make("HTTPSEdge", "example", samples.spec(KINDS["HTTPSEdge"]))
    put(world, "first")
    kinds = dict.fromkeys(specs(), "EventDestination") | {"route": "HTTPSRoute"}
    service.faults({"kind": "cut", "when": "after", "method": "POST", "count": 2}, {"kind": "latency", "seconds": 0.05})
    for name, spec in {**specs(), "route": route()}.items():
        world.make(kinds[name], name, spec)
    for name, kind in kinds.items():
        world.ready(kind, name)

    # The values change; then the service fails in every way while they are sent.
    service.faults(
        {"kind": "status", "status": 500, "method": "PATCH", "count": 2},
        {"kind": "garbage", "method": "PATCH", "skip": 2, "count": 2},
        {"kind": "status", "status": 400, "method": "PUT", "count": 1},
        {"kind": "cut", "method": "PUT", "skip": 1, "count": 1},
    )
    put(world, "second")
    wait_until(lambda: held(world, kinds) == {"second"}, "the new values at the service", SOON, 0.1)

    # What the service refuses it describes, and the message is passed on.
    nowhere = {"ref": {"id": "bkdwd_2yrt9ZkAqlNPxGdGEGsS0fYYjNj"}}
    world.change_spec("HTTPSRoute", "route", {"backend": nowhere})
    assert message(world.until("HTTPSRoute", "route", "InvalidSpec"))
    world.change_spec("HTTPSRoute", "route", {"backend": None})
    world.ready("HTTPSRoute", "route")

    # A key that is not text, a key that is absent, and an API key that is wrong.
    binary = {"metadata": {"name": "binary"}, "data": {"x": base64.b64encode(b"\xff\xfebinary-canary").decode()}}
    world.cluster.request("POST", f"/api/v1/namespaces/{world.namespace}/secrets", binary)
    world.make("EventDestination", "binary", {"target": {"monitoring": {"apiKey": {"secretKeyRef": {
        "name": "binary", "key": "x"}}}}})  # fmt: skip
    world.until("EventDestination", "binary", "InvalidSpec")
    try:
        key_file.write_text("wrong-canary-key")
        operator.says("the API key changed")
        world.make("TLSEdge", "waits", {"hostports": ["waits.example.com:443"]})
        world.until("TLSEdge", "waits", "ConnectionNotReady")
    finally:
        key_file.write_text(service.operator_key)
    world.ready("TLSEdge", "waits")

    # Tokens that the service makes, a key that is uploaded, one of the operator's own making, that of its digests.
    for kind in ("APIKey", "TunnelCredential"):
        world.make(kind, "token", {})
        world.ready(kind, "token")
    tokens = {kind: (world.data(f"token-{kind.lower()}") or {})["token"] for kind in ("APIKey", "TunnelCredential")}
    pair, uploaded = samples.manifests(KINDS["TLSCertificate"])
    world.apply([pair, uploaded])
    world.ready("TLSCertificate", "example")
    world.make("SSHCertificateAuthority", "fleet", {})
    spec = {"authority": {"name": "fleet"}, "principals": ["web"], "privateKey": {"algorithm": "ed25519"}}
    world.make("SSHHostCertificate", "web", spec)
    world.ready("SSHHostCertificate", "web")
    private = pair["stringData"]["tls.key"] + (world.data("web-sshhostcertificate") or {})["ssh-host-key"]
    own = World(world.cluster, service, operator.installation.namespace)
    digest = world.cluster.request("GET", f"/api/v1/namespaces/{own.namespace}/secrets/edge-operator-digest-key")
    account = operator.installation.kubeconfig.read_text().partition("token: ")[2].split()[0]

    values = {f"{turn} {name}": canary(name, turn) for turn in ROUNDS for name in NAMES}
    values |= {"the API key": service.operator_key, "the admin's key": ADMIN_KEY, "a wrong key": "wrong-canary-key"}
    values |= {"a binary value": "binary-canary", "the service account's token": account}
    values |= {f"the token of {kind}": token for kind, token in tokens.items()}
    values |= {f"line {n} of a key": line for n, line in enumerate(private.splitlines()) if "PRIVATE KEY" not in line}
    values["the key of the digests"] = base64.b64decode(digest["data"]["key"]).hex()
    values["the key of the digests, encoded"] = digest["data"]["key"]
    assert leaks(values, everything(world, operator)) == []

    assert leaks({"a control": "first-control"}, {"a place": "xfirst-controlx"}), "the search finds what is there"


def held(world: World, kinds: dict[str, str]) -> set[str]:
    """Of which round the values are that the service holds, one of each kind."""
    (found,) = world.service.owned(world.ready("HTTPSRoute", "route"))
    texts = json.dumps([found, *world.service.objects("EventDestination")], ensure_ascii=False)
    return {turn for turn in ROUNDS if f"{turn}-canary" in texts}
