"""The API document's own tables, condensed by hand: operations, prefixes and limits, under its sections' names.

Sections that begin with `Assumed` are not in the document; they are what this project chose where it is silent.
`test_document.py` holds catalog, wire models, server and client against these rows, and the transcripts are read with
them, so that every answer is judged down to its last member.

A row of an operation is method, path, success status, the array's name where the answer is a list, the answer's shape,
and after `<` what the body may have: members with their types, or a shape of `shapes.py`. `MODULE` stands for PUT, GET
and DELETE of a module.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from wire import shapes

_OPERATIONS: Final = """
[Endpoints, API keys]
POST   /api_keys                                 201 APIKey                     < description metadata owner_id
GET    /api_keys                                 200 keys APIKey
GET    /api_keys/{id}                            200 APIKey
PATCH  /api_keys/{id}                            200 APIKey                     < description metadata
DELETE /api_keys/{id}                            204
[Endpoints, Tunnel credentials]
POST   /credentials                              201 Credential                 < description metadata acl:list owner_id
GET    /credentials                              200 credentials Credential
GET    /credentials/{id}                         200 Credential
PATCH  /credentials/{id}                         200 Credential                 < description metadata acl:list
DELETE /credentials/{id}                         204
[Endpoints, Tunnel sessions]
GET    /tunnel_sessions                          200 tunnel_sessions TunnelSession
GET    /tunnel_sessions/{id}                     200 TunnelSession
POST   /tunnel_sessions/{id}/restart             204                            < {}
POST   /tunnel_sessions/{id}/stop                204                            < {}
POST   /tunnel_sessions/{id}/update              204                            < {}
[Endpoints, Agent ingresses]
POST   /agent_ingresses                          201 AgentIngress               < description metadata domain
GET    /agent_ingresses                          200 ingresses AgentIngress
GET    /agent_ingresses/{id}                     200 AgentIngress
PATCH  /agent_ingresses/{id}                     200 AgentIngress               < description metadata
DELETE /agent_ingresses/{id}                     204
[Endpoints, SSH certificate authorities]
POST   /ssh_certificate_authorities              201 SSHCertificateAuthority
    < description metadata private_key_type elliptic_curve key_size:int
GET    /ssh_certificate_authorities              200 ssh_certificate_authorities SSHCertificateAuthority
GET    /ssh_certificate_authorities/{id}         200 SSHCertificateAuthority
PATCH  /ssh_certificate_authorities/{id}         200 SSHCertificateAuthority    < description metadata
DELETE /ssh_certificate_authorities/{id}         204
[Endpoints, SSH user certificates]
POST   /ssh_user_certificates                    201 SSHUserCertificate
    < ssh_certificate_authority_id public_key principals:list critical_options:map extensions:map valid_after:time
      valid_until:time description metadata
GET    /ssh_user_certificates                    200 ssh_user_certificates SSHUserCertificate
GET    /ssh_user_certificates/{id}               200 SSHUserCertificate
DELETE /ssh_user_certificates/{id}               204
[Assumed: TLS certificate, SSH user certificate]
PATCH  /ssh_user_certificates/{id}               200 SSHUserCertificate         < description metadata
PATCH  /tls_certificates/{id}                    200 TLSCertificate             < description metadata
[Endpoints, SSH host certificates]
POST   /ssh_host_certificates                    201 SSHHostCertificate
    < ssh_certificate_authority_id public_key principals:list valid_after:time valid_until:time description metadata
GET    /ssh_host_certificates                    200 ssh_host_certificates SSHHostCertificate
GET    /ssh_host_certificates/{id}               200 SSHHostCertificate
PATCH  /ssh_host_certificates/{id}               200 SSHHostCertificate         < description metadata
DELETE /ssh_host_certificates/{id}               204
[Endpoints, TLS certificates]
POST   /tls_certificates                         201 TLSCertificate
    < description metadata certificate_pem private_key_pem
