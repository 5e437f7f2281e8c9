"""What is missing or refused is named, nothing is lost on the way, and all of it heals when the cause goes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cluster.running import Operator, Service, World, message
from harness.processes import wait_until

BACKEND = {"backends": [{"id": "bkdtg_1"}]}
EDGE: dict[str, Any] = {"hostports": ["a.example.com:443"]}


def monitoring(name: str, key: str) -> dict[str, Any]:
    return {"target": {"monitoring": {"apiKey": {"secretKeyRef": {"name": name, "key": key}}}}}


def condition(resource: dict[str, Any], type_: str) -> str | None:
    return next((c["status"] for c in resource["status"]["conditions"] if c["type"] == type_), None)


def route(provider: str) -> dict[str, Any]:
    """A route that verifies webhooks of this provider, which only the service knows; its Secret is `hook`."""
    secret = {"secretKeyRef": {"name": "hook", "key": "secret"}}
    verification = {"provider": provider, "secret": secret}
    return {"edge": {"name": "web"}, "matchType": "exact_path", "match": "/", "webhookVerification": verification}


def test_what_the_service_refuses_stalls_with_its_words_and_heals_when_the_spec_changes(world: World) -> None:
    world.make("HTTPSEdge", "web", EDGE)
    world.secret("hook", secret="value")
    world.make("HTTPSRoute", "hook", route("nobody"))

    found = world.until("HTTPSRoute", "hook", "InvalidSpec")
    assert condition(found, "Stalled") == "True"
    assert "webhook_verification.provider" in message(found)
    assert "nobody" in message(found)
    assert world.service.owned(found) == []
    wait_until(lambda: [e for e in world.events("hook") if e.startswith("InvalidSpec: ")], "a warning event")

    world.change_spec("HTTPSRoute", "hook", {"webhookVerification": {"provider": "github"}})
    healed = world.ready("HTTPSRoute", "hook")
    assert condition(healed, "Stalled") is None
    assert [o["webhook_verification"]["provider"] for o in world.service.owned(healed)] == ["github"]


def test_a_change_that_the_service_refuses_keeps_the_object_and_heals(world: World) -> None:
    world.make("HTTPSEdge", "web", EDGE)
    world.secret("hook", secret="value")
    world.make("HTTPSRoute", "hook", route("github"))
    before = world.ready("HTTPSRoute", "hook")
    id_ = before["status"]["id"]

    def held() -> list[tuple[str, str]]:
        return [(o["id"], o["webhook_verification"]["provider"]) for o in world.service.owned(before)]

    world.change_spec("HTTPSRoute", "hook", {"webhookVerification": {"provider": "nobody"}})
    world.until("HTTPSRoute", "hook", "InvalidSpec")
    assert held() == [(id_, "github")]

    world.change_spec("HTTPSRoute", "hook", {"webhookVerification": {"provider": "gitlab"}})

    assert world.ready("HTTPSRoute", "hook")["status"]["id"] == id_
    assert held() == [(id_, "gitlab")]


def wide(world: World, what: str) -> str:
    """What `kubectl get -o wide` prints of a resource: the row, without the heading."""
    head, row = world.cluster.kubectl("get", what, "--namespace", world.namespace, "-o", "wide").splitlines()
    assert head.split()[-2:] == ["MESSAGE", "AGE"]
    return " ".join(row.split())


def test_kubectl_get_says_who_waits_for_whom(world: World) -> None:
    """A reference that is awaited, and a deletion that is held up, name the other one."""
    backend = {"ref": {"kind": "FailoverBackend", "name": "used"}}
    world.make("TCPEdge", "db", {"hostports": ["a.example.com:1"], "backend": backend})
    world.until("TCPEdge", "db", "ReferenceNotReady")
    awaits = wide(world, "tcpedge/db")
    assert awaits.startswith("db False ReferenceNotReady ")
    assert "there is no FailoverBackend named 'used' in this namespace" in awaits

    world.make("FailoverBackend", "used", BACKEND)
    world.ready("TCPEdge", "db")
    assert "the remote object is as the spec says" in wide(world, "tcpedge/db")

    world.delete("FailoverBackend", "used")
    world.until("FailoverBackend", "used", "DeletionBlocked")
    held = wide(world, "failoverbackend/used")
    assert "used False DeletionBlocked " in held
    assert "still used by TCPEdge/db; delete them first" in held


def test_a_missing_secret_then_a_missing_key_are_named_and_heal_when_they_appear(world: World) -> None:
    world.make("EventDestination", "sink", monitoring("tokens", "monitoring"))
    found = world.until("EventDestination", "sink", "SecretNotReady")
    assert condition(found, "Reconciling") == "True"
    assert "spec.target.monitoring.apiKey" in message(found)
    assert "there is no Secret 'tokens'" in message(found)

    world.secret("tokens", other="value")
    wait_until(lambda: "no key 'monitoring'" in message(world.get("EventDestination", "sink") or {}), "the key's name")
    assert world.service.owned(found) == []

    world.secret("tokens", other="value", monitoring="value")
    world.ready("EventDestination", "sink")


def test_a_changed_secret_reaches_the_service(world: World) -> None:
    world.secret("tokens", monitoring="first")
    world.make("EventDestination", "sink", monitoring("tokens", "monitoring"))
    before = world.ready("EventDestination", "sink")

    world.secret("tokens", monitoring="second")

    def held() -> bool:
        (found,) = world.service.owned(before)
        return bool(found["target"]["monitoring"]["api_key"] == "second")

    wait_until(held, "the new value at the service")


def test_a_missing_reference_is_named_and_heals_when_it_appears(world: World) -> None:
    backend = {"backend": {"ref": {"kind": "FailoverBackend", "name": "blue"}}}
    world.make("TLSEdge", "web", {**EDGE, **backend})
    found = world.until("TLSEdge", "web", "ReferenceNotReady")
    assert condition(found, "Reconciling") == "True"
    assert "spec.backend.ref: there is no FailoverBackend named 'blue'" in message(found)
    assert world.service.owned(found) == []

    world.make("FailoverBackend", "blue", BACKEND)
    ready = world.ready("TLSEdge", "web")

    (edge,) = world.service.owned(ready)
    assert edge["backend"]["backend"]["id"] == world.ready("FailoverBackend", "blue")["status"]["id"]


@pytest.mark.fault("the service is down at each step, on a real control plane")
def test_a_service_that_is_down_at_each_step_is_waited_for(world: World, service: Service) -> None:
    world.make("TLSEdge", "old", EDGE)
    world.make("TLSEdge", "going", {"hostports": ["b.example.com:443"]})
    before = world.ready("TLSEdge", "old")
    world.ready("TLSEdge", "going")

    service.kill()
    try:
        world.make("TLSEdge", "new", {"hostports": ["c.example.com:443"]})
        world.change_spec("TLSEdge", "old", {"description": "changed"})
        world.delete("TLSEdge", "going")
        for name in ("new", "old", "going"):
            found = world.until("TLSEdge", name, "ServiceUnavailable")
            assert condition(found, "Reconciling") == "True"
    finally:
        service.start()

    new, old = world.ready("TLSEdge", "new"), world.ready("TLSEdge", "old")
    world.gone("TLSEdge", "going")
    assert len(world.service.owned(new)) == 1
    assert [(o["id"], o["description"]) for o in world.service.owned(old)] == [(before["status"]["id"], "changed")]


@pytest.mark.fault("an API key that is refused and then corrected")
def test_a_refused_api_key_disturbs_nothing_that_is_ready_and_a_corrected_file_heals(
    world: World, service: Service, operator: Operator, key_file: Path
) -> None:
    world.make("TLSEdge", "old", EDGE)
    before = world.ready("TLSEdge", "old")
    try:
        key_file.write_text("ak_wrong")
        operator.says("the API key changed; the new one is in use")
        world.make("TLSEdge", "new", {"hostports": ["b.example.com:443"]})
        found = world.until("TLSEdge", "new", "ConnectionNotReady")
        assert condition(found, "Reconciling") == "True"
        assert "API key" in message(found)
        assert world.get("TLSEdge", "old") == before
        calls = service.mark()
        world.make("TLSEdge", "newer", {"hostports": ["c.example.com:443"]})
        world.until("TLSEdge", "newer", "ConnectionNotReady")
        assert service.mark() - calls <= 1, "one probe at most, however many resources wait"
    finally:
        key_file.write_text(service.operator_key)

    for name in ("new", "newer"):
        assert len(service.owned(world.ready("TLSEdge", name))) == 1
    assert world.get("TLSEdge", "old") == before


def test_a_deletion_that_is_blocked_says_who_uses_the_resource_and_goes_on_when_nobody_does(world: World) -> None:
    world.make("FailoverBackend", "blue", BACKEND)
    world.make("TLSEdge", "web", {**EDGE, "backend": {"ref": {"kind": "FailoverBackend", "name": "blue"}}})
    world.ready("TLSEdge", "web")

    world.delete("FailoverBackend", "blue")
    found = world.until("FailoverBackend", "blue", "DeletionBlocked")
    assert "TLSEdge/web" in message(found)
    assert len(world.service.owned(found)) == 1

    world.delete("TLSEdge", "web")
    world.gone("TLSEdge", "web")
    world.gone("FailoverBackend", "blue")


def test_what_is_refused_can_be_deleted(world: World) -> None:
    world.make("HTTPSEdge", "web", EDGE)
    world.secret("hook", secret="value")
    world.make("HTTPSRoute", "hook", route("nobody"))
    world.until("HTTPSRoute", "hook", "InvalidSpec")

    world.delete("HTTPSRoute", "hook")

    world.gone("HTTPSRoute", "hook")
