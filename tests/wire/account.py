"""One of everything, made with the least that a request needs."""

from __future__ import annotations

import itertools
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

_numbers: Final = itertools.count()


def create_body(shape: str, ids: dict[str, str]) -> dict[str, Any]:
    """The least body that creates a resource of the shape; where something has to be unique, it is."""
    authority = ids.get("SSHCertificateAuthority")
    signed = {"ssh_certificate_authority_id": authority, "public_key": material.ssh_public_key("ed25519")}
    tls = {"certificate_pem": material.tls_certificate("ecdsa"), "private_key_pem": material.tls_key("ecdsa")}
    bodies: dict[str, dict[str, Any]] = {
        "AgentIngress": {"domain": f"ingress{next(_numbers)}.example.com"},
        "SSHUserCertificate": signed,
        "SSHHostCertificate": signed,
        "TLSCertificate": tls,
        "HTTPSRoute": {"match_type": "path_prefix", "match": f"/{next(_numbers)}"},
        "EventDestination": {"target": {"monitoring": {"api_key": "k"}}},
    }
    return bodies.get(shape, {})


def body_of(operation: Operation, ids: dict[str, str]) -> dict[str, Any] | None:
    """A body that the operation accepts; None where it takes none."""
    if operation.sent is None:
        return None
    if operation.module:
        return MODULES[operation.module]
    return create_body(operation.answer or "", ids) if operation.status == 201 else {}


async def one_of_each(api: Api) -> dict[str, str]:
    """A new resource of every shape, each module of it set: ids by shape."""
    ids: dict[str, str] = {}
    await add(api, "TunnelSession", ids)
    for operation in document.OPERATIONS:
        if operation.status == 201 and operation.answer:
            await add(api, operation.answer, ids)
        elif operation.method == "PUT":
            await api.ok("PUT", path_of(operation, ids), body_of(operation, ids))
    return ids


async def add(api: Api, shape: str, ids: dict[str, str]) -> None:
    """A new resource of the shape, whose id takes the place of the one that was known."""
    if shape == "TunnelSession":
        ids[shape] = (await api.ok("POST", "/_control/agents", {}))["id"]
        return
    operation = next(o for o in document.OPERATIONS if o.status == 201 and o.answer == shape)
    ids[shape] = (await api.ok("POST", path_of(operation, ids), create_body(shape, ids)))["id"]


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
