"""Orders to agents, against the reference API's simulated agents: what is sent, when, how often, and what is said."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from doubles.command_rig import EXAMPLE, NAMESPACE, OPERATORS, CommandRig
from edge_operator.engine.operations import Shut
from edge_operator.engine.reasons import Stalls, Waits
from edge_operator.engine.references import DEFAULT_CONNECTION
from edge_operator.kube.agents import PATIENCE_SECONDS
from edge_operator.kube.queue import Priority


async def test_a_restart_is_sent_once_and_its_successor_recorded(rig: CommandRig) -> None:
    session = await rig.online()
    rig.order(sessionID=session, command="Restart")

    await rig.settle()

    (after,) = await rig.sessions()
    status = rig.status()
    assert rig.posts == ["restart 204"]
    assert (rig.reason(), status["sessionID"], status["successorID"]) == ("Completed", session, after["id"])
    assert rig.message() == f"the agent of {session} came back as {after['id']}"
    assert rig.told == [f"Commanded: the agent of {session} came back as {after['id']}"]
    assert status["startTime"] <= status["sent"][0]["acceptedAt"] <= status["completionTime"]
    assert len(rig.kube.writes) == 3


@pytest.mark.parametrize(("command", "left"), [("Stop", 0), ("Update", 1)])
async def test_a_command_without_a_successor_ends_when_it_is_accepted(rig: CommandRig, command: str, left: int) -> None:
    session = await rig.online()
    rig.order(sessionID=session, command=command)

    await rig.settle()

    assert rig.posts == [f"{command.lower()} 204"]
    assert (rig.reason(), rig.message()) == ("Completed", f"the service accepted {command.lower()} of {session}")
    assert len(await rig.sessions()) == left
    assert "successorID" not in rig.status()
    assert len(rig.kube.writes) == 2


async def test_nothing_more_is_done_after_the_end(rig: CommandRig) -> None:
    rig.order(sessionID=await rig.online(), command="Restart")
    await rig.settle()
    reads, writes, calls = rig.kube.reads, len(rig.kube.writes), len(rig.wire.log)

    await rig.restart()
    await rig.settle()

    assert (rig.kube.reads, len(rig.kube.writes), len(rig.wire.log)) == (reads, writes, calls)


async def test_a_restart_follows_an_update_ten_seconds_later_at_the_earliest(rig: CommandRig) -> None:
    session = await rig.online(agent_version="3.1.0", releases=["3.2.0", "4.0.0"])
    rig.order(sessionID=session, command="Update", restartAfterUpdate=True)

    await rig.sleep(5)
    assert (rig.posts, rig.reason()) == (["update 204"], "Progressing")
    assert "ten seconds later at the earliest" in rig.message()
    await rig.settle()

    (after,) = await rig.sessions()
    assert rig.posts == ["update 204", "restart 204"]
    assert after["agent_version"] == "3.2.0", "the restart came before the update had settled, or crossed a major"
    assert rig.status()["successorID"] == after["id"]


@pytest.mark.parametrize("seconds", [0.3, 4.0, 9.9, 10.4, 30.0])
async def test_the_wait_after_an_update_survives_a_restart_of_the_operator(rig: CommandRig, seconds: float) -> None:
    """A status has whole seconds: what it says may be up to one second too early."""
    rig.world.advance(0.9)
    rig.order(sessionID=await rig.online(), command="Update", restartAfterUpdate=True)
    await rig.sleep(0.1)
    assert rig.posts == ["update 204"]

    rig.world.advance(seconds)
    await rig.restart()
    began = rig.world.elapsed
    await rig.settle()

    (after,) = await rig.sessions()
    assert after["agent_version"] == "3.2.0"
    assert rig.reason() == "Completed"
    assert rig.world.elapsed - began <= 12


@pytest.mark.parametrize("hours", [-3, 3])
async def test_a_clock_that_is_set_neither_shortens_the_wait_nor_prolongs_it(rig: CommandRig, hours: int) -> None:
    rig.order(sessionID=await rig.online(), command="Update", restartAfterUpdate=True)
    await rig.sleep(1)

    began = rig.world.elapsed
    rig.clock.ahead = timedelta(hours=hours)
    rig.queue.due = dict.fromkeys(rig.queue.due, rig.world.elapsed)
    await rig.settle()

    assert rig.posts == ["update 204", "restart 204"]
    (after,) = await rig.sessions()
    assert after["agent_version"] == "3.2.0"
    assert rig.world.elapsed - began < 15


async def test_a_restart_of_its_own_waits_for_the_update_that_another_command_made(rig: CommandRig) -> None:
    session = await rig.online()
    rig.order("update", sessionID=session, command="Update")
    await rig.sleep(1)
    rig.order("restart", sessionID=session, command="Restart")

    await rig.settle()

    (after,) = await rig.sessions()
    assert after["agent_version"] == "3.2.0"
    assert rig.reason("restart") == "Completed"


FAILURES = [
    ("Update", {"releases": []}, "UpdateUnavailable"),
    ("Update", {"agent_version": "3.2.0", "releases": ["4.0.0"]}, "UpdateUnavailable"),
    ("Update", {"update_checks": False}, "UpdateDisabled"),
    ("Update", {"updating": True}, "UpdateInProgress"),
    ("Restart", {"os": "windows"}, "RestartUnsupported"),
]


@pytest.mark.parametrize("profile", ["neutral", "ngrok"])
@pytest.mark.parametrize(("command", "agent", "reason"), FAILURES)
async def test_each_documented_failure_is_a_reason(
    command: str, agent: dict[str, Any], reason: str, profile: str
) -> None:
    async with CommandRig(profile) as rig:
        session = await rig.online(**agent)
        rig.order(sessionID=session, command=command)

        await rig.settle()

        assert (rig.reason(), rig.posts) == (reason, [f"{command.lower()} 400"])
        assert session in rig.message()
        assert "completionTime" in rig.status()
        assert rig.told[0].startswith("!CommandFailed: ")
        assert [s["id"] for s in await rig.sessions()] == [session]


async def test_an_agent_that_waits_for_a_restart_is_not_updated_again(rig: CommandRig) -> None:
    session = await rig.online()
    rig.order("one", sessionID=session, command="Update")
    await rig.settle()
    rig.order("two", sessionID=session, command="Update", restartAfterUpdate=True)

    await rig.settle()

    assert (rig.reason("one"), rig.reason("two")) == ("Completed", "UpdatePendingRestart")
    assert rig.posts == ["update 204", "update 400"], "a restart was sent although the update was refused"


async def test_a_session_that_is_not_online_is_said_to_be_unknown_and_nothing_is_sent(rig: CommandRig) -> None:
    rig.order(sessionID="ts_nobody", command="Stop")

    await rig.settle()

    assert (rig.reason(), rig.message()) == ("SessionNotFound", "the session ts_nobody is not online")
    assert rig.posts == []


async def test_a_session_that_ends_between_the_look_and_the_command_is_said_to_be_unknown(rig: CommandRig) -> None:
    session = await rig.online()
    rig.wire.meanwhile = lambda: rig.offline(session)
    rig.order(sessionID=session, command="Stop")

    await rig.settle()

    assert (rig.reason(), rig.posts) == ("SessionNotFound", ["stop 404"])


async def test_a_command_that_is_unknown_while_the_session_is_there_is_not_offered(rig: CommandRig) -> None:
    rig.order(sessionID=await rig.online(), command="Stop")
    rig.faults({"kind": "status", "status": 404, "method": "POST"})

    await rig.settle()

    assert (rig.reason(), rig.posts) == ("OperationUnsupported", ["stop 404"])


async def test_a_mirrored_session_can_be_named(rig: CommandRig) -> None:
    session = await rig.online()
    rig.api.apply(("TunnelSession", OPERATORS, "mine"), {"spec": {"sessionID": session}})
    rig.order(sessionRef={"name": "mine"}, command="Stop")
    rig.order("other", sessionRef={"name": "yours"}, command="Stop")

    await rig.settle()

    assert (rig.reason(), rig.status()["sessionID"]) == ("Completed", session)
    assert rig.reason("other") == "SessionNotFound"
    assert "there is no TunnelSession yours in namespace edge-system" in rig.message("other")


async def test_a_deleted_command_is_never_sent(rig: CommandRig) -> None:
    session = await rig.online()
    rig.order(sessionID=session, command="Stop")
    rig.delete()

    await rig.settle()

    assert (rig.posts, [s["id"] for s in await rig.sessions()]) == ([], [session])


async def test_a_command_that_is_deleted_while_it_is_looked_at_is_never_sent(rig: CommandRig) -> None:
    """Another's finalizer keeps it there."""
    session = await rig.online()
    key = ("TunnelSessionCommand", NAMESPACE, EXAMPLE)
    rig.api.apply(
        key, {"metadata": {"finalizers": ["example.com/mine"]}, "spec": {"sessionID": session, "command": "Stop"}}
    )
    rig.effects.meddling[1] = rig.delete

    await rig.settle()

    assert rig.posts == []


