"""Changes made behind the operator's back: to remote objects, to their Secrets, and what certificates need by time."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.cases import TOKENS, application
from cluster.running import SOON, Installation, Operator, Service, World, message
from edge_operator.derive import samples
from edge_operator.kinds import KINDS
from harness.processes import wait_until

RESYNC_SECONDS = 1.0
CERTIFICATE = "ssh-host-key-cert.pub"


@pytest.fixture(scope="module")
def operator(
    installation: Installation, service: Service, key_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Operator]:
    """One replica that looks at the account every second."""
    log = tmp_path_factory.mktemp("operator") / "operator.log"
    with Operator(installation, service.url, key_file, log, resync=f"{RESYNC_SECONDS}s") as found:
        found.lead()
        yield found
        code, _ = found.stop()
        assert code == 0


def everything(world: World) -> dict[str, dict[str, Any]]:
    """Every sample, once ready."""
    world.apply(application())
    return {kind: world.ready(kind, "example") for kind in KINDS}


def edit(world: World, resource: dict[str, Any], **change: Any) -> str:
    """Change the remote object of a resource through the service; its address."""
    (answer,) = world.service.owned(resource)
    address = world.service.address(KINDS[resource["kind"]], answer)
    world.service.ask("PATCH", address, change)
    return address


def test_an_edit_of_any_kind_is_undone_within_a_resync_and_told(world: World) -> None:
    found = everything(world)
    addresses = {kind: edit(world, resource, description="edited elsewhere") for kind, resource in found.items()}

    wanted = {kind: resource["spec"].get("description", "") for kind, resource in found.items()}

    def held() -> dict[str, str]:
        return {kind: world.service.ask("GET", address)["description"] for kind, address in addresses.items()}

    wait_until(lambda: held() == wanted, "all to be as before", RESYNC_SECONDS + SOON, 0.1, lambda: str(held()))
    ids = {kind: resource["status"]["id"] for kind, resource in found.items()}
    told = {f"DriftCorrected: undid a change made elsewhere in {id_}: description" for id_ in ids.values()}
    wait_until(lambda: told <= {*world.events("example")}, "events", SOON, 0.1, lambda: str(world.events("example")))
    assert {kind: world.ready(kind, "example")["status"]["id"] for kind in KINDS} == ids


def test_a_module_that_was_taken_off_is_put_back(world: World) -> None:
    found = everything(world)
    (route,) = world.service.owned(found["HTTPSRoute"])
    address = world.service.address(KINDS["HTTPSRoute"], route)
    for module in ("ip_restriction", "compression"):
        world.service.ask("DELETE", f"{address}/{module}")

    def back() -> bool:
        held = world.service.ask("GET", address)
        return bool(held["ip_restriction"] and held["compression"])

    wait_until(back, "the modules to be back", RESYNC_SECONDS + SOON, 0.1)


def test_a_deleted_object_is_made_again_and_those_that_point_at_it_follow(world: World, operator: Operator) -> None:
    """The edge takes its route along; the backend's successor is told to the edge that uses it."""
    found = everything(world)
    old = {kind: resource["status"]["id"] for kind, resource in found.items()}
    operator.running.signal(signal.SIGSTOP)  # or it would heal the first before the last can be deleted
    world.service.ask("DELETE", f"/edges/https/{old['HTTPSEdge']}")
    tls = edit(world, found["TLSEdge"], backend={"backend_id": "bkdtg_1"})
    world.service.ask("DELETE", f"/backends/weighted/{old['WeightedBackend']}")
    operator.running.signal(signal.SIGCONT)

    def replaced() -> dict[str, dict[str, Any]] | None:
        new = {kind: world.ready(kind, "example") for kind in ("HTTPSEdge", "HTTPSRoute", "WeightedBackend")}
        return new if all(resource["status"]["id"] != old[kind] for kind, resource in new.items()) else None

    new = wait_until(replaced, "new objects", RESYNC_SECONDS + SOON, 0.1)
    backend = new["WeightedBackend"]["status"]["id"]

    def follows() -> bool:
        (route,) = world.service.owned(new["HTTPSRoute"])
        edge = world.service.ask("GET", tls)
        assert route["edge_id"] == new["HTTPSEdge"]["status"]["id"]
        return bool(route["backend"]["backend"]["id"] == edge["backend"]["backend"]["id"] == backend)

    wait_until(follows, "route and edge to follow", SOON, 0.1)


@pytest.mark.parametrize("kind", [k.name for k in KINDS.values() if k.on_remote_missing == "Stall"])
def test_what_would_not_be_the_same_thing_is_not_made_again_unless_asked(world: World, kind: str) -> None:
    world.make(kind, "example", samples.spec(KINDS[kind]))
    old = world.ready(kind, "example")["status"]["id"]
    world.service.ask("DELETE", f"{KINDS[kind].api.path}/{old}")

    assert old in message(world.until(kind, "example", "RemoteMissing"))
    world.change_spec(kind, "example", {"onRemoteMissing": "Recreate"})
    assert world.ready(kind, "example")["status"]["id"] != old


