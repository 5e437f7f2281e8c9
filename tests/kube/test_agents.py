"""Orders to agents, against the reference API's simulated agents: what is sent, when, how often, and what is said."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from doubles.command_rig import EXAMPLE, NAMESPACE, OPERATORS, CommandRig
from edge_operator.engine import commands
from edge_operator.engine.operations import Shut
from edge_operator.engine.reasons import Stalls, Waits
from edge_operator.engine.references import DEFAULT_CONNECTION
from edge_operator.kube.agents import PATIENCE_SECONDS


@pytest.fixture
async def rig() -> AsyncIterator[CommandRig]:
    async with CommandRig() as found:
        yield found


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


# What surely was not sent is tried again ------------------------------------------------------------


async def test_without_a_connection_it_is_tried_again(rig: CommandRig) -> None:
    rig.order(sessionID=await rig.online(), command="Stop")
    rig.wire.refused = 2

    await rig.sleep(1.5)
    assert (rig.reason(), rig.posts) == ("ServiceUnavailable", [])
    assert "sent" not in rig.status()
    await rig.settle()

    assert (rig.reason(), rig.posts) == ("Completed", ["stop 204"])


@pytest.mark.parametrize(("status", "reason"), [(429, "RateLimited"), (401, "ConnectionNotReady")])
async def test_what_the_service_did_not_look_at_is_sent_again(rig: CommandRig, status: int, reason: str) -> None:
    rig.order(sessionID=await rig.online(), command="Stop")
    rig.faults({"kind": "status", "status": status, "method": "POST", "count": 1, "retry_after": "30"})

    await rig.sleep(1)
    assert rig.reason() == reason
    await rig.settle()

    assert (rig.reason(), rig.posts) == ("Completed", [f"stop {status}", "stop 204"])


async def test_a_service_that_cannot_be_read_is_waited_for_without_a_mark(rig: CommandRig) -> None:
    rig.order(sessionID=await rig.online(), command="Restart")
    rig.faults({"kind": "status", "status": 503, "count": 3})

    await rig.sleep(2)
    assert (rig.reason(), rig.posts) == ("ServiceUnavailable", [])
    await rig.settle()

    assert (rig.reason(), rig.posts) == ("Completed", ["restart 204"])


async def test_a_replica_that_loses_its_lead_before_the_request_sends_it_when_it_leads_again(rig: CommandRig) -> None:
    rig.order(sessionID=await rig.online(), command="Stop")
    rig.led_calls = [False, False]

    await rig.settle()

    assert (rig.reason(), rig.posts) == ("Completed", ["stop 204"])


async def test_a_replica_that_does_not_lead_writes_and_sends_nothing(rig: CommandRig) -> None:
    rig.leads = False
    rig.order(sessionID=await rig.online(), command="Stop")

    await rig.sleep(20)

    assert (rig.posts, rig.kube.writes) == ([], [])


async def test_another_replicas_mark_is_never_taken_back(rig: CommandRig) -> None:
    """It may be sending at this very moment; that this replica did not send its own says nothing of that."""
    rig.order(sessionID=await rig.online(), command="Stop")
    rig.led_calls = [False]
    await rig.sleep(0.5)
    key = ("TunnelSessionCommand", NAMESPACE, EXAMPLE)
    mark = {"command": "Stop", "nonce": "theirs", "sentAt": "2026-01-01T00:00:00Z"}
    rig.api.patch_status(key, None, {"sent": [mark]}, "another operator")

    await rig.settle()

    assert (rig.reason(), rig.posts) == ("OutcomeUnknown", [])


# What may have been sent is not repeated ------------------------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "status", "status": 503, "when": "after"},
        {"kind": "status", "status": 500, "when": "before"},
        {"kind": "status", "status": 408, "when": "before"},
        {"kind": "status", "status": 409, "when": "before"},
        {"kind": "cut", "when": "before"},
        {"kind": "cut", "when": "after"},
    ],
    ids=lambda f: f"{f['kind']} {f.get('status', '')} {f['when']}",
)
@pytest.mark.parametrize("command", ["Restart", "Stop", "Update"])
async def test_a_lost_answer_ends_it_and_nothing_is_repeated(
    rig: CommandRig, command: str, fault: dict[str, Any]
) -> None:
    rig.order(sessionID=await rig.online(), command=command)
    rig.faults({**fault, "method": "POST", "count": 1})

    await rig.settle()

    assert (rig.reason(), len(rig.posts)) == ("OutcomeUnknown", 1)
    assert "it may have been carried out" in rig.message()
    assert rig.told[0].startswith("!CommandFailed: ")


@pytest.mark.parametrize(
    ("status", "reason"), [(400, "CommandRefused"), (403, "PermissionDenied"), (405, "OperationUnsupported")]
)
async def test_a_refusal_ends_it(rig: CommandRig, status: int, reason: str) -> None:
    rig.order(sessionID=await rig.online(), command="Stop")
    rig.faults({"kind": "status", "status": status, "method": "POST", "count": 1})

    await rig.settle()

    assert (rig.reason(), rig.posts) == (reason, [f"stop {status}"])


# The session that follows ---------------------------------------------------------------------------


async def test_a_successor_that_takes_its_time_is_waited_for(rig: CommandRig) -> None:
    session = await rig.online(reconnect_seconds=60)
    rig.order(sessionID=session, command="Restart")

    await rig.sleep(30)
    assert rig.reason() == "Progressing"
    await rig.settle()

    (after,) = await rig.sessions()
    assert (rig.reason(), rig.status()["successorID"]) == ("Completed", after["id"])


async def test_an_agent_that_does_not_come_back_has_no_known_successor(rig: CommandRig) -> None:
    rig.order(sessionID=await rig.online(reconnect_seconds=1000), command="Restart")

    await rig.settle()

    assert rig.reason() == "SuccessorUnknown"
    assert "successorID" not in rig.status()
    assert "completionTime" in rig.status()


async def test_a_lagging_list_delays_the_successor(rig: CommandRig) -> None:
    rig.order(sessionID=await rig.online(), command="Restart")
    rig.world.advance(100)
    rig.faults({"kind": "lag", "seconds": 20})

    await rig.settle()

    assert rig.reason() == "Completed"
    assert rig.status()["successorID"] == (await rig.sessions())[0]["id"]


async def test_other_agents_do_not_count(rig: CommandRig) -> None:
    """Of another address, system or credential, and those alike that were there before."""
    credential = await rig.credential()
    session = await rig.online(credential_id=credential)
    twin = await rig.online(credential_id=credential)
    rig.order(sessionID=session, command="Restart")
    rig.faults({"kind": "lag", "seconds": 5})
    rig.world.advance(10)
    await rig.sleep(0.5)
    await rig.online(credential_id=credential, ip="192.0.2.99")
    await rig.online(credential_id=credential, os="darwin")
    await rig.online()

    await rig.settle()

    assert rig.reason() == "Completed"
    assert rig.status()["successorID"] not in (session, twin)
    assert sorted(rig.status()["agent"]["alike"]) == sorted([session, twin])


async def test_of_two_that_fit_none_is_picked(rig: CommandRig) -> None:
    credential = await rig.credential()
    rig.wire.meanwhile = lambda: rig.online(credential_id=credential)
    rig.order(sessionID=await rig.online(credential_id=credential), command="Restart")

    await rig.settle()

    assert (rig.reason(), rig.posts) == ("SuccessorUnknown", ["restart 204"])
    assert "2 new sessions" in rig.message()


async def test_where_another_agent_alike_has_gone_too_none_is_picked(rig: CommandRig) -> None:
    """The new session may be the other's."""
    credential = await rig.credential()
    session, twin = [await rig.online(credential_id=credential) for _ in range(2)]
    rig.wire.meanwhile = lambda: rig.offline(twin)
    rig.order(sessionID=session, command="Restart")

    await rig.settle()

    assert rig.reason() == "SuccessorUnknown"
    assert "2 ended ones" in rig.message()


