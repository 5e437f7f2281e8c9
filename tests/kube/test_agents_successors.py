"""The session that follows a restart: recorded where exactly one fits, and never a wrong one."""

from __future__ import annotations

import random

import pytest

from doubles.command_rig import CommandRig
from edge_operator.engine import commands


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


@pytest.mark.parametrize("seed", range(12))
async def test_a_successor_that_is_recorded_is_the_right_one(seed: int) -> None:
    """Twins of one credential, address and system, told apart by their metadata, restart at various times."""
    dice = random.Random(seed)
    async with CommandRig() as rig:
        credential = await rig.credential()
        twins = {}
        for name in "abcd":
            seconds = dice.choice([0, 0.4, 3, 9, 40])
            twins[name] = await rig.online(credential_id=credential, metadata=name, reconnect_seconds=seconds)
        for name, session in twins.items():
            rig.order(name, sessionID=session, command="Restart")
            await rig.sleep(dice.choice([0, 0.5, 2, 10, 60]))
        await rig.settle()

        online = {s["id"]: s["metadata"] for s in await rig.sessions()}
        for name in twins:
            found = rig.status(name).get("successorID")
            assert rig.reason(name) == ("Completed" if found else "SuccessorUnknown")
            assert found is None or online[found] == name
