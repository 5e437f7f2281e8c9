"""The mirror of online sessions: what is there, what is written, and when."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest

from doubles.apiserver import Object
from doubles.command_rig import OPERATORS, CommandRig
from doubles.effects import Died, Fate
from edge_operator.door import NotLeading
from edge_operator.engine.operations import Waiting
from edge_operator.engine.reasons import Waits
from edge_operator.kinds import COMPANIONS
from edge_operator.kube import errors, metrics, sessions
from edge_operator.kube.sessions import CONNECTION, DEFAULT, SessionMirror
from edge_operator.remote import Listing, ManagementAPI

KIND = COMPANIONS["TunnelSession"]


class Enough(BaseException):
    """Ends a loop that has no end."""


def mirror(rig: CommandRig, *connections: str, sleeps: int = 0) -> SessionMirror:
    """A mirror of these connections, all of them to one account; without any, of the default one."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        rig.world.advance(seconds)
        if len(slept) > sleeps:
            raise Enough

    def accounts() -> Iterable[tuple[str, ManagementAPI]]:
        return [(name, rig.remote) for name in connections or (DEFAULT,)]

    return SessionMirror(
        rig.kube,
        OPERATORS,
        accounts,
        rig.clock,
        interval_seconds=60,
        may_look=lambda: rig.leads,
        may_write=rig._may_write,
        sleep=sleep,
    )


def off(rig: CommandRig) -> SessionMirror:
    found = mirror(rig)
    found._accounts = list
    return found


def mirrored(rig: CommandRig) -> dict[str, Object]:
    """The TunnelSessions of the cluster by the id of their session."""
    return {found["spec"]["sessionID"]: found for found in rig.api.of(KIND.name)}


def lists(rig: CommandRig) -> int:
    """How often the first page of sessions was asked for."""
    return [e["path"] for e in rig.app.journal.entries()].count("/tunnel_sessions")


async def test_every_member_of_a_session_is_shown(rig: CommandRig) -> None:
    credential = await rig.credential()
    session = await rig.online(credential_id=credential, os="darwin", metadata="mine", region="eu", ip="192.0.2.7")

    await mirror(rig).round()

    found = mirrored(rig)[session]
    (said,) = found["status"].pop("conditions")
    assert (said["type"], said["status"], said["reason"]) == ("Ready", "True", "Online")
    assert found["status"] == {
        "observedGeneration": 1,
        "id": session,
        "uri": f"https://api.test/tunnel_sessions/{session}",
        "agentVersion": "3.1.0",
        "credential": {"id": credential, "uri": f"https://api.test/credentials/{credential}"},
        "ip": "192.0.2.7",
        "metadata": "mine",
        "os": "darwin",
        "region": "eu",
        "startedAt": "2026-01-01T00:00:00Z",
        "transport": "service/v2",
    }
    assert found["metadata"]["namespace"] == OPERATORS
    assert found["metadata"]["labels"] == {CONNECTION: DEFAULT}


async def test_nothing_is_written_while_nothing_changes(rig: CommandRig) -> None:
    for number in range(7):
        await rig.online(metadata=str(number))
    await mirror(rig).round()
    assert (len(mirrored(rig)), len(rig.kube.writes)) == (7, 14)
    before = lists(rig)

    for _ in range(3):
        rig.world.advance(60)
        await mirror(rig).round()

    assert len(rig.kube.writes) == 14
    assert lists(rig) - before == 3 * 3, "7 sessions in pages of 3 are three pages a round"


async def test_a_restarted_agent_is_mirrored_under_its_new_session(rig: CommandRig) -> None:
    session = await rig.online()
    await mirror(rig).round()
    rig.order(sessionID=session, command="Restart")
    await rig.settle()

    await mirror(rig).round()

    assert list(mirrored(rig)) == [rig.status()["successorID"]] != [session]


