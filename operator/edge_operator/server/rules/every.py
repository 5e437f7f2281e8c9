"""All rules, by the catalog's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from edge_operator.server.rules import access, agents, backends, edges, events, ssh, tls
from edge_operator.server.rules.rule import Rules

RULES: Final[Mapping[str, Rules]] = {
    "api_keys": access.API_KEYS,
    "credentials": access.CREDENTIALS,
    "tunnel_sessions": agents.SESSIONS,
    "agent_ingresses": agents.INGRESSES,
    "ssh_certificate_authorities": ssh.AUTHORITIES,
    "ssh_user_certificates": ssh.USER_CERTIFICATES,
    "ssh_host_certificates": ssh.HOST_CERTIFICATES,
    "tls_certificates": tls.TLS_CERTIFICATES,
    "weighted_backends": backends.WEIGHTED,
    "failover_backends": backends.FAILOVER,
    "tcp_edges": edges.TCP,
    "tls_edges": edges.TLS,
    "https_edges": edges.HTTPS,
    "https_routes": edges.ROUTES,
    "event_destinations": events.EVENT_DESTINATIONS,
}
