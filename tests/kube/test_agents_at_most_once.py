"""What surely was not sent is tried again, and what may have been sent is not."""

from __future__ import annotations

from typing import Any

import pytest

from doubles.command_rig import EXAMPLE, NAMESPACE, CommandRig


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


@pytest.mark.fault("a stop between the mark of an order and its request")
async def test_an_order_that_a_stop_overtakes_is_sent_after_the_next_start(rig: CommandRig) -> None:
    rig.order(sessionID=await rig.online(), command="Stop")
    rig.effects.meddling[len(rig.effects.log) + 1] = rig.door.halt.begin

    await rig.sleep(2)
    assert (rig.door.halt.begun, rig.posts, rig.reason()) == (True, [], "Progressing")
    assert "sent" not in rig.status()
    await rig.restart()
    await rig.settle()

    assert (rig.reason(), rig.posts) == ("Completed", ["stop 204"])
