"""TunnelSession is an online agent as the service lists it; the operator makes and removes it, people only look.

It lives in the operator's own namespace, and only where `--mirror-sessions` is on.
"""

from __future__ import annotations

from typing import Annotated

from edge_operator.declare import Column, Companion, Immutable, Local, Part, RemoteID
from edge_operator.statuses import Conditioned


class Spec(Part):
    """Which session it mirrors. Written by the operator."""

    session_id: Annotated[RemoteID, Local(), Immutable()]
    """Id of the session."""


class Credential(Part):
    """The credential that a session was started with."""

    id: str | None = None
    """Id of the credential."""
    uri: str | None = None
    """Address of the credential."""


class Status(Conditioned):
    """The session as the service last showed it. Source: API document, TunnelSession."""

    id: str | None = None
    """Id of the session."""
    uri: str | None = None
    """Address of the session."""
    agent_version: str | None = None
    """Version of the agent that started the session."""
    credential: Credential | None = None
    """The tunnel credential or SSH credential used to start the session."""
    ip: str | None = None
    """Source IP address of the session."""
    metadata: str | None = None
    """User-defined data from the agent's configuration."""
    os: str | None = None
    """Operating system of the agent's host."""
    region: str | None = None
    """Region where the session started."""
    started_at: str | None = None
    """When the session first connected."""
    transport: str | None = None
    """Transport protocol: the service's own, or ssh."""


KIND = Companion(
    name="TunnelSession",
    spec=Spec,
    status=Status,
    mirror=True,
    short=("tsn",),
    columns=(
        Column("ID", ".status.id"),
        Column("IP", ".status.ip"),
        Column("OS", ".status.os"),
        Column("Version", ".status.agentVersion"),
        Column("Region", ".status.region"),
        Column("Started", ".status.startedAt"),
    ),
    example="""
    sessionID: ts_0ujsszwN8NRY24YaXiTIE2VWDTS
    """,
)
