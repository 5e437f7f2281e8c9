"""Every collection of the service, one entry each. Source: API document, Endpoints, Identifier prefixes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edge_operator.api import access, agents, backends, edges, events, ssh, tls
from edge_operator.api import modules as m
from edge_operator.api.wire import CRUD, Body, Collection, Module, Wire

_ALL = frozenset({"put", "get", "delete"})


def _modules(assumed: frozenset[str], **shapes: tuple[type[Wire], type[Body]]) -> Mapping[str, Module]:
    return {n: Module(segment=n, read=r, write=w, assumed=assumed) for n, (r, w) in shapes.items()}


_backend = (m.EndpointBackend, m.EndpointBackendMutate)
_ip_restriction = (m.EndpointIPPolicy, m.EndpointIPPolicyMutate)
_mutual_tls = (m.EndpointMutualTLS, m.EndpointMutualTLSMutate)
_tls_termination = (m.EndpointTLSTermination, m.EndpointTLSTerminationMutate)
_headers = (m.EndpointHeaders, m.EndpointHeadersMutate)
_switch = (m.EndpointSwitch, m.EndpointSwitchMutate)

api_keys = Collection(
    name="api_keys",
    path="/api_keys",
    items="keys",
    prefix="ak_",
    read=access.APIKey,
    create=access.APIKeyCreate,
    update=access.APIKeyUpdate,
)
credentials = Collection(
    name="credentials",
    path="/credentials",
    items="credentials",
    prefix="cr_",
    read=access.Credential,
    create=access.CredentialCreate,
    update=access.CredentialUpdate,
)
tunnel_sessions = Collection(
    name="tunnel_sessions",
    path="/tunnel_sessions",
    items="tunnel_sessions",
    prefix="ts_",
    read=agents.TunnelSession,
    verbs=frozenset({"get", "list"}),
    commands=("restart", "stop", "update"),
)
agent_ingresses = Collection(
    name="agent_ingresses",
    path="/agent_ingresses",
    items="ingresses",
    prefix="agin_",
    read=agents.AgentIngress,
    create=agents.AgentIngressCreate,
    update=agents.AgentIngressUpdate,
)
ssh_certificate_authorities = Collection(
    name="ssh_certificate_authorities",
    path="/ssh_certificate_authorities",
    items="ssh_certificate_authorities",
    prefix="sshca_",
    read=ssh.SSHCertificateAuthority,
    create=ssh.SSHCertificateAuthorityCreate,
    update=ssh.SSHCertificateAuthorityUpdate,
)
ssh_user_certificates = Collection(
    name="ssh_user_certificates",
    path="/ssh_user_certificates",
    items="ssh_user_certificates",
    prefix="sucrt_",
    read=ssh.SSHUserCertificate,
    create=ssh.SSHUserCertificateCreate,
    update=ssh.SSHUserCertificateUpdate,
    assumed=frozenset({"update"}),
)
ssh_host_certificates = Collection(
    name="ssh_host_certificates",
    path="/ssh_host_certificates",
    items="ssh_host_certificates",
    prefix="shcrt_",
    read=ssh.SSHHostCertificate,
    create=ssh.SSHHostCertificateCreate,
    update=ssh.SSHHostCertificateUpdate,
)
tls_certificates = Collection(
    name="tls_certificates",
    path="/tls_certificates",
    items="tls_certificates",
    prefix="cert_",
    read=tls.TLSCertificate,
    create=tls.TLSCertificateCreate,
    update=tls.TLSCertificateUpdate,
    assumed=frozenset({"update"}),
)
weighted_backends = Collection(
    name="weighted_backends",
    path="/backends/weighted",
    items="backends",
    prefix="bkdwd_",
    read=backends.WeightedBackend,
    create=backends.WeightedBackendCreate,
    update=backends.WeightedBackendUpdate,
)
failover_backends = Collection(
    name="failover_backends",
    path="/backends/failover",
    items="backends",
    prefix="bkdfo_",
    read=backends.FailoverBackend,
    create=backends.FailoverBackendCreate,
    update=backends.FailoverBackendUpdate,
)
tcp_edges = Collection(
    name="tcp_edges",
    path="/edges/tcp",
    items="tcp_edges",
    prefix="edgtcp_",
    read=edges.TCPEdge,
    create=edges.TCPEdgeCreate,
    update=edges.TCPEdgeUpdate,
    modules=_modules(_ALL, backend=_backend, ip_restriction=_ip_restriction),
)
tls_edges = Collection(
    name="tls_edges",
    path="/edges/tls",
    items="tls_edges",
    prefix="edgtls_",
    read=edges.TLSEdge,
    create=edges.TLSEdgeCreate,
    update=edges.TLSEdgeUpdate,
    assumed=frozenset({"delete"}),
    modules=_modules(
        _ALL,
        backend=_backend,
        ip_restriction=_ip_restriction,
        mutual_tls=_mutual_tls,
        tls_termination=_tls_termination,
    ),
)
https_edges = Collection(
    name="https_edges",
    path="/edges/https",
    items="https_edges",
    prefix="edghts_",
    read=edges.HTTPSEdge,
    create=edges.HTTPSEdgeCreate,
    update=edges.HTTPSEdgeUpdate,
    assumed=CRUD,
    modules={
        **_modules(frozenset(), mutual_tls=_mutual_tls),
        **_modules(_ALL, tls_termination=_tls_termination),
    },
)
https_routes = Collection(
    name="https_routes",
    path="/edges/https/{edge_id}/routes",
    items="routes",
    prefix="edghtsrt_",
    read=edges.HTTPSRoute,
    create=edges.HTTPSRouteCreate,
    update=edges.HTTPSRouteUpdate,
    verbs=frozenset({"create", "get", "update", "delete"}),
    assumed=frozenset({"get", "update", "delete"}),
    modules={
        **_modules(
            frozenset(),
            backend=_backend,
            ip_restriction=_ip_restriction,
            circuit_breaker=(m.EndpointCircuitBreaker, m.EndpointCircuitBreakerMutate),
            request_headers=_headers,
            oidc=(m.EndpointOIDC, m.EndpointOIDCMutate),
            saml=(m.EndpointSAML, m.EndpointSAMLMutate),
        ),
        **_modules(frozenset({"get", "delete"}), oauth=(m.EndpointOAuth, m.EndpointOAuthMutate)),
        **_modules(
            _ALL,
            compression=_switch,
            response_headers=_headers,
            webhook_verification=(m.EndpointWebhookValidation, m.EndpointWebhookValidationMutate),
            websocket_tcp_converter=_switch,
        ),
    },
)
event_destinations = Collection(
    name="event_destinations",
    path="/event_destinations",
    items="event_destinations",
    prefix="ed_",
    read=events.EventDestination,
    create=events.EventDestinationCreate,
    update=events.EventDestinationUpdate,
)

COLLECTIONS: Mapping[str, Collection[Any]] = {
    c.name: c
    for c in (
        api_keys,
        credentials,
        tunnel_sessions,
        agent_ingresses,
        ssh_certificate_authorities,
        ssh_user_certificates,
        ssh_host_certificates,
        tls_certificates,
        weighted_backends,
        failover_backends,
        tcp_edges,
        tls_edges,
        https_edges,
        https_routes,
        event_destinations,
    )
}

REFERENCED_ONLY: Mapping[str, str] = {
    "bkdhr_": "HTTP-response backend",
    "bkdtg_": "tunnel-group backend",
    "ipp_": "IP policy",
    "ca_": "certificate authority for mutual TLS",
    "usr_": "user",
}
"""Prefixes of ids that this API refers to and has no operations for. Source: API document, Identifier prefixes."""