async def test_an_agent_that_is_mirrored_can_be_ordered_by_the_mirrors_name(rig: CommandRig) -> None:
    session = await rig.online()
    await mirror(rig).round()
    rig.order(sessionRef={"name": mirrored(rig)[session]["metadata"]["name"]}, command="Stop")
    await rig.settle()

    await mirror(rig).round()

    assert (rig.reason(), mirrored(rig)) == ("Completed", {})


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 503])
async def test_nothing_goes_while_the_service_refuses_or_does_not_answer(rig: CommandRig, status: int) -> None:
    for number in range(5):
        await rig.online(metadata=str(number))
    await mirror(rig).round()
    for skip in (0, 1):  # the first page, or one in the middle
        rig.faults({"kind": "status", "status": status, "path": "^/tunnel_sessions", "skip": skip})
        rig.world.advance(400)
        await mirror(rig).round()

    assert len(mirrored(rig)) == 5
    assert len(rig.kube.writes) == 10


async def test_of_two_connections_the_one_that_is_silent_keeps_its_sessions(rig: CommandRig) -> None:
    session = await rig.online()
    await mirror(rig, "one", "two").round()
    assert sorted(o["metadata"]["labels"][CONNECTION] for o in rig.api.of(KIND.name)) == ["one", "two"]
    await rig.offline(session)

    silent = mirror(rig)
    silent._accounts = lambda: [("one", rig.remote), ("two", _Silent())]
    rig.world.advance(60)
    await silent.round()

    assert [o["metadata"]["labels"][CONNECTION] for o in rig.api.of(KIND.name)] == ["two"]


class _Silent:
    async def listing(self, collection: Any, since: float) -> Any:
        del collection, since
        raise Waiting(Waits.SERVICE_UNAVAILABLE, "the service does not answer")


class _Odd:
    """An account whose sessions hold this."""

    def __init__(self, **members: Any) -> None:
        self.members = members

    async def listing(self, collection: Any, since: float) -> Any:
        del collection
        good, odd = {"id": "ts_good", "ip": "192.0.2.1"}, {"id": "ts_odd", "ip": "192.0.2.2", **self.members}
        return Listing(since, {"ts_odd": odd, "ts_good": good}, {})


@pytest.mark.fault("sessions with members of another type")
@pytest.mark.parametrize("value", [None, 7, ["x"], {"id": 7}, {"uri": ["x"]}, "x"])
async def test_a_member_that_is_no_text_is_as_absent(rig: CommandRig, value: Any) -> None:
    one = mirror(rig)
    one._accounts = lambda: [(DEFAULT, _Odd(credential=value, region=7, started_at=5, os=None, metadata=["x"]))]

    await one.round()

    found = {id_: status(item) for id_, item in mirrored(rig).items()}
    assert found == {"ts_odd": {"id": "ts_odd", "ip": "192.0.2.2"}, "ts_good": {"id": "ts_good", "ip": "192.0.2.1"}}


def status(item: Object) -> Object:
    return {k: v for k, v in item["status"].items() if k not in ("conditions", "observedGeneration")}


async def test_a_defect_in_a_round_does_not_end_the_mirror(rig: CommandRig, caplog: pytest.LogCaptureFixture) -> None:
    session = await rig.online()
    one = mirror(rig, sleeps=1)
    whole, left = one._accounts, [KeyError("canary-secret")]
    one._accounts = lambda: _raised(left.pop()) if left else whole()
    before = defects()

    with pytest.raises(Enough):
        await one.run()

    assert list(mirrored(rig)) == [session]
    assert defects() == before + 1
    assert "a defect of the operator: KeyError at test_sessions.py" in caplog.text
    assert "canary-secret" not in caplog.text


def _raised(error: Exception) -> Any:
    raise error


def defects() -> float:
    return metrics.METRICS.registry.get_sample_value("edge_operator_defects_total", {"where": "sessions"}) or 0.0


async def test_what_somebody_else_wrote_is_set_right(rig: CommandRig) -> None:
    session = await rig.online()
    await mirror(rig).round()
    name = mirrored(rig)[session]["metadata"]["name"]
    rig.api.patch_status((KIND.name, OPERATORS, name), None, {"ip": "203.0.113.1", "region": None}, "user")
    rig.api.apply((KIND.name, OPERATORS, "by-hand"), {"spec": {"sessionID": "ts_invented"}})

    rig.world.advance(60)
    await mirror(rig).round()

    assert list(mirrored(rig)) == [session]
    status = mirrored(rig)[session]["status"]
    assert (status["ip"], status["region"]) == ("192.0.2.10", "us")


