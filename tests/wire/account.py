"""One of everything, made with the least that a request needs."""

from __future__ import annotations

from typing import Any, Final

from wire import document, material
from wire.api import Api
from wire.document import Operation

MODULES: Final[dict[str, dict[str, Any]]] = {
    "backend": {"backend_id": "bkdhr_a"},
    "ip_restriction": {"ip_policy_ids": ["ipp_a"]},
    "mutual_tls": {"certificate_authority_ids": ["ca_a"]},
    "tls_termination": {"terminate_at": "edge"},
    "circuit_breaker": {"error_threshold_percentage": 0.5},
    "compression": {},
    "request_headers": {"add": {"x-a": "1"}},
    "response_headers": {"remove": ["server"]},
    "webhook_verification": {"provider": "stripe", "secret": "s"},
    "oauth": {"provider": {"os_vendor": {}}},
    "saml": {"idp_metadata": "<EntityDescriptor/>"},
    "oidc": {"issuer": "https://id.example.com", "client_id": "c", "client_secret": "s"},
    "websocket_tcp_converter": {},
}

_DEFAULT_ROUTE: Final = {"match_type": "path_prefix", "match": "/"}


def create_body(shape: str, ids: dict[str, str]) -> dict[str, Any]:
    """The least body that creates a resource of the shape."""
    authority = ids.get("SSHCertificateAuthority")
    signed = {"ssh_certificate_authority_id": authority, "public_key": material.ssh_public_key("ed25519")}
    tls = {"certificate_pem": material.tls_certificate("ecdsa"), "private_key_pem": material.tls_key("ecdsa")}
    return {
        "AgentIngress": {"domain": "ingress.example.com"},
        "SSHUserCertificate": signed,
        "SSHHostCertificate": signed,
        "TLSCertificate": tls,
        "HTTPSRoute": _DEFAULT_ROUTE,
        "EventDestination": {"target": {"monitoring": {"api_key": "k"}}},
    }.get(shape, {})


def body_of(operation: Operation, ids: dict[str, str]) -> dict[str, Any] | None:
    """A body that the operation accepts; None where it takes none."""
    if operation.sent is None:
        return None
    if operation.module:
        return MODULES[operation.module]
    return create_body(operation.answer or "", ids) if operation.status == 201 else {}


async def one_of_each(api: Api) -> dict[str, str]:
    """A new resource of every shape, each module of it set: ids by shape."""
    ids: dict[str, str] = {"TunnelSession": (await api.ok("POST", "/_control/agents", {}))["id"]}
    for operation in document.OPERATIONS:
        if operation.status == 201 and operation.answer:
            body = create_body(operation.answer, ids)
            ids[operation.answer] = (await api.ok("POST", path_of(operation, ids), body))["id"]
        elif operation.method == "PUT":
            await api.ok("PUT", path_of(operation, ids), body_of(operation, ids))
    return ids


def path_of(operation: Operation, ids: dict[str, str], unknown: str | None = None) -> str:
    """The operation's address for these resources; with `unknown`, for an id that is not there in the last place."""
    shape = subject(operation)
    last = unknown or ids.get(shape, "")
    edge = ids.get("HTTPSEdge", "") if "{id}" in operation.path or unknown is None else last
    return operation.path.format(edge_id=edge, id=last)


def subject(operation: Operation) -> str:
    """The shape of the resource that the path's `{id}` stands for."""
    collection = operation.path.partition("/{id}")[0]
    return next(o.answer for o in document.OPERATIONS if o.path == collection and o.answer in document.PREFIXES) or ""
