"""Tunnel sessions and agent ingresses. Source: API document, TunnelSession, AgentIngress."""

from __future__ import annotations

from edge_operator.api.wire import Described, Entity, Ref, Timestamp, Wire


class TunnelSession(Wire):
    """An online agent."""

    id: str
    uri: str = ""
    agent_version: str = ""
    """Version of the agent that started the session."""
    credential: Ref | None = None
    """The credential that started the session."""
    ip: str = ""
    """Address that the session comes from."""
    metadata: str = ""
    """Data from the agent's configuration."""
    os: str = ""
    """Operating system of the agent's host."""
    region: str = ""
    """Region where the session started."""
    started_at: Timestamp | None = None
    """When the session first connected, in RFC 3339."""
    transport: str = ""
    """Protocol of the session: the service's own or ssh."""


class AgentIngress(Entity):
    """A base domain that agents connect through."""

    domain: str = ""
    ns_targets: list[str] = []
    """Values for NS records of the domain, which delegate it to the service."""
    region_domains: list[str] = []
    """Regional ingress domains below the domain; they may grow as regions are added."""


class AgentIngressCreate(Described):
    """`domain` is a domain that the caller owns."""

    domain: str | None = None


class AgentIngressUpdate(Described):
    """What can change of an ingress."""
