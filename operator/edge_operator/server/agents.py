"""Simulated agents: they come online, obey commands as the document says, and come back under a new session id.

Source: API document, Agent command rules, TunnelSession. Assumed: a restart sooner than ten seconds after an update
starts the old version again, which is why the document asks callers to wait.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from edge_operator.server import problems
from edge_operator.server.ids import Ids
from edge_operator.server.problems import Problem
from edge_operator.server.store import Stored, Transaction
from edge_operator.server.world import timestamp

KIND: Final = "tunnel_sessions"
_AWAY: Final = "reconnecting_agents"
_PREFIX: Final = "ts_"
_NOT_UNIX: Final = ("windows", "plan9", "js", "wasip1")
_SETTLING_SECONDS: Final = 10.0
"""Source: API document, Limits: wait between agent update and restart."""
_MOST_SESSIONS: Final = 100_000


class Agent(BaseModel):
    """An agent as `/_control/agents` takes it. What is left out has a likely value."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    credential_id: str | None = None
    """The tunnel credential that starts the session; None for one that is not in this account's list."""
    token: Annotated[str | None, Field(repr=False)] = None
    """The credential's token, in place of its id: it must be one that is valid."""
    agent_version: str = "3.1.0"
    releases: tuple[str, ...] = ("3.2.0", "4.0.0")
    """Versions that the agent may find when it looks for an update."""
    update_checks: bool = True
    updating: bool = False
    """True holds the agent in the middle of an update."""
    update_seconds: Annotated[float, Field(ge=0)] = 0.0
    """How long an update takes."""
    reconnect_seconds: Annotated[float, Field(ge=0)] = 0.0
    """How long the agent is away in a restart."""
    ip: str = "192.0.2.10"
    metadata: str = ""
    os: str = "linux"
    region: str = "us"
    transport: str = "service/v2"


class AgentChange(BaseModel):
    """What can be changed of an agent that is online."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    releases: tuple[str, ...] | None = None
    update_checks: bool | None = None
    updating: bool | None = None
    update_seconds: Annotated[float, Field(ge=0)] | None = None
    reconnect_seconds: Annotated[float, Field(ge=0)] | None = None


_HIDDEN: Final = tuple(AgentChange.model_fields)


def connect(tx: Transaction, ids: Ids, now: datetime, agent: Agent, credential_id: str) -> Stored:
    """The new session of an agent that comes online."""
    values = agent.model_dump(mode="json", exclude={"token", "credential_id"})
    hidden = {name: values.pop(name) for name in _HIDDEN}
    return _start(tx, ids, now, {**values, "credential": credential_id}, hidden)


def change(tx: Transaction, session: Stored, changes: AgentChange) -> Stored:
    hidden = {**(session.hidden or {}), **changes.model_dump(mode="json", exclude_none=True)}
    changed = Stored(session.id, session.kind, session.doc, hidden)
    tx.replace(changed)
    return changed


def overdue(tx: Transaction, now: datetime) -> list[Stored]:
    """Agents in a restart that should be back by now."""
    return [away for away in tx.page(_AWAY, None, _MOST_SESSIONS) if (away.hidden or {})["back_at"] <= now.timestamp()]


def come_back(tx: Transaction, ids: Ids, now: datetime) -> None:
    """Gives each agent that is back its new session."""
    for away in reversed(overdue(tx, now)):
        tx.delete(away.id)
        hidden = {name: value for name, value in (away.hidden or {}).items() if name != "back_at"}
        _start(tx, ids, now, away.doc, hidden)


def obey(tx: Transaction, ids: Ids, now: datetime, session: Stored, command: str) -> None:
    """Carries out `restart`, `stop` or `update`.

    Raises:
        Problem: one of the documented failures.
    """
    match command:
        case "stop":
            tx.delete(session.id)
        case "restart":
            _restart(tx, ids, now, session)
        case _:
            _update(tx, now, session)


def _start(tx: Transaction, ids: Ids, now: datetime, doc: dict[str, Any], hidden: dict[str, Any]) -> Stored:
    identifier = ids.new(_PREFIX)
    session = Stored(identifier, KIND, {**doc, "id": identifier, "started_at": timestamp(now)}, hidden)
    tx.insert(session)
    return session


def _restart(tx: Transaction, ids: Ids, now: datetime, session: Stored) -> None:
    doc, hidden = dict(session.doc), dict(session.hidden or {})
    if doc["os"].lower().startswith(_NOT_UNIX):
        raise Problem(problems.RESTART_UNSUPPORTED, f"{session.id}: an agent on {doc['os']} cannot restart itself")
    updated = hidden.pop("updated", None)
    if updated and now.timestamp() >= updated["at"] + _SETTLING_SECONDS:
        doc["agent_version"] = updated["version"]
    tx.delete(session.id)
    if not hidden["reconnect_seconds"]:
        _start(tx, ids, now, doc, hidden)
        return
    back_at = now.timestamp() + hidden["reconnect_seconds"]
    tx.insert(Stored(ids.new("away_"), _AWAY, doc, {**hidden, "back_at": back_at}))


def _update(tx: Transaction, now: datetime, session: Stored) -> None:
    hidden = dict(session.hidden or {})
    updated = hidden.get("updated")
    if not hidden["update_checks"]:
        raise Problem(problems.UPDATE_DISABLED, f"{session.id}: the agent's configuration disables update checks")
    if hidden["updating"] or (updated and now.timestamp() < updated["at"]):
        raise Problem(problems.UPDATE_IN_PROGRESS, f"{session.id}: the agent is updating")
    if updated:
        text = f"{session.id}: the agent has updated to {updated['version']} and was not restarted since"
        raise Problem(problems.UPDATE_PENDING_RESTART, text)
    current = _version(session.doc["agent_version"])
    newer = [r for r in hidden["releases"] if _version(r)[:1] == current[:1] and _version(r) > current]
    if not newer:
        text = f"{session.id}: no update within the major version of {session.doc['agent_version']} is available"
        raise Problem(problems.UPDATE_UNAVAILABLE, text)
    done_at = now.timestamp() + hidden["update_seconds"]
    hidden["updated"] = {"version": max(newer, key=_version), "at": done_at}
    tx.replace(Stored(session.id, session.kind, session.doc, hidden))


def _version(text: str) -> tuple[int, ...]:
    """`3.10.1` as (3, 10, 1)."""
    return tuple(int(number) for number in re.findall(r"\d+", text))