GET    /tls_certificates                         200 tls_certificates TLSCertificate
GET    /tls_certificates/{id}                    200 TLSCertificate
DELETE /tls_certificates/{id}                    204
[Endpoints, Weighted backends]
POST   /backends/weighted                        201 WeightedBackend            < description metadata backends:weights
GET    /backends/weighted                        200 backends WeightedBackend
GET    /backends/weighted/{id}                   200 WeightedBackend
PATCH  /backends/weighted/{id}                   200 WeightedBackend            < description metadata backends:weights
DELETE /backends/weighted/{id}                   204
[Endpoints, Failover backends]
POST   /backends/failover                        201 FailoverBackend            < description metadata backends:list
GET    /backends/failover                        200 backends FailoverBackend
GET    /backends/failover/{id}                   200 FailoverBackend
PATCH  /backends/failover/{id}                   200 FailoverBackend            < description metadata backends:list
DELETE /backends/failover/{id}                   204
[Endpoints, TCP edges]
POST   /edges/tcp                                201 TCPEdge
    < description metadata hostports:list backend:EndpointBackendMutate ip_restriction:EndpointIPPolicyMutate
GET    /edges/tcp                                200 tcp_edges TCPEdge
GET    /edges/tcp/{id}                           200 TCPEdge
PATCH  /edges/tcp/{id}                           200 TCPEdge
    < description metadata hostports:list backend:EndpointBackendMutate ip_restriction:EndpointIPPolicyMutate
DELETE /edges/tcp/{id}                           204
[Endpoints, TLS edges]
POST   /edges/tls                                201 TLSEdge
    < description metadata hostports:list backend:EndpointBackendMutate ip_restriction:EndpointIPPolicyMutate
      mutual_tls:EndpointMutualTLSMutate tls_termination:EndpointTLSTerminationMutate
GET    /edges/tls                                200 tls_edges TLSEdge
GET    /edges/tls/{id}                           200 TLSEdge
PATCH  /edges/tls/{id}                           200 TLSEdge
    < description metadata hostports:list backend:EndpointBackendMutate ip_restriction:EndpointIPPolicyMutate
      mutual_tls:EndpointMutualTLSMutate tls_termination:EndpointTLSTerminationMutate
[Assumed: TCP and TLS edges]
DELETE /edges/tls/{id}                           204
MODULE /edges/tcp/{id}/backend                   EndpointBackend                < EndpointBackendMutate
MODULE /edges/tcp/{id}/ip_restriction            EndpointIPPolicy               < EndpointIPPolicyMutate
MODULE /edges/tls/{id}/backend                   EndpointBackend                < EndpointBackendMutate
MODULE /edges/tls/{id}/ip_restriction            EndpointIPPolicy               < EndpointIPPolicyMutate
MODULE /edges/tls/{id}/mutual_tls                EndpointMutualTLS              < EndpointMutualTLSMutate
MODULE /edges/tls/{id}/tls_termination           EndpointTLSTermination         < EndpointTLSTerminationMutate
[Assumed: HTTPS edge]
POST   /edges/https                              201 HTTPSEdge
    < description metadata hostports:list mutual_tls:EndpointMutualTLSMutate
      tls_termination:EndpointTLSTerminationMutate
GET    /edges/https                              200 https_edges HTTPSEdge
GET    /edges/https/{id}                         200 HTTPSEdge
PATCH  /edges/https/{id}                         200 HTTPSEdge
    < description metadata hostports:list mutual_tls:EndpointMutualTLSMutate
      tls_termination:EndpointTLSTerminationMutate
DELETE /edges/https/{id}                         204
MODULE /edges/https/{id}/tls_termination         EndpointTLSTermination         < EndpointTLSTerminationMutate
[Endpoints, HTTPS edge mutual TLS]
MODULE /edges/https/{id}/mutual_tls              EndpointMutualTLS              < EndpointMutualTLSMutate
[Endpoints, HTTPS edge routes]
POST   /edges/https/{edge_id}/routes             201 HTTPSRoute                 < HTTPSRouteMutate
[Assumed: Route]
GET    /edges/https/{edge_id}/routes/{id}        200 HTTPSRoute
PATCH  /edges/https/{edge_id}/routes/{id}        200 HTTPSRoute                 < HTTPSRouteMutate
DELETE /edges/https/{edge_id}/routes/{id}        204
[Endpoints, HTTPS route modules]
MODULE {route}/backend                           EndpointBackend                < EndpointBackendMutate
MODULE {route}/ip_restriction                    EndpointIPPolicy               < EndpointIPPolicyMutate
MODULE {route}/circuit_breaker                   EndpointCircuitBreaker         < EndpointCircuitBreakerMutate
MODULE {route}/request_headers                   EndpointRequestHeaders         < EndpointRequestHeadersMutate
MODULE {route}/oidc                              EndpointOIDC                   < EndpointOIDCMutate
MODULE {route}/saml                              EndpointSAML                   < EndpointSAMLMutate
PUT    {route}/oauth                             200 EndpointOAuth              < EndpointOAuthMutate
[Assumed: Route modules]
GET    {route}/oauth                             200 EndpointOAuth
DELETE {route}/oauth                             204
MODULE {route}/compression                       EndpointCompression            < EndpointCompressionMutate
MODULE {route}/response_headers                  EndpointResponseHeaders        < EndpointResponseHeadersMutate
MODULE {route}/webhook_verification              EndpointWebhookValidation      < EndpointWebhookValidationMutate
MODULE {route}/websocket_tcp_converter           EndpointWebsocketTCPConverter  < EndpointWebsocketTCPConverterMutate
[Endpoints, Event destinations]
POST   /event_destinations                       201 EventDestination
    < metadata description format target:EventTargetMutate