async def test_it_is_removed_when_its_time_after_the_end_is_over(rig: CommandRig) -> None:
    rig.order(sessionID=await rig.online(), command="Stop", ttlSecondsAfterFinished=30)
    rig.order("failed", sessionID="ts_nobody", command="Stop", ttlSecondsAfterFinished=30)
    rig.order("kept", sessionID="ts_nobody", command="Stop")
    await rig.sleep(25)
    assert (rig.reason(), rig.reason("failed")) == ("Completed", "SessionNotFound")

    await rig.sleep(10)

    assert (rig.get(), rig.get("failed")) == (None, None)
    assert rig.get("kept") is not None


async def test_the_time_after_the_end_goes_on_while_no_operator_runs(rig: CommandRig) -> None:
    rig.order(sessionID=await rig.online(), command="Stop", ttlSecondsAfterFinished=30)
    await rig.sleep(5)
    rig.world.advance(20)
    await rig.restart()

    await rig.sleep(3)
    assert rig.get() is not None
    await rig.sleep(10)
    assert rig.get() is None


async def test_it_goes_through_the_connection_that_it_names(rig: CommandRig) -> None:
    rig.order(sessionID=await rig.online(), command="Stop")
    await rig.settle()
    rig.order("other", sessionID=await rig.online(), command="Stop", connectionRef={"kind": "Connection", "name": "b"})
    before = len(rig.asked)
    await rig.settle()

    assert set(rig.asked[:before]) == {(DEFAULT_CONNECTION, NAMESPACE)}
    assert set(rig.asked[before:]) == {(("Connection", NAMESPACE, "b"), NAMESPACE)}


