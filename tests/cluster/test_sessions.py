"""Sessions and orders to agents on a real API server, with the chart's rights: kubectl, time after the end, kill -9."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.running import SOON, Body, Installation, Operator, Service, World, says
from edge_operator.declare import GROUP, VERSION
from harness.cluster import Cluster, CommandError
from harness.processes import wait_until

KIND = "TunnelSessionCommand"
ROOT = Path(__file__).parents[2]
PATIENT = {"identity": "one", "lease": "60s", "lease_renew": "40s", "call_timeout": "20s"}
"""A held answer must not be given up. The successor takes the Lease over at once, because it has the same name."""


@pytest.fixture(scope="module")
def begin(
    installation: Installation, service: Service, key_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> Any:
    log = tmp_path_factory.mktemp("operator") / "operator.log"

    def operator(*, mirror: bool = True, **flags: str) -> Operator:
        on = {"mirror_sessions": ""} if mirror else {}
        given = {**PATIENT, "sessions_interval": "200ms", **on, **flags}
        return Operator(installation, service.url, key_file, log, **given)

    return operator


@pytest.fixture
def operator(begin: Any) -> Iterator[Operator]:
    with begin() as found:
        yield found.lead()


@pytest.fixture
def world(crds: Cluster, service: Service, namespace: str) -> Iterator[World]:
    """Without an operator, unless the test has one."""
    yield World(crds, service, namespace)
    service.faults()
    for agent in service.ask("GET", "/_control/agents")["agents"]:
        service.ask("DELETE", f"/_control/agents/{agent['id']}")


def online(service: Service, **agent: Any) -> str:
    """An agent comes online; the id of its session."""
    return str(service.ask("POST", "/_control/agents", agent)["id"])


def mirrors(world: World, installation: Installation) -> dict[str, Body]:
    path = f"/apis/{GROUP}/{VERSION}/namespaces/{installation.namespace}/tunnelsessions"
    items = world.cluster.request("GET", path)["items"]
    return {found["spec"]["sessionID"]: found for found in items}


def mirrored(world: World, installation: Installation, *sessions: str) -> dict[str, Body]:
    """The mirrored sessions, once they are exactly these and complete."""

    def found() -> dict[str, Body] | None:
        seen = mirrors(world, installation)
        whole = all((one.get("status") or {}).get("id") for one in seen.values())
        return seen if set(seen) == set(sessions) and whole else None

    # An empty dictionary is an answer, too.
    wait_until(lambda: found() is not None, f"the mirror of {sessions}", SOON, 0.05)
    return mirrors(world, installation)


def told(service: Service, since: int) -> list[str]:
    """What was asked of agents since a mark."""
    asked = [e for e in service.journal() if e["number"] > since and e["method"] == "POST"]
    return [e["path"] for e in asked if e["path"].startswith("/tunnel_sessions/")]


def kubectl(world: World, *args: str) -> str:
    return world.cluster.kubectl("-n", world.namespace, *args)


def test_sessions_come_and_go_with_their_agents_and_kubectl_shows_them(
    operator: Operator, world: World, installation: Installation
) -> None:
    one, two = online(world.service, ip="192.0.2.7", region="eu"), online(world.service, os="windows")
    mirrored(world, installation, one, two)

    shown = world.cluster.kubectl("get", "tsn", "-n", installation.namespace, "--sort-by=.status.ip").splitlines()
    assert shown[0].split() == ["NAME", "ID", "IP", "OS", "VERSION", "REGION", "STARTED", "AGE"]
    assert sorted(row.split()[1:6] for row in shown[1:]) == sorted(
        [[one, "192.0.2.7", "linux", "3.1.0", "eu"], [two, "192.0.2.10", "windows", "3.1.0", "us"]]
    )
    by_id = world.cluster.request(
        "GET", f"/apis/{GROUP}/{VERSION}/namespaces/{installation.namespace}/tunnelsessions",
        fieldSelector=f"status.id={two}",
    )["items"]  # fmt: skip
    assert [found["spec"]["sessionID"] for found in by_id] == [two]

    world.service.ask("DELETE", f"/_control/agents/{one}")
    mirrored(world, installation, two)
    assert "defect" not in operator.text()


def test_nothing_goes_while_the_service_is_away_and_switched_off_all_goes(
    begin: Any, world: World, installation: Installation
) -> None:
    session = online(world.service)
    with begin() as first:
        first.lead()
        mirrored(world, installation, session)
        world.service.faults({"kind": "status", "status": 503})
        first.says("sessions of the connection default cannot be listed now")
        assert list(mirrors(world, installation)) == [session]
        world.service.faults()
        first.stop()
    assert list(mirrors(world, installation)) == [session]
    mark = world.service.mark()
    with begin(mirror=False) as second:
        second.lead()
        mirrored(world, installation)
        second.rest()
    assert [call for call in world.service.calls(mark) if "tunnel_sessions" in call] == []


def test_kubectl_waits_for_a_restart_and_shows_the_session_that_follows(
    operator: Operator, world: World, installation: Installation
) -> None:
    session = online(world.service, reconnect_seconds=0.5)
    name = mirrored(world, installation, session)[session]["metadata"]["name"]
    world.make(KIND, "again", {"sessionRef": {"name": name}, "command": "Restart"})

    kubectl(world, "wait", "--for=condition=Ready", "tsc/again", f"--timeout={SOON:.0f}s")

    (after,) = world.service.ask("GET", "/_control/agents")["agents"]
    head, row = kubectl(world, "get", "tsc").splitlines()
    assert head.split() == ["NAME", "READY", "REASON", "COMMAND", "SESSION", "SUCCESSOR", "AGE"]
    assert row.split()[:-1] == ["again", "True", "Completed", "Restart", session, after["id"]]
    mirrored(world, installation, after["id"])
    wait_until(lambda: world.events("again"), "an event", SOON, 0.05)
    assert world.events("again") == [f"Commanded: the agent of {session} came back as {after['id']}"]
    assert "defect" not in operator.text()


def test_an_update_and_its_restart_are_waited_for_too(operator: Operator, world: World) -> None:
    session = online(world.service, agent_version="3.1.0", releases=["3.2.0", "4.0.0"])
    world.make(KIND, "newer", {"sessionID": session, "command": "Update", "restartAfterUpdate": True})

    world.until(KIND, "newer", "Completed", 2 * SOON)

    (after,) = world.service.ask("GET", "/_control/agents")["agents"]
    assert after["agent_version"] == "3.2.0"
    assert operator.running.running


def test_kubectl_wait_sees_a_failure_as_stalled(operator: Operator, world: World) -> None:
    session = online(world.service, os="windows")
    world.make(KIND, "no", {"sessionID": session, "command": "Restart"})

    kubectl(world, "wait", "--for=condition=Stalled", "tsc/no", f"--timeout={SOON:.0f}s")

    assert says(world.until(KIND, "no", "RestartUnsupported")) == "RestartUnsupported"
    assert operator.running.running


def test_it_goes_when_its_time_is_over_also_after_a_restart_of_the_operator(begin: Any, world: World) -> None:
    mark = world.service.mark()
    with begin() as first:
        first.lead()
        for name, seconds in (("soon", 1), ("later", 4), ("never", None)):
            ttl = {} if seconds is None else {"ttlSecondsAfterFinished": seconds}
            world.make(KIND, name, {"sessionID": online(world.service), "command": "Stop", **ttl})
        world.until(KIND, "later", "Completed")
        world.gone(KIND, "soon")
        first.kill()
    with begin() as second:
        second.lead()
        world.gone(KIND, "later")
        assert world.get(KIND, "never") is not None
    assert len(told(world.service, mark)) == 3


def test_an_order_is_fixed_and_another_is_another_resource(crds: Cluster, world: World) -> None:
    """Nothing looks at it here: the API server refuses by itself."""
    world.make(KIND, "fixed", {"sessionID": "ts_1", "command": "Stop"})

    for patch in ({"command": "Restart"}, {"sessionID": "ts_2"}, {"ttlSecondsAfterFinished": 1}):
        with pytest.raises(CommandError, match="a command cannot be changed after creation"):
            kubectl(world, "patch", "tsc", "fixed", "--type=merge", "-p", json.dumps({"spec": patch}))
    kubectl(world, "label", "tsc", "fixed", "a=b")
    crds.kubectl("apply", "--dry-run=server", "-f", ROOT / "docs/samples/companions/tunnelsessioncommand.yaml")


@pytest.mark.parametrize("command", ["Restart", "Stop", "Update"])
@pytest.mark.fault("SIGKILL while a command to an agent is under way")
def test_an_operator_killed_between_the_mark_and_the_answer_never_repeats_it(
    begin: Any, world: World, command: str
) -> None:
    session = online(world.service)
    mark = world.service.mark()
    world.service.faults({"kind": "latency", "seconds": 60, "method": "POST", "path": f"/{command.lower()}$"})
    with begin() as first:
        first.lead()
        world.make(KIND, "once", {"sessionID": session, "command": command})
        wait_until(lambda: told(world.service, mark), "the command", SOON, 0.02, first.text)
        resource = world.get(KIND, "once") or {}
        assert [entry["command"] for entry in resource["status"]["sent"]] == [command]
        first.kill()
    world.service.faults()
    with begin() as second:
        second.lead()

        found = world.until(KIND, "once", "OutcomeUnknown")
        second.rest()

        assert told(world.service, mark) == [f"/tunnel_sessions/{session}/{command.lower()}"]
        assert "completionTime" in found["status"]


def test_a_replica_that_takes_over_removes_and_repeats_nothing(begin: Any, world: World) -> None:
    """Two replicas: the one that follows has seen the order, and what became of it."""
    mark = world.service.mark()
    quick = {"lease": "6s", "lease_renew": "4s", "call_timeout": "2s"}
    with begin(**quick) as first:
        first.lead()
        with begin(**{**quick, "identity": "two"}) as second:
            second.start()
            world.make(KIND, "once", {"sessionID": online(world.service), "command": "Stop"})
            world.until(KIND, "once", "Completed")
            first.stop()
            second.says("work begins")
            second.rest()

            assert len(told(world.service, mark)) == 1
            assert says(world.until(KIND, "once", "Completed")) == "Completed"
