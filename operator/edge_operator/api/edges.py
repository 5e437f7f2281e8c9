"""TCP, TLS and HTTPS edges and HTTPS routes. Source: API document, TCPEdge and following."""

from __future__ import annotations

from typing import Literal

from edge_operator.api import modules as m
from edge_operator.api.wire import Described, Entity


class TCPEdge(Entity):
    hostports: list[str] = []
    backend: m.EndpointBackend | None = None
    ip_restriction: m.EndpointIPPolicy | None = None


class TCPEdgeCreate(Described):
    hostports: list[str] | None = None
    backend: m.EndpointBackendMutate | None = None
    ip_restriction: m.EndpointIPPolicyMutate | None = None


class TCPEdgeUpdate(TCPEdgeCreate):
    """A module that is left out stays; one that is present replaces the whole module."""


class TLSEdge(TCPEdge):
    mutual_tls: m.EndpointMutualTLS | None = None
    tls_termination: m.EndpointTLSTermination | None = None


class TLSEdgeCreate(TCPEdgeCreate):
    mutual_tls: m.EndpointMutualTLSMutate | None = None
    tls_termination: m.EndpointTLSTerminationMutate | None = None


class TLSEdgeUpdate(TLSEdgeCreate):
    """A module that is left out stays; one that is present replaces the whole module."""


class HTTPSRoute(Entity):
    edge_id: str = ""
    match_type: str = ""
    match: str = ""
    backend: m.EndpointBackend | None = None
    ip_restriction: m.EndpointIPPolicy | None = None
    circuit_breaker: m.EndpointCircuitBreaker | None = None
    compression: m.EndpointSwitch | None = None
    request_headers: m.EndpointHeaders | None = None
    response_headers: m.EndpointHeaders | None = None
    webhook_verification: m.EndpointWebhookValidation | None = None
    oauth: m.EndpointOAuth | None = None
    saml: m.EndpointSAML | None = None
    oidc: m.EndpointOIDC | None = None
    websocket_tcp_converter: m.EndpointSwitch | None = None


class HTTPSRouteCreate(Described):
    match_type: Literal["exact_path", "path_prefix"] | None = None
    match: str | None = None
    backend: m.EndpointBackendMutate | None = None
    ip_restriction: m.EndpointIPPolicyMutate | None = None
    circuit_breaker: m.EndpointCircuitBreakerMutate | None = None
    compression: m.EndpointSwitchMutate | None = None
    request_headers: m.EndpointHeadersMutate | None = None
    response_headers: m.EndpointHeadersMutate | None = None
    webhook_verification: m.EndpointWebhookValidationMutate | None = None
    oauth: m.EndpointOAuthMutate | None = None
    saml: m.EndpointSAMLMutate | None = None
    oidc: m.EndpointOIDCMutate | None = None
    websocket_tcp_converter: m.EndpointSwitchMutate | None = None


class HTTPSRouteUpdate(HTTPSRouteCreate):
    """Assumed: as for edges, a module left out stays and one that is present replaces the whole module."""


class HTTPSEdge(Entity):
    """Assumed: the fields of an HTTPS edge, its routes included (`[]` when it has none)."""

    hostports: list[str] = []
    mutual_tls: m.EndpointMutualTLS | None = None
    tls_termination: m.EndpointTLSTermination | None = None
    routes: list[HTTPSRoute] = []


class HTTPSEdgeCreate(Described):
    hostports: list[str] | None = None
    mutual_tls: m.EndpointMutualTLSMutate | None = None
    tls_termination: m.EndpointTLSTerminationMutate | None = None


class HTTPSEdgeUpdate(HTTPSEdgeCreate):
    """Assumed: as for the other edges."""