async def test_a_mirror_that_names_another_connection_is_made_anew(rig: CommandRig) -> None:
    session = await rig.online()
    await mirror(rig).round()
    before = mirrored(rig)[session]["metadata"]
    rig.api.apply((KIND.name, OPERATORS, before["name"]), {"metadata": {"labels": {CONNECTION: "other"}}})

    for _ in range(2):
        rig.world.advance(60)
        await mirror(rig).round()

    after = mirrored(rig)[session]["metadata"]
    assert (after["labels"], after["name"]) == ({CONNECTION: DEFAULT}, before["name"])
    assert after["uid"] != before["uid"]


@pytest.mark.parametrize("fate", [Fate.DIE_BEFORE, Fate.DIE_AFTER, Fate.CONFLICT, Fate.LOST_WRITE])
@pytest.mark.parametrize("number", range(1, 5))
async def test_the_next_round_mends_what_was_interrupted(rig: CommandRig, number: int, fate: Fate) -> None:
    """Of a round that removes one session and mirrors another: two writes to begin with, three after them."""
    gone = await rig.online(metadata="first")
    first = mirror(rig)
    rig.effects.fates = {number: fate}
    for _ in range(2):
        try:
            await first.round()
        except (Died, errors.KubeError):
            rig.world.advance(60)
    await rig.offline(gone)
    left = await rig.online(metadata="second")
    for _ in range(3):
        rig.world.advance(60)
        try:
            await mirror(rig).round()
        except (Died, errors.KubeError):
            continue

    assert rig.effects.met == [(number, fate)]
    assert list(mirrored(rig)) == [left]
    assert mirrored(rig)[left]["status"]["metadata"] == "second"


async def test_who_does_not_lead_looks_at_nothing_and_writes_nothing(rig: CommandRig) -> None:
    await rig.online()
    rig.leads = False

    with pytest.raises(Enough):
        await mirror(rig, sleeps=5).run()

    assert (lists(rig), rig.kube.writes) == (0, [])
    with pytest.raises(NotLeading):
        await mirror(rig).round()
    assert rig.kube.writes == []


async def test_who_stops_asks_no_more_and_goes_on_waiting(rig: CommandRig) -> None:
    rig.door.halt.begin()

    with pytest.raises(Enough):
        await mirror(rig, sleeps=5).run()

    assert lists(rig) == 0


async def test_the_service_is_asked_once_an_interval(rig: CommandRig) -> None:
    await rig.online()
    began = rig.world.elapsed

    with pytest.raises(Enough):
        await mirror(rig, sleeps=9).run()

    assert lists(rig) == 10
    assert 10 * 54 <= rig.world.elapsed - began <= 10 * 66


async def test_a_round_that_fails_does_not_end_the_mirror(rig: CommandRig) -> None:
    session = await rig.online()
    rig.effects.fates = {1: Fate.LOST_WRITE}

    with pytest.raises(Enough):
        await mirror(rig, sleeps=1).run()

    assert mirrored(rig)[session]["status"]["id"] == session


async def test_switched_off_what_was_mirrored_goes(rig: CommandRig) -> None:
    await rig.online()
    await mirror(rig).round()
    rig.world.advance(60)

    await off(rig).round()

    assert (mirrored(rig), lists(rig)) == ({}, 1)


async def test_the_transport_is_spelled_as_everywhere_whatever_the_service_says() -> None:
    async with CommandRig("ngrok") as rig:
        session = await rig.online(transport="service/v2")
        await mirror(rig).round()

        assert mirrored(rig)[session]["status"]["transport"] == "service/v2"


@pytest.mark.parametrize("session", ["ts_0ujsszwN8NRY24YaXiTIE2VWDTS", "ts_", "__", "A" * 128, "ts_ä/.."])
def test_a_name_is_one_that_kubernetes_takes(session: str) -> None:
    """Source: Kubernetes, Object names and ids, DNS subdomain names."""
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", sessions.name(DEFAULT, session))
    assert len(sessions.name(DEFAULT, session)) <= 253


def test_ids_that_differ_in_case_alone_and_connections_have_names_of_their_own() -> None:
    names = {sessions.name(c, s) for c in ("one", "two") for s in ("ts_a", "ts_A")}

    assert len(names) == 4
    assert sessions.name(DEFAULT, "ts_0ujsszwN8NRY").startswith("ts-0ujsszwn8nry-")
