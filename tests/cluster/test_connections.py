"""Several accounts in one cluster: who goes where, what happens to a key, and what a wrong one cannot do."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from cluster.running import SOON, Installation, Operator, Service, World, message
from edge_operator.engine import standing
from harness.cluster import APIError, Cluster
from harness.processes import wait_until

KIND = "FailoverBackend"
SPEC = {"backends": [{"id": "bkdtg_1"}]}
THROUGH = {**SPEC, "connectionRef": {"name": "main"}}
SECRET = "main-account"


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Another account, of another service."""
    with Service(tmp_path_factory.mktemp("other")) as found:
        found.start()
        yield found


def connect(world: World, service: Service, key: str = "", name: str = "main", **spec: Any) -> None:
    """Apply a Connection to an account, and the Secret with its key."""
    world.secret(f"{name}-account", **{"api-key": key or service.operator_key})
    key_ref = {"secretKeyRef": {"name": f"{name}-account", "key": "api-key"}}
    body = {
        "apiVersion": "edge-operator.dev/v1alpha1",
        "kind": "Connection",
        "metadata": {"name": name},
        "spec": {"url": service.url, "apiKey": key_ref, **spec},
    }
    world.apply([body])


def ids(service: Service, world: World) -> list[str]:
    """Ids of what this namespace has in an account."""
    return World(world.cluster, service, world.namespace).left()


@pytest.fixture
def there(world: World, other: Service) -> Iterator[World]:
    """A namespace whose Connection `main` leads to the other account."""
    connect(world, other)
    world.until("Connection", "main", "Connected")
    yield world
    if (found := world.get("Connection", "main")) is not None:
        connect(world, other, timeout="2s")
        for resource in world.cluster.request("GET", world.path(KIND))["items"]:
            world.cluster.request("DELETE", world.path(KIND, resource["metadata"]["name"]))
            world.gone(KIND, resource["metadata"]["name"])
        world.delete("Connection", "main")
        world.gone("Connection", found["metadata"]["name"])
    assert ids(other, world) == []


def test_a_resource_lives_in_the_account_of_its_connection(there: World, other: Service) -> None:
    there.make(KIND, "here", SPEC)
    there.make(KIND, "there", THROUGH)
    here, elsewhere = there.ready(KIND, "here"), there.ready(KIND, "there")
    assert ids(other, there) == [elsewhere["status"]["id"]]
    assert there.left() == [here["status"]["id"]]


def test_all_of_it_can_be_applied_and_deleted_in_one_command(world: World, other: Service) -> None:
    world.make(KIND, "early", THROUGH)
    connect(world, other)
    found = world.ready(KIND, "early")
    world.cluster.kubectl(
        "delete", "--namespace", world.namespace, "--wait=false", "connection/main", f"secret/{SECRET}"
    )
    blocked = world.until("Connection", "main", "DeletionBlocked")
    assert message(blocked) == f"still used by {KIND}/early in {world.namespace}; delete them first"
    assert world.data(SECRET) is not None, "the key stays as long as it is needed"
    world.delete(KIND, "early")
    world.gone(KIND, "early")
    world.gone("Connection", "main")
    wait_until(lambda: world.data(SECRET) is None, "the Secret to go", SOON)
    assert found["status"]["id"] not in ids(other, world)


def test_a_changed_key_is_used_at_once(there: World, other: Service) -> None:
    there.make(KIND, "one", THROUGH)
    there.ready(KIND, "one")
    id_, token = other.new_key("another of the operator's")
    there.secret(SECRET, **{"api-key": token})
    mark = other.mark()
    there.make(KIND, "two", THROUGH)
    there.ready(KIND, "two")
    there.change_spec(KIND, "one", {"description": "with the new key"})
    there.ready(KIND, "one")
    used = {e["key_id"] for e in other.journal() if e["number"] > mark and e["method"] != "GET"}
    wait_until(lambda: there.get("Connection", "main") is not None, "the connection")
    assert id_ in used


