"""Changes made behind the operator's back: to remote objects, to their Secrets, and what certificates need by time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.running import SOON, Installation, Operator, Service, World, message
from edge_operator.derive import samples
from edge_operator.kinds import KINDS
from harness.processes import wait_until

RESYNC_SECONDS = 1.0
CERTIFICATE = "ssh-host-key-cert.pub"
every_kind = pytest.mark.parametrize("kind", [*KINDS])


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


def application(world: World) -> dict[str, dict[str, Any]]:
    """Every sample, once ready."""
    for kind in KINDS.values():
        *needs, manifest = samples.manifests(kind)
        for secret in needs:
            world.cluster.apply(secret, "--namespace", world.namespace)
        world.make(kind.name, "example", manifest["spec"])
    return {kind: world.ready(kind, "example") for kind in KINDS}


def edit(world: World, resource: dict[str, Any], **change: Any) -> str:
    """Change the remote object of a resource through the service; its address."""
    (answer,) = world.service.owned(resource)
    address = world.service.address(KINDS[resource["kind"]], answer)
    world.service.ask("PATCH", address, change)
    return address


def test_an_edit_of_any_kind_is_undone_within_a_resync_and_told(world: World) -> None:
    found = application(world)
    addresses = {kind: edit(world, resource, description="edited elsewhere") for kind, resource in found.items()}

    for kind, address in addresses.items():
        wanted = found[kind]["spec"].get("description", "")
        held = lambda a=address, w=wanted: world.service.ask("GET", a)["description"] == w
        wait_until(held, f"{kind} to be as before", RESYNC_SECONDS + SOON, 0.1)
    for kind in KINDS:
        id_ = found[kind]["status"]["id"]
        text = f"DriftCorrected: undid a change made elsewhere in {id_}: description"
        wait_until(lambda t=text: t in world.events("example"), text, SOON)
        assert world.ready(kind, "example")["status"]["id"] == id_


def test_a_module_that_was_taken_off_is_put_back(world: World) -> None:
    found = application(world)
    (route,) = world.service.owned(found["HTTPSRoute"])
    address = world.service.address(KINDS["HTTPSRoute"], route)
    for module in ("ip_restriction", "compression"):
        world.service.ask("DELETE", f"{address}/{module}")

    def back() -> bool:
        held = world.service.ask("GET", address)
        return bool(held["ip_restriction"] and held["compression"])

    wait_until(back, "the modules to be back", RESYNC_SECONDS + SOON, 0.1)


def test_a_deleted_object_is_made_again_and_those_that_point_at_it_follow(world: World) -> None:
    """The edge takes its route along; the backend's successor is told to the edge."""
    found = application(world)
    old = {kind: resource["status"]["id"] for kind, resource in found.items()}
    world.service.ask("DELETE", f"/edges/https/{old['HTTPSEdge']}")
    tls = edit(world, found["TLSEdge"], backend={"backend_id": "bkdtg_1"})
    world.service.ask("DELETE", f"/backends/weighted/{old['WeightedBackend']}")

    def replaced(kind: str) -> dict[str, Any] | None:
        resource = world.ready(kind, "example")
        return resource if resource["status"]["id"] != old[kind] else None

    new = {
        kind: wait_until(lambda k=kind: replaced(k), f"a new {kind}", SOON, 0.1)
        for kind in ("HTTPSEdge", "HTTPSRoute", "WeightedBackend")
    }
    backend = new["WeightedBackend"]["status"]["id"]
    (route,) = world.service.owned(new["HTTPSRoute"])
    assert route["edge_id"] == new["HTTPSEdge"]["status"]["id"]
    assert route["backend"]["backend"]["id"] == backend
    follows = lambda: world.service.ask("GET", tls)["backend"]["backend"]["id"] == backend
    wait_until(follows, "the edge to follow", SOON, 0.1)


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
    """The certificate once it has another id."""
    found = world.ready("SSHHostCertificate", "web")
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
        operator.says("no look at /backends/failover in this round: the service refuses the API key")
        assert world.get("FailoverBackend", "blue") == before
    finally:
        key_file.write_text(service.operator_key)
