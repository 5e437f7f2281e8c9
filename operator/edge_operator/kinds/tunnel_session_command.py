"""TunnelSessionCommand is a one-shot order to the agent behind an online session: restart, stop or update.

It is sent at most once: an answer that is lost ends the command as OutcomeUnknown, and nothing repeats it.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from annotated_types import Ge, Le

from edge_operator.declare import Column, Companion, Format, Local, ObjectName, Part, RemoteID, Rule, one_of
from edge_operator.policies import ConnectionRef
from edge_operator.statuses import Conditioned, MapBy, Time

Word = Literal["Restart", "Stop", "Update"]
SessionID = Annotated[
    RemoteID, Format("ts_[A-Za-z0-9_-]+", "should start with ts_ and go on with letters, digits, '_' or '-'")
]


class SessionRef(Part):
    """A TunnelSession by name."""

    name: ObjectName
    """Name of a TunnelSession in the operator's namespace."""


class Spec(Part):
    """An order. It cannot be changed; another order is another resource."""

    session_id: Annotated[SessionID | None, Local()] = None
    """Id of the session whose agent is to obey."""
    session_ref: Annotated[SessionRef | None, Local()] = None
    """The session as the operator mirrors it, in place of its id."""
    command: Annotated[Word, Local()]
    """What the agent is told: to replace its process (on a Unix), to exit, or to fetch a newer version of its major."""
    restart_after_update: Annotated[bool, Local()] = False
    """Restart the agent once it has updated itself, ten seconds later at the earliest; only with Update."""
    connection_ref: Annotated[ConnectionRef | None, Local()] = None
    """Connection whose account has the session; the default one when left out."""
    ttl_seconds_after_finished: Annotated[int | None, Ge(0), Le(2**31 - 1), Local()] = None
    """How long after its end this resource is deleted, in seconds; it stays when this is left out."""

    rules: ClassVar[tuple[Rule, ...]] = (
        one_of("session_id", "session_ref"),
        Rule(
            "!has(self.restartAfterUpdate) || !self.restartAfterUpdate || self.command == 'Update'",
            "restartAfterUpdate needs command: Update",
            lambda s: not s.restart_after_update or s.command == "Update",
        ),
        Rule(
            "self == oldSelf",
            "a command cannot be changed after creation; delete and create the resource instead",
            lambda _: True,  # one spec alone has nothing that it differs from
        ),
    )


class Sending(Part):
    """One command to the agent. Without acceptedAt its answer is not known."""

    command: Word
    """What the agent is told."""
    nonce: str
    """Tells one sending from another, whoever sent it."""
    sent_at: Time
    """When it was sent; written before it is sent."""
    accepted_at: Time | None = None
    """When the service accepted it."""


class Agent(Part):
    """What a session that follows is recognised by, as seen just before the restart."""

    credential_id: str | None = None
    """Id of the credential that the agent uses."""
    ip: str | None = None
    """Address that the agent connects from."""
    os: str | None = None
    """Operating system of the agent's host."""
    alike: list[str] | None = None
    """Ids of all sessions of such agents at that time; left out where they were too many to tell a new one."""


class Status(Conditioned):
    """How far the order is."""

    session_id: str | None = None
    """Id of the session that the order is for."""
    start_time: Time | None = None
    """When the first command was about to be sent."""
    sent: Annotated[list[Sending] | None, MapBy("command")] = None
    """What was sent, each at most once."""
    agent: Agent | None = None
    """The agent before its restart."""
    successor_id: str | None = None
    """Id of the session that the agent came back with; left out where that cannot be told."""
    completion_time: Time | None = None
    """When the order ended, well or not."""


KIND = Companion(
    name="TunnelSessionCommand",
    spec=Spec,
    status=Status,
    short=("tsc",),
    columns=(
        Column("Command", ".spec.command"),
        Column("Session", ".status.sessionID"),
        Column("Successor", ".status.successorID"),
    ),
    example="""
    sessionID: ts_0ujsszwN8NRY24YaXiTIE2VWDTS
    command: Restart
    ttlSecondsAfterFinished: 86400
    """,
)
