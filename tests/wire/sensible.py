"""What makes random requests reach further: ids that exist, and values that have the form that their member needs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import httpx
from wire import account, document, material
from wire.api import BASE, Api

SHAPES: Final = (*document.PREFIXES,)


async def filled(app: Any, faults: dict[str, Any]) -> dict[str, str]:
    """Puts one of everything into the account, then sets the faults: ids by shape."""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=BASE) as client:
        api = Api(client, BASE)
        await api.ok("DELETE", "/_control/faults")
        for operation in document.OPERATIONS:
            if operation.items and operation.answer in {"AgentIngress", "HTTPSEdge"}:
                for item in await api.everything(operation.path, operation.items):
                    await api.ok("DELETE", f"{operation.path}/{item['id']}")
        ids = await account.one_of_each(api)
        await api.ok("PUT", "/_control/faults", faults or {"faults": []})
        return ids


def point_at_what_exists(case: Any, ids: dict[str, str]) -> None:
    """Puts ids that exist into the path."""
    if "id" in case.path_parameters:
        collection = case.path.partition("/{id}")[0]
        shape = next(o.answer for o in document.OPERATIONS if o.path == collection and o.answer in ids)
        case.path_parameters["id"] = ids[shape or ""]
    if "edge_id" in case.path_parameters:
        case.path_parameters["edge_id"] = ids["HTTPSEdge"]


def body(value: Any, ids: dict[str, str], number: int) -> Any:
    """The same body, where its members need it with values of a form that the service takes."""
    if isinstance(value, list):
        return [body(item, ids, number) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: _made(name, item, ids, number) for name, item in value.items()}


def _made(name: str, value: Any, ids: dict[str, str], number: int) -> Any:
    forms: dict[str, Callable[[Any], Any]] = {
        "backend_id": lambda _: ids["WeightedBackend"] if number % 3 else "bkdhr_a",
        "ip_policy_ids": lambda given: [f"ipp_{n}" for n in range(len(given))],
        "certificate_authority_ids": lambda given: [f"ca_{n}" for n in range(len(given))],
        "ssh_certificate_authority_id": lambda _: ids["SSHCertificateAuthority"],
        "public_key": lambda _: material.ssh_public_key("ed25519" if number % 3 else "rsa"),
        "certificate_pem": lambda _: material.tls_certificate("ecdsa"),
        "private_key_pem": lambda _: material.tls_key("ecdsa"),
        "owner_id": lambda _: "usr_a",
        "hostports": lambda given: [f"h{number}-{n}.example.com:443" for n in range(len(given))],
        "acl": lambda given: [f"bind:{n}.example.com" for n in range(len(given))],
        "domain": lambda _: f"d{number}.example.com",
        "match": lambda _: f"/{number}",
        "teams": lambda given: [f"org/{n}" for n in range(len(given))],
        "provider": lambda given: "stripe" if isinstance(given, str) else _one_of(body(given, ids, number), number),
        "target": lambda given: _one_of(body(given, ids, number), number),
        "auth": lambda given: _one_of(body(given, ids, number), number),
        "critical_options": lambda given: {"force-command": "true"} if given else {},
        "extensions": lambda given: {f"x-{n}": "" for n in range(len(given))},
        "valid_after": lambda _: "2026-01-02T03:04:05Z",
        "valid_until": lambda _: "2036-01-02T03:04:05Z",
        "add": lambda given: {f"x-{n}": re.sub(r"[^ -~]", "", value).strip() for n, value in enumerate(given.values())},
        "remove": lambda given: [f"x-{n}" for n in range(len(given))],
        "nameid_format": lambda _: "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent",
    }
    if value is None or name not in forms:
        return body(value, ids, number)
    if name == "backends":
        return value
    return forms[name](value)


def _one_of(value: Any, number: int) -> Any:
    """An object with one of its members, where it has more."""
    if not isinstance(value, dict):
        return value
    given = [name for name, item in value.items() if item is not None]
    return {given[number % len(given)]: value[given[number % len(given)]]} if given else value