@pytest.mark.fault("401 to one of several connections")
def test_a_refused_key_stops_the_connection_and_nobody_else(there: World, other: Service, operator: Operator) -> None:
    there.make(KIND, "good", THROUGH)
    good = there.ready(KIND, "good")
    there.secret(SECRET, **{"api-key": "canary-of-no-use"})
    refused = there.until("Connection", "main", "AuthenticationFailed")
    there.make(KIND, "waits", THROUGH)
    there.make(KIND, "elsewhere", SPEC)
    assert "Connection 'main' cannot be used" in message(there.until(KIND, "waits", "ConnectionNotReady"))
    there.ready(KIND, "elsewhere")
    assert there.get(KIND, "good") == good, "what is in sync stays Ready"
    there.delete(KIND, "good")
    there.until(KIND, "good", "ConnectionNotReady")
    assert ids(other, there) == [good["status"]["id"]], "neither lost nor made twice"
    there.secret(SECRET, **{"api-key": other.operator_key})
    there.ready(KIND, "waits")
    there.gone(KIND, "good")
    healed = there.until("Connection", "main", "Connected")
    assert healed["status"]["lastError"] == message(refused)
    for key in ("canary-of-no-use", other.operator_key):
        assert key not in operator.text() + operator.metrics()


@pytest.mark.fault("a key of another account: every known object is a 404")
def test_a_key_of_another_account_neither_empties_nor_doubles_anything(
    there: World, other: Service, service: Service
) -> None:
    there.make(KIND, "kept", THROUGH)
    there.make(KIND, "to-go", THROUGH)
    kept, going = there.ready(KIND, "kept"), there.ready(KIND, "to-go")
    connect(there, service)
    doubt = there.until("Connection", "main", "AccountMismatch")
    assert kept["status"]["id"] in message(doubt)
    there.delete(KIND, "to-go")
    there.change_spec(KIND, "kept", {"description": "edited"})
    there.until(KIND, "to-go", "ConnectionNotReady")
    there.until(KIND, "kept", "ConnectionNotReady")
    assert there.left() == [], "nothing is made in the wrong account"
    connect(there, other)
    there.until("Connection", "main", "Connected")
    there.gone(KIND, "to-go")
    assert there.ready(KIND, "kept")["status"]["id"] == kept["status"]["id"]
    assert going["status"]["id"] not in ids(other, there)


def test_an_account_that_is_right_after_all_can_be_accepted(there: World, other: Service, service: Service) -> None:
    there.make(KIND, "moves", THROUGH)
    before = there.ready(KIND, "moves")["status"]["id"]
    connect(there, service)
    said = message(there.until("Connection", "main", "AccountMismatch"))
    fingerprint = said.rpartition(f"{standing.ACCEPT}=")[2]
    there.change("Connection", "main", {"metadata": {"annotations": {standing.ACCEPT: fingerprint}}})
    there.until("Connection", "main", "Connected")
    there.change_spec(KIND, "moves", {"description": "in the new account"})
    moved = lambda: (there.get(KIND, "moves") or {})["status"].get("id") not in (None, before)
    wait_until(moved, "an object in the new account", SOON)
    assert there.left() == [there.ready(KIND, "moves")["status"]["id"]]
    there.delete(KIND, "moves")
    there.gone(KIND, "moves")
    other.ask("DELETE", f"/backends/failover/{before}")


def test_a_connection_is_fixed_once_there_is_an_object(there: World) -> None:
    there.make(KIND, "fixed", SPEC)
    there.ready(KIND, "fixed")
    with pytest.raises(APIError, match=r"spec\.connectionRef cannot be changed"):
        there.change_spec(KIND, "fixed", {"connectionRef": {"name": "main"}})
    there.make(KIND, "absent", {**SPEC, "connectionRef": {"name": "no-such"}})
    assert "there is no Connection 'no-such' in this namespace" in message(
        there.until(KIND, "absent", "ConnectionNotReady")
    )
    there.change_spec(KIND, "absent", {"connectionRef": {"name": "main"}})
    there.ready(KIND, "absent")


@pytest.fixture
def cluster_connection(world: World, installation: Installation, other: Service) -> Iterator[str]:
    """A ClusterConnection to the other account that admits one namespace, which is not this one."""
    name = f"eu-{secrets.token_hex(4)}"
    World(world.cluster, other, installation.namespace).secret(name, **{"api-key": other.operator_key})
    key_ref = {"secretKeyRef": {"name": name, "key": "api-key"}}
    world.make("ClusterConnection", name, {"url": other.url, "apiKey": key_ref, "allowedNamespaces": ["else"]})
    yield name
    world.delete("ClusterConnection", name)
    world.gone("ClusterConnection", name)