async def test_of_twins_that_restart_at_one_time_neither_successor_is_claimed_to_be_known(rig: CommandRig) -> None:
    credential = await rig.credential()
    twins = [await rig.online(credential_id=credential, reconnect_seconds=s) for s in (3, 6)]
    for name, session in zip("ab", twins, strict=True):
        rig.order(name, sessionID=session, command="Restart")

    await rig.settle()

    assert (rig.reason("a"), rig.reason("b")) == ("SuccessorUnknown", "SuccessorUnknown")
    assert sorted(rig.posts) == ["restart 204", "restart 204"]


async def test_twins_that_restart_one_after_the_other_have_their_own_successors(rig: CommandRig) -> None:
    credential = await rig.credential()
    twins = [await rig.online(credential_id=credential) for _ in range(2)]
    for name, session in zip("ab", twins, strict=True):
        rig.order(name, sessionID=session, command="Restart")
        await rig.settle()

    found = [rig.status(name)["successorID"] for name in "ab"]
    assert sorted(found) == sorted(s["id"] for s in await rig.sessions())


async def test_among_a_crowd_none_is_picked(rig: CommandRig) -> None:
    credential = await rig.credential()
    crowd = [await rig.online(credential_id=credential) for _ in range(commands.MOST_ALIKE + 1)]
    rig.order(sessionID=crowd[0], command="Restart")

    await rig.settle()

    assert rig.reason() == "SuccessorUnknown"
    assert "alike" not in rig.status()["agent"]
    assert "more than 50 agents" in rig.message()


async def test_without_lists_the_successor_stays_unknown_and_the_restart_counts(rig: CommandRig) -> None:
    rig.order(sessionID=await rig.online(), command="Restart")
    rig.faults({"kind": "status", "status": 503, "path": "^/tunnel_sessions$", "skip": 1})

    await rig.settle()

    assert (rig.reason(), rig.posts) == ("SuccessorUnknown", ["restart 204"])


async def test_a_spec_that_an_older_crd_let_in_is_refused(rig: CommandRig) -> None:
    rig.order(command="Restart")

    await rig.settle()

    assert (rig.reason(), rig.posts) == ("InvalidSpec", [])
    assert "set exactly one of sessionID, sessionRef" in rig.message()