GET    /event_destinations                       200 event_destinations EventDestination
GET    /event_destinations/{id}                  200 EventDestination
PATCH  /event_destinations/{id}                  200 EventDestination
    < metadata description format target:EventTargetMutate
DELETE /event_destinations/{id}                  204
"""

_PREFIXES: Final = """
APIKey ak_, Credential cr_, TunnelSession ts_, AgentIngress agin_, SSHCertificateAuthority sshca_,
SSHUserCertificate sucrt_, SSHHostCertificate shcrt_, TLSCertificate cert_, WeightedBackend bkdwd_,
FailoverBackend bkdfo_, TCPEdge edgtcp_, TLSEdge edgtls_, HTTPSEdge edghts_, HTTPSRoute edghtsrt_, EventDestination ed_
"""

PREFIXES: Final = dict(pair.split() for pair in _PREFIXES.split(","))
"""Source: API document, Identifier prefixes."""

REFERENCED_PREFIXES: Final = frozenset({"bkdhr_", "bkdtg_", "ipp_", "ca_", "usr_"})
"""Source: API document, Identifier prefixes, the rows with "referenced only"."""

DESCRIPTION_BYTES: Final = 255
METADATA_BYTES: Final = 4096
LARGEST_WEIGHT: Final = 10_000
LARGEST_NUM_BUCKETS: Final = 128
LARGEST_ERROR_FRACTION: Final = 1.0
RSA_KEY_SIZES: Final = (2048, 4096)
SETTLING_SECONDS: Final = 10
USER_CERTIFICATE_HOURS: Final = 24
HOST_CERTIFICATE_YEARS: Final = 1
LARGEST_UINT32: Final = 2**32 - 1
"""All: API document, Limits (uint32: HTTPS route module fields)."""
LARGEST_PAGE: Final = 100
"""Assumed: Paging."""


@dataclass(frozen=True)
class Operation:
    """One row of a table in Endpoints. `items` is the array's name where the answer is a list."""

    section: str
    method: str
    path: str
    status: int
    answer: str | None = None
    items: str | None = None
    sent: dict[str, str] | None = field(default=None, hash=False)

    @property
    def assumed(self) -> bool:
        return self.section.startswith("Assumed")

    @property
    def module(self) -> str | None:
        """The module's path segment, where the operation is a module's."""
        last = self.path.rpartition("/")[2]
        return (
            last
            if "}/" in self.path and last not in {"routes", "restart", "stop", "update"} and "{" not in last
            else None
        )

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def _sent(row: str) -> dict[str, str] | None:
    if not row:
        return None
    return {} if row == "{}" else shapes.SENT.get(row) or shapes.typed(row)


def _operations() -> list[Operation]:
    found, section = [], ""
    joined = re.sub(r"\n +", " ", _OPERATIONS).replace("{route}", "/edges/https/{edge_id}/routes/{id}")
    for line in joined.strip().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
            continue
        row, _, body = (" ".join(part.split()) for part in line.partition("<"))
        method, path, *rest = row.split()
        if method == "MODULE":
            found.append(Operation(section, "PUT", path, 200, rest[0], sent=_sent(body)))
            found.append(Operation(section, "GET", path, 200, rest[0]))
            found.append(Operation(section, "DELETE", path, 204))
            continue
        status, *names = rest
        answer, items = (names[-1] if names else None), (names[0] if len(names) == 2 else None)
        found.append(Operation(section, method, path, int(status), answer, items, _sent(body)))
    return found


OPERATIONS: Final = _operations()
"""Every operation. Source: API document, Endpoints."""