@pytest.mark.fault("a namespace names a connection that does not admit it")
def test_a_namespace_uses_only_a_connection_that_admits_it(
    world: World, other: Service, cluster_connection: str
) -> None:
    world.until("ClusterConnection", cluster_connection, "Connected")
    ref = {"connectionRef": {"kind": "ClusterConnection", "name": cluster_connection}}
    world.make(KIND, "x", {**SPEC, **ref})
    refused = world.until(KIND, "x", "ReferenceNotPermitted")
    assert f"does not admit namespace {world.namespace}" in message(refused)
    assert ids(other, world) == []
    world.change_spec("ClusterConnection", cluster_connection, {"allowedNamespaces": ["else", world.namespace]})
    found = world.ready(KIND, "x")
    assert ids(other, world) == [found["status"]["id"]]
    world.delete(KIND, "x")
    world.gone(KIND, "x")


def test_a_connection_tells_of_operations_that_its_service_lacks(there: World, other: Service) -> None:
    other.faults({"kind": "status", "status": 405, "method": "PATCH", "path": "/backends/failover/.*"})
    there.make(KIND, "fixed", THROUGH)
    there.ready(KIND, "fixed")
    there.change_spec(KIND, "fixed", {"description": "another"})
    there.until(KIND, "fixed", "OperationUnsupported")
    told = lambda: (there.get("Connection", "main") or {})["status"].get("unsupportedOperations")
    wait_until(told, "the connection to tell", SOON)
    assert told() == ["PATCH /backends/failover/{id}"]
    other.faults()
    there.change_spec("Connection", "main", {"concurrency": 3})
    wait_until(lambda: told() is None, "the connection to look at its service anew", SOON)


@pytest.mark.parametrize(
    ("spec", "reason", "said"),
    [
        ({"caBundle": {"value": "not PEM"}}, "InvalidSpec", "spec.caBundle: expected certificates in PEM"),
        ({"customProfile": {"value": "name: mine\nwrong: 1"}}, "InvalidSpec", "spec.customProfile: wrong"),
        ({"timeout": "10m"}, "InvalidSpec", "spec.timeout: at most 2s"),
        ({"apiKey": {"secretKeyRef": {"name": "absent"}}}, "SecretNotReady", "there is no Secret 'absent'"),
        ({"url": "http://127.0.0.1:9"}, "ServiceUnavailable", "the service does not answer"),
    ],
)
def test_a_connection_that_cannot_be_used_says_why(
    world: World, other: Service, spec: dict[str, Any], reason: str, said: str
) -> None:
    connect(world, other, name="broken")
    world.until("Connection", "broken", "Connected")
    world.change_spec("Connection", "broken", spec)
    assert said in message(world.until("Connection", "broken", reason))
    world.delete("Connection", "broken")
    world.gone("Connection", "broken")


@pytest.mark.fault("a namespace is deleted with its connection and its key")
def test_a_namespace_with_its_connection_in_it_goes_as_a_whole(
    crds: Cluster, operator: Operator, service: Service, other: Service
) -> None:
    """The key is deleted together with what it is needed for."""
    world = World(crds, service, f"whole-{secrets.token_hex(4)}")
    crds.create_namespace(world.namespace)
    connect(world, other)
    for number in range(5):
        world.make(KIND, f"x{number}", THROUGH)
    for number in range(5):
        world.ready(KIND, f"x{number}")
    crds.request("DELETE", f"/api/v1/namespaces/{world.namespace}")
    path = f"/api/v1/namespaces/{world.namespace}"
    wait_until(lambda: crds.get(path) is None, f"{path} to go", 60, 0.1, operator.text)
    assert ids(other, world) == []


def test_a_restart_asks_nobody_and_writes_nothing(
    there: World, other: Service, operator: Operator, installation: Installation
) -> None:
    there.make(KIND, "still", THROUGH)
    resource = there.ready(KIND, "still")
    operator.rest()
    connection = there.get("Connection", "main")
    operator.stop()
    mark = other.mark()
    operator.start()
    operator.lead()
    operator.rest()
    assert other.calls(mark) == []
    assert there.get(KIND, "still") == resource
    assert there.get("Connection", "main") == connection
