"""Decides what is next for an order to an agent: send, wait, look for the session that follows, end, remove.

At most once: what is about to be sent is recorded first, and what is recorded without an answer is never sent again.
Source: API document, Agent command rules.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from edge_operator.declare import Body
from edge_operator.engine.reasons import Ready, Stalls
from edge_operator.engine.state import parsed, stamp

SETTLING_SECONDS = 10.0
"""Source: API document, Limits: wait between agent update and restart."""
SEEKING_SECONDS = 120.0
"""How long after a restart the session that follows is looked for."""
MOST_ALIKE = 50
"""Among more sessions alike than this, none is picked."""
Status = Mapping[str, Any]

_REFUSALS = {
    "UPDATE_UNAVAILABLE": Stalls.UPDATE_UNAVAILABLE,
    "UPDATE_DISABLED": Stalls.UPDATE_DISABLED,
    "UPDATE_IN_PROGRESS": Stalls.UPDATE_IN_PROGRESS,
    "UPDATE_PENDING_RESTART": Stalls.UPDATE_PENDING_RESTART,
    "RESTART_UNSUPPORTED": Stalls.RESTART_UNSUPPORTED,
}


def refusal(code: str | None) -> Stalls | None:
    """The reason that an error code names, whatever its prefix; None for a code that says nothing of commands.

    Assumed: the API document lists the failures and gives them no codes.
    """
    return next((reason for word, reason in _REFUSALS.items() if code and code.endswith(word)), None)


@dataclass(frozen=True)
class Order:
    """What a user wants, from the spec."""

    command: str
    restart_after_update: bool = False
    ttl_seconds: int | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """What is sent, in this order."""
        return (self.command, "Restart") if self.restart_after_update else (self.command,)


# How a POST ended, as the process that sent it remembers it ----------------------------------------


@dataclass(frozen=True)
class Accepted:
    """The service took it."""

    at: datetime


@dataclass(frozen=True)
class Unsent:
    """It surely did not arrive, so that it may be sent again."""


@dataclass(frozen=True)
class Refused:
    """The service said no."""

    reason: Stalls
    message: str


@dataclass(frozen=True)
class Lost:
    """It may have arrived."""

    message: str


Answer = Accepted | Unsent | Refused | Lost


# What is next -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Send:
    """Record that this is about to be sent, and send it."""

    word: str


@dataclass(frozen=True)
class Pause:
    """Look again after so many seconds."""

    seconds: float
    message: str


@dataclass(frozen=True)
class Seek:
    """Look for the session that follows."""

    word: str


@dataclass(frozen=True)
class End:
    """The order has ended, well or not."""

    reason: Ready | Stalls
    message: str
    successor: str | None = None


@dataclass(frozen=True)
class Keep:
    """Nothing more is to be done, for so many seconds or, with None, ever."""

    seconds: float | None


@dataclass(frozen=True)
class Remove:
    """Its time after the end is over."""


Step = Send | Pause | Seek | End | Keep | Remove


def next_step(
    order: Order, status: Status, answers: Mapping[str, Answer], now: datetime, settled_seconds: float
) -> Step:
    """What is next. `status` is as recorded, without what `answered` adds; `answers` are this process's own, by nonce.

    `settled_seconds`: how long ago the last update of the session's agent was accepted.
    """
    if ended := status.get("completionTime"):
        return _afterwards(order, parsed(ended), now)
    sent = {entry["command"]: entry for entry in answered(status, answers).get("sent") or ()}
    for word in order.words:
        entry = sent.get(word)
        if entry is None:
            if word == "Restart" and settled_seconds < SETTLING_SECONDS:
                text = "the agent has updated itself; it is restarted ten seconds later at the earliest"
                return Pause(SETTLING_SECONDS - settled_seconds, text)
            return Send(word)
        if "acceptedAt" not in entry:
            return _failed(word, answers.get(entry.get("nonce", "")))
    last = order.words[-1]
    where = status.get("sessionID")
    return Seek(last) if last == "Restart" else End(Ready.COMPLETED, f"the service accepted {last.lower()} of {where}")


def _failed(word: str, answer: Answer | None) -> End:
    match answer:
        case Refused(reason, message):
            return End(reason, message)
        case Lost(message):
            return End(Stalls.OUTCOME_UNKNOWN, f"{word.lower()}: {message}; it may have been carried out")
        case _:
            text = "the operator was interrupted before the answer; it may have been carried out"
            return End(Stalls.OUTCOME_UNKNOWN, f"{word.lower()}: {text}")


def _afterwards(order: Order, ended: datetime, now: datetime) -> Step:
    if order.ttl_seconds is None:
        return Keep(None)
    left = order.ttl_seconds - (now - ended).total_seconds()
    return Keep(left) if left > 0 else Remove()


# What is recorded ---------------------------------------------------------------------------------


def marked(status: Status, word: str, nonce: str, now: datetime, **more: Any) -> dict[str, Any]:
    """The status that says that a command is about to be sent."""
    others = [entry for entry in status.get("sent") or () if entry["command"] != word]
    found = {**status, **more, "sent": [*others, {"command": word, "nonce": nonce, "sentAt": stamp(now)}]}
    return {"startTime": stamp(now), **found}


def answered(status: Status, answers: Mapping[str, Answer]) -> dict[str, Any]:
    """The status with what is known of the answers: what was accepted, and without what was not sent after all."""
    entries = []
    for entry in status.get("sent") or ():
        match answers.get(entry.get("nonce", "")) if "acceptedAt" not in entry else None:
            case Accepted(at):
                entries.append({**entry, "acceptedAt": stamp(at)})
            case Unsent():
                continue
            case _:
                entries.append(entry)
    rest = {name: value for name, value in status.items() if name != "sent"}
    return {**rest, **({"sent": entries} if entries else {})}


def accepted_at(status: Status, word: str) -> datetime | None:
    """When the service accepted a command; None where it has not."""
    found = next((e.get("acceptedAt") for e in status.get("sent") or () if e["command"] == word), None)
    return None if found is None else parsed(found)


# The session that follows -------------------------------------------------------------------------


def agent(session: Body, online: Sequence[Body]) -> dict[str, Any]:
    """What is recorded of an agent before its restart: what it is recognised by, and who else looks like it."""
    facts = _facts(session)
    alike = sorted({session["id"], *(other["id"] for other in online if _facts(other) == facts)})
    found = {name: value for name, value in facts.items() if value is not None}
    return {**found, **({"alike": alike} if len(alike) <= MOST_ALIKE else {})}


def same_agent(one: Status | None, other: Status | None) -> bool:
    """Whether two recorded agents cannot be told apart."""
    names = ("credentialID", "ip", "os")
    return one is not None and other is not None and all(one.get(name) == other.get(name) for name in names)


def successor(status: Status, online: Collection[Body], others: Collection[Status]) -> End | None:
    """The end of an order whose agent came back, or None where nothing can be said yet. `others` are all other orders.

    What another order's agent came back with is not this one's. Where another restarted an agent that looks alike, and
    it is not known as what that came back, the new session may be that one's.
    """
    before, old = status.get("agent") or {}, status["sessionID"]
    if "alike" not in before:
        return _unclear(f"more than {MOST_ALIKE} agents have the same credential, ip and os")
    present = {session["id"] for session in online if same_agent(_facts(session), before)}
    taken = {other["successorID"] for other in others if "successorID" in other}
    new = sorted(present - {*before["alike"]} - taken)
    gone = {*before["alike"]} - present
    if old in present or not new:
        return None
    if len(new) > 1 or len(gone) > 1 or any(_rival(status, other) for other in others):
        return _unclear(f"{len(new)} new sessions and {len(gone)} ended ones have the same credential, ip and os")
    return End(Ready.COMPLETED, f"the agent of {old} came back as {new[0]}", successor=new[0])


def _rival(status: Status, other: Status) -> bool:
    """Whether another order's agent looks alike and may be the one that came back."""
    if "successorID" in other or not same_agent(status.get("agent"), other.get("agent")):
        return False
    ended = other.get("completionTime")
    sent = max(parsed(entry["sentAt"]) for entry in status["sent"])
    return ended is None or (sent - parsed(ended)).total_seconds() < SEEKING_SECONDS


def not_seen() -> End:
    """The end of an order whose agent was looked for long enough."""
    return _unclear(f"no session with the same credential, ip and os appeared in {SEEKING_SECONDS:g} seconds")


def _unclear(why: str) -> End:
    return End(Ready.SUCCESSOR_UNKNOWN, f"the service accepted restart; which session follows is not known: {why}")


def _facts(session: Body) -> dict[str, str | None]:
    credential = session.get("credential")
    credential = credential if isinstance(credential, Mapping) else {}
    return {"credentialID": credential.get("id"), "ip": session.get("ip"), "os": session.get("os")}