async def test_it_waits_for_its_connection_and_never_longer_than_somebody_would(rig: CommandRig) -> None:
    rig.shut = Shut(Waits.CONNECTION_NOT_READY, "spec.connectionRef: there is no Connection b")
    rig.order(sessionID=await rig.online(), command="Stop")
    await rig.sleep(3600)
    assert (rig.reason(), rig.posts) == ("ConnectionNotReady", [])
    assert len(rig.kube.writes) == 1
    rig.shut = None

    await rig.sleep(PATIENCE_SECONDS)

    assert (rig.reason(), rig.posts) == ("Completed", ["stop 204"])


async def test_a_connection_that_does_not_admit_the_namespace_ends_it(rig: CommandRig) -> None:
    rig.shut = Shut(Stalls.REFERENCE_NOT_PERMITTED, "the connection does not admit it")
    rig.order(sessionID=await rig.online(), command="Stop")

    await rig.settle()

    assert (rig.reason(), rig.posts) == ("ReferenceNotPermitted", [])


async def test_a_spec_that_an_older_crd_let_in_is_refused(rig: CommandRig) -> None:
    rig.order(command="Restart")

    await rig.settle()

    assert (rig.reason(), rig.posts) == ("InvalidSpec", [])
    assert "set exactly one of sessionID, sessionRef" in rig.message()
    writes = len(rig.kube.writes)
    rig.queue.offer(("TunnelSessionCommand", NAMESPACE, EXAMPLE), priority=Priority.EDIT)
    await rig.sleep(60)
    assert len(rig.kube.writes) == writes, "it ended twice"
