"""What is next for an order to an agent: tables of what is recorded, what is known, and what follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from edge_operator.engine import commands
from edge_operator.engine.commands import (
    Accepted,
    Answer,
    End,
    Keep,
    Lost,
    Order,
    Pause,
    Refused,
    Remove,
    Seek,
    Send,
    Unsent,
)
from edge_operator.engine.reasons import Ready, Stalls

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
EARLIER = "2026-01-01T11:59:00Z"
NEVER = float("inf")
BOTH = Order("Update", restart_after_update=True)


def sent(word: str, nonce: str = "n", accepted: str | None = None) -> dict[str, str]:
    entry = {"command": word, "nonce": nonce, "sentAt": EARLIER}
    return {**entry, "acceptedAt": accepted} if accepted else entry


def status(*entries: dict[str, str], **more: Any) -> dict[str, Any]:
    return {"sessionID": "ts_1", "sent": list(entries), **more}


@dataclass(frozen=True)
class Case:
    reason: str
    order: Order
    status: Mapping[str, Any]
    step: object
    answers: Mapping[str, Answer] = field(default_factory=dict)
    settled: float = NEVER

    def __str__(self) -> str:
        return self.reason


ACCEPTED = {"n": Accepted(NOW)}
INTERRUPTED = "the operator was interrupted before the answer; it may have been carried out"
CASES = [
    Case("nothing was done", Order("Stop"), {}, Send("Stop")),
    Case("nothing was done of two", BOTH, {}, Send("Update")),
    Case(
        "it was marked by a process that is gone",
        Order("Stop"),
        status(sent("Stop")),
        End(Stalls.OUTCOME_UNKNOWN, f"stop: {INTERRUPTED}"),
    ),
    Case(
        "it was marked by another process",
        Order("Stop"),
        status(sent("Stop", "theirs")),
        End(Stalls.OUTCOME_UNKNOWN, f"stop: {INTERRUPTED}"),
        {"n": Unsent()},
    ),
    Case(
        "it was marked by another process, and an earlier mark of ours was refused",
        Order("Stop"),
        status(sent("Stop", "theirs")),
        End(Stalls.OUTCOME_UNKNOWN, f"stop: {INTERRUPTED}"),
        {"n": Refused(Stalls.COMMAND_REFUSED, "no")},
    ),
    Case("it was marked and surely not sent", Order("Stop"), status(sent("Stop")), Send("Stop"), {"n": Unsent()}),
    Case(
        "it was refused",
        Order("Update"),
        status(sent("Update")),
        End(Stalls.UPDATE_DISABLED, "no"),
        {"n": Refused(Stalls.UPDATE_DISABLED, "no")},
    ),
    Case(
        "its answer was lost",
        Order("Update"),
        status(sent("Update")),
        End(Stalls.OUTCOME_UNKNOWN, "update: gone; it may have been carried out"),
        {"n": Lost("gone")},
    ),
    Case(
        "a stop was accepted",
        Order("Stop"),
        status(sent("Stop")),
        End(Ready.COMPLETED, "the service accepted stop of ts_1"),
        ACCEPTED,
    ),
    Case("a restart was accepted", Order("Restart"), status(sent("Restart")), Seek("Restart"), ACCEPTED),
    Case(
        "a restart was accepted, long ago", Order("Restart"), status(sent("Restart", accepted=EARLIER)), Seek("Restart")
    ),
    Case(
        "an update was accepted, alone",
        Order("Update"),
        status(sent("Update", accepted=EARLIER)),
        End(Ready.COMPLETED, "the service accepted update of ts_1"),
    ),
    Case(
        "an update was refused and a restart wanted",
        BOTH,
        status(sent("Update")),
        End(Stalls.UPDATE_UNAVAILABLE, "no"),
        {"n": Refused(Stalls.UPDATE_UNAVAILABLE, "no")},
    ),
    Case(
        "an update settles",
        BOTH,
        status(sent("Update", accepted=EARLIER)),
        Pause(7.5, "the agent has updated itself; it is restarted ten seconds later at the earliest"),
        {},
        2.5,
    ),
    Case("an update has settled", BOTH, status(sent("Update", accepted=EARLIER)), Send("Restart"), {}, 10.0),
    Case(
        "another order's update settles",
        Order("Restart"),
        {},
        Pause(1.0, "the agent has updated itself; it is restarted ten seconds later at the earliest"),
        {},
        9.0,
    ),
    Case("another order's update does not hold up a stop", Order("Stop"), {}, Send("Stop"), {}, 0.0),
    Case(
        "the restart after an update was marked by a process that is gone",
        BOTH,
        status(sent("Update", accepted=EARLIER), sent("Restart", "m")),
        End(Stalls.OUTCOME_UNKNOWN, f"restart: {INTERRUPTED}"),
    ),
    Case("it has ended and stays", Order("Stop"), status(completionTime=EARLIER), Keep(None)),
    Case(
        "it has ended a minute ago and goes after two",
        Order("Stop", ttl_seconds=120),
        status(completionTime=EARLIER),
        Keep(60.0),
    ),
    Case(
        "it has ended a minute ago and goes after one",
        Order("Stop", ttl_seconds=60),
        status(completionTime=EARLIER),
        Remove(),
    ),
    Case(
        "it has ended a minute ago and goes in a second",
        Order("Stop", ttl_seconds=61),
        status(completionTime=EARLIER),
        Keep(1.0),
    ),
    Case("it goes at once", Order("Stop", ttl_seconds=0), status(completionTime=EARLIER), Remove()),
    Case("it has ended without being sent", Order("Stop"), {"completionTime": EARLIER}, Keep(None), {"n": Unsent()}),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_next(case: Case) -> None:
    assert case.step == commands.next_step(case.order, case.status, case.answers, NOW, case.settled)


def test_a_mark_replaces_the_one_before_and_keeps_the_first_start() -> None:
    first = commands.marked({}, "Update", "a", NOW, sessionID="ts_1")
    later = commands.marked(first, "Restart", "b", NOW + timedelta(seconds=20))
    again = commands.marked(later, "Restart", "c", NOW + timedelta(seconds=30))

    assert [(e["command"], e["nonce"]) for e in again["sent"]] == [("Update", "a"), ("Restart", "c")]
    assert again["startTime"] == "2026-01-01T12:00:00Z"
    assert again["sessionID"] == "ts_1"


def test_what_was_accepted_is_recorded_and_what_was_not_sent_is_taken_back() -> None:
    before = status(sent("Update", "a"), sent("Restart", "b"))

    after = commands.answered(before, {"a": Accepted(NOW), "b": Unsent()})

    assert after == status(sent("Update", "a", accepted="2026-01-01T12:00:00Z"))
    assert commands.accepted_at(after, "Update") == NOW
    assert commands.accepted_at(after, "Restart") is None
    assert commands.answered(status(sent("Stop")), {"n": Unsent()}) == {"sessionID": "ts_1"}


@pytest.mark.parametrize("prefix", ["ERR_", "ERR_NGROK_", ""])
def test_codes_are_known_by_their_ends(prefix: str) -> None:
    words = {
        "UPDATE_UNAVAILABLE": Stalls.UPDATE_UNAVAILABLE,
        "UPDATE_DISABLED": Stalls.UPDATE_DISABLED,
        "UPDATE_IN_PROGRESS": Stalls.UPDATE_IN_PROGRESS,
        "UPDATE_PENDING_RESTART": Stalls.UPDATE_PENDING_RESTART,
        "RESTART_UNSUPPORTED": Stalls.RESTART_UNSUPPORTED,
    }
    assert words == {word: commands.refusal(f"{prefix}{word}") for word in words}
    assert commands.refusal(f"{prefix}INVALID_FIELD") is None
    assert commands.refusal(None) is None


# The session that follows ---------------------------------------------------------------------------


def session(id_: str, credential: str | None = "cr_1", ip: str = "192.0.2.1", os: str = "linux") -> dict[str, Any]:
    return {"id": id_, "credential": {"id": credential} if credential else None, "ip": ip, "os": os}


OLD, TWIN = session("ts_old"), session("ts_twin")


def restarted(*online: dict[str, Any], at: str = EARLIER, **more: Any) -> dict[str, Any]:
    entry = {"command": "Restart", "nonce": "n", "sentAt": at, "acceptedAt": at}
    return {"sessionID": "ts_old", "agent": commands.agent(OLD, [OLD, *online]), "sent": [entry], **more}


def rival(**more: Any) -> dict[str, Any]:
    entry = {"command": "Restart", "nonce": "m", "sentAt": EARLIER}
    return {"sessionID": "ts_twin", "agent": commands.agent(TWIN, [TWIN]), "sent": [entry], **more}


@dataclass(frozen=True)
class Sight:
    reason: str
    online: list[dict[str, Any]]
    found: str | None = None
    before: list[dict[str, Any]] = field(default_factory=list)
    others: list[dict[str, Any]] = field(default_factory=list)
    unclear: bool = False

    def __str__(self) -> str:
        return self.reason


NEW = session("ts_new")
SIGHTS = [
    Sight("nobody is there", []),
    Sight("the old one is still there", [OLD]),
    Sight("the old one is still there, and a new one", [OLD, NEW]),
    Sight("one new session fits", [NEW], "ts_new"),
    Sight("a twin was there before", [TWIN, NEW], "ts_new", before=[TWIN]),
    Sight("a twin alone is there", [TWIN], before=[TWIN]),
    Sight("a twin has gone too", [NEW], before=[TWIN], unclear=True),
    Sight("two are new", [NEW, TWIN], unclear=True),
    Sight("another credential", [session("ts_new", credential="cr_2")]),
    Sight("no credential", [session("ts_new", credential=None)]),
    Sight("another address", [session("ts_new", ip="192.0.2.2")]),
    Sight("another system", [session("ts_new", os="darwin")]),
    Sight("another's successor", [NEW], others=[rival(successorID="ts_new", completionTime=EARLIER)]),
    Sight("another's successor, and ours", [NEW, TWIN], "ts_new", others=[rival(successorID="ts_twin")]),
    Sight("another is being restarted", [NEW], others=[rival()], unclear=True),
    Sight(
        "another that is unlike is being restarted",
        [NEW],
        "ts_new",
        others=[{**rival(), "agent": commands.agent(session("ts_x", os="darwin"), [])}],
    ),
    Sight(
        "another has ended, and may come back yet",
        [NEW],
        unclear=True,
        others=[rival(completionTime="2026-01-01T11:58:00Z")],
    ),
    Sight(
        "another ended as long ago as one is looked for",
        [NEW],
        "ts_new",
        others=[rival(completionTime="2026-01-01T11:57:00Z")],
    ),
    Sight("another has ended long ago", [NEW], "ts_new", others=[rival(completionTime="2026-01-01T11:56:59Z")]),
    Sight("another was only stopped", [NEW], "ts_new", others=[{"sessionID": "ts_twin", "sent": []}]),
]


@pytest.mark.parametrize("sight", SIGHTS, ids=str)
def test_which_session_follows(sight: Sight) -> None:
    end = commands.successor(restarted(*sight.before), sight.online, sight.others)

    if sight.unclear:
        assert end is not None
        assert (end.reason, end.successor) == (Ready.SUCCESSOR_UNKNOWN, None)
    elif sight.found is None:
        assert end is None
    else:
        assert end == End(Ready.COMPLETED, f"the agent of ts_old came back as {sight.found}", sight.found)


def test_agents_that_cannot_be_told_apart_are_listed_up_to_a_limit() -> None:
    crowd = [session(f"ts_{number}") for number in range(commands.MOST_ALIKE)]

    few, many = commands.agent(OLD, [*crowd[1:]]), commands.agent(OLD, crowd)

    assert len(few["alike"]) == commands.MOST_ALIKE
    assert "alike" not in many
    assert many == {"credentialID": "cr_1", "ip": "192.0.2.1", "os": "linux"}
    end = commands.successor({"sessionID": "ts_old", "agent": many, "sent": []}, [NEW], [])
    assert end is not None
    assert end.reason is Ready.SUCCESSOR_UNKNOWN
