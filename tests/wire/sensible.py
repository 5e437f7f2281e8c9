"""What makes random requests reach further: ids that exist, and values that have the form that their member needs."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx

from wire import account, document, material
from wire.api import BASE, Api


@contextlib.asynccontextmanager
async def speaking(app: Any) -> AsyncIterator[Api]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=BASE) as client:
        yield Api(client, BASE)


async def filled(app: Any, faults: dict[str, Any]) -> dict[str, str]:
    """Puts one of everything into the account, then sets the faults: ids by shape."""
    async with speaking(app) as api:
        ids = await account.one_of_each(api)
        await api.ok("PUT", "/_control/faults", faults or {"faults": []})
        return ids


async def renew(app: Any, case: Any, ids: dict[str, str]) -> None:
    """Puts back what the request has deleted."""
    shape = _shape(case.path)
    if case.path.endswith("}") or shape == "TunnelSession":
        async with speaking(app) as api:
            await account.add(api, shape, ids)
            if shape == "HTTPSEdge":
                await account.add(api, "HTTPSRoute", ids)


def _shape(path: str) -> str:
    collection = path.partition("/{id}")[0]
    return next(o.answer for o in document.OPERATIONS if o.path == collection and o.answer in document.PREFIXES) or ""


def point_at_what_exists(case: Any, ids: dict[str, str]) -> None:
    """Puts ids that exist into the path."""
    if "id" in case.path_parameters:
        case.path_parameters["id"] = ids[_shape(case.path)]
    if "edge_id" in case.path_parameters:
        case.path_parameters["edge_id"] = ids["HTTPSEdge"]


def body(value: Any, ids: dict[str, str], number: int) -> Any:
    """The same body, with values of a form that the service takes where their members need one."""
    if not isinstance(value, dict):
        return value
    return {name: _made(name, item, ids, number) for name, item in value.items()}


def _made(name: str, value: Any, ids: dict[str, str], number: int) -> Any:
    text: dict[str, str | Callable[[], str]] = {
        "backend_id": ids["WeightedBackend"] if number % 3 else "bkdhr_a",
        "ssh_certificate_authority_id": ids["SSHCertificateAuthority"],
        "public_key": lambda: material.ssh_public_key("ed25519" if number % 3 else "rsa"),
        "certificate_pem": lambda: material.tls_certificate("ecdsa"),
        "private_key_pem": lambda: material.tls_key("ecdsa"),
        "owner_id": "usr_a",
        "domain": f"d{number}.example.com",
        "match": f"/{number}",
        "provider": "stripe",
        "valid_after": "2026-01-02T03:04:05Z",
        "valid_until": "2036-01-02T03:04:05Z",
        "nameid_format": "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent",
    }
    items = {
        "ip_policy_ids": "ipp_{n}",
        "certificate_authority_ids": "ca_{n}",
        "hostports": f"h{number}-{{n}}.example.com:443",
        "acl": "bind:{n}.example.com",
        "teams": "org/{n}",
        "remove": "x-{n}",
        "principals": "p{n}",
    }
    one_of = {
        "provider": {"os_vendor": {}},
        "target": {"monitoring": {"api_key": "k"}},
        "auth": {"role": {"role_arn": "r"}},
    }
    if isinstance(value, str):
        made = text.get(name, value or ("" if name in {"description", "metadata", "cookie_prefix"} else "x"))
        return made() if callable(made) else made
    if isinstance(value, list):
        return [items.get(name, "{n}").format(n=n) for n in range(len(value))] if name in items else value
    if isinstance(value, dict) and name in one_of:
        given = [member for member, item in value.items() if item is not None]
        chosen = {given[number % len(given)]: value[given[number % len(given)]]} if given else one_of[name]
        return body(chosen, ids, number)
    if isinstance(value, dict) and name == "add":
        return {f"x-{n}": "".join(c for c in item if " " <= c <= "~").strip() for n, item in enumerate(value.values())}
    if isinstance(value, dict) and name == "critical_options":
        return {"force-command": "true"} if value else {}
    return value if name in {"backends", "extensions"} else body(value, ids, number)