def ssh(world: World, **spec: Any) -> dict[str, Any]:
    """A host certificate by a new authority, once it is there."""
    world.make("SSHCertificateAuthority", "example", {"privateKeyType": "ed25519"})
    world.make("SSHHostCertificate", "web", {"authority": {"name": "example"}, "principals": ["web"], **spec})
    return world.ready("SSHHostCertificate", "web")


def test_a_deleted_secret_comes_back_with_a_new_certificate_where_the_key_was_ours(world: World) -> None:
    before = ssh(world, privateKey={"algorithm": "ed25519"})
    name = before["status"]["secretName"]
    old = world.data(name)

    world.cluster.request("DELETE", f"/api/v1/namespaces/{world.namespace}/secrets/{name}")

    new = wait_until(lambda: world.data(name), "the Secret to come back", SOON)
    after = wait_until(lambda: changed(world, before), "a new certificate", SOON)
    assert old is not None
    assert new["ssh-host-key"] != old["ssh-host-key"]
    wait_until(lambda: len(world.service.owned(after)) == 1, "the predecessor to go", SOON)


def changed(world: World, before: dict[str, Any]) -> dict[str, Any] | None:
    """The resource once it has another id."""
    found = world.ready(before["kind"], before["metadata"]["name"])
    return found if found["status"]["id"] != before["status"]["id"] else None


@pytest.mark.parametrize("loss", ["deleted", "emptied"])
def test_a_lost_secret_is_written_again_where_the_key_is_the_users(world: World, loss: str) -> None:
    """The service still has the certificate, and the private key was never in the Secret."""
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAabcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP me"
    before = ssh(world, publicKey={"value": key})
    name = before["status"]["secretName"]
    old, path = world.data(name), f"/api/v1/namespaces/{world.namespace}/secrets/{name}"
    mark = world.service.mark()

    if loss == "deleted":
        world.cluster.request("DELETE", path)
    else:
        world.cluster.request("PATCH", path, {"data": None}, content_type="application/merge-patch+json")

    wait_until(lambda: world.data(name) == old, "the same values", SOON)
    assert world.ready("SSHHostCertificate", "web")["status"]["id"] == before["status"]["id"]
    assert not [call for call in world.service.calls(mark) if call.startswith("POST")]


@pytest.mark.parametrize("kind", TOKENS)
def test_a_lost_token_is_replaced_never_pretended(world: World, kind: str) -> None:
    """The service shows a token once: a new one is made, and the lost one ends."""
    world.make(kind, "agent", {})
    before = world.ready(kind, "agent")
    name = before["status"]["secretName"]
    old = world.data(name)

    world.cluster.request("DELETE", f"/api/v1/namespaces/{world.namespace}/secrets/{name}")

    new = wait_until(lambda: world.data(name), "the Secret to come back", SOON)
    after = wait_until(lambda: changed(world, before), "a new token", SOON)
    assert old is not None
    assert new["token"] != old["token"]
    assert new["id"] == after["status"]["id"]
    wait_until(lambda: [o["id"] for o in world.service.owned(after)] == [new["id"]], "the lost one to go", SOON)


def test_a_certificate_renews_itself_and_its_predecessor_goes(world: World) -> None:
    before = ssh(world, privateKey={"algorithm": "ed25519"}, validFor="6s")
    name = before["status"]["secretName"]
    old = world.data(name)

    after = wait_until(lambda: changed(world, before), "the renewal", SOON)

    new = world.data(name)
    assert old is not None
    assert new is not None
    assert new[CERTIFICATE] != old[CERTIFICATE]
    assert after["status"]["validUntil"] > before["status"]["validUntil"]
    wait_until(lambda: len(world.service.owned(after)) == 1, "the predecessor to go", SOON)


def test_a_secret_of_somebody_else_is_neither_overwritten_nor_is_anything_created(world: World) -> None:
    world.secret("web-sshhostcertificate", mine="value")
    world.make("SSHCertificateAuthority", "example", {})
    spec = {"authority": {"name": "example"}, "principals": ["web"], "privateKey": {"algorithm": "ed25519"}}
    made = world.make("SSHHostCertificate", "web", spec)

    found = world.until("SSHHostCertificate", "web", "SecretConflict")
    assert "web-sshhostcertificate" in message(found)
    assert world.data("web-sshhostcertificate") == {"mine": "value"}
    assert world.service.owned(made) == []

    world.cluster.request("DELETE", f"/api/v1/namespaces/{world.namespace}/secrets/web-sshhostcertificate")
    world.ready("SSHHostCertificate", "web")


def test_ready_resources_stay_ready_while_the_account_cannot_be_looked_at(
    world: World, service: Service, operator: Operator, key_file: Path
) -> None:
    world.make("FailoverBackend", "blue", {"backends": [{"id": "bkdtg_1"}]})
    before = world.ready("FailoverBackend", "blue")
    operator.rest()
    try:
        key_file.write_text("ak_wrong")
        operator.says("the operator's own connection: AuthenticationFailed: the service refuses the API key")
        assert world.get("FailoverBackend", "blue") == before
    finally:
        key_file.write_text(service.operator_key)
