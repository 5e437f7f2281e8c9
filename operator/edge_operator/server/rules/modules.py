"""Modules of edges and routes: what each refuses, and what it holds where the request says nothing.

Source: API document, Module shapes as sent, TLS termination rules, HTTPS route module fields, OAuth rules, Errors 3.
Assumed: a number that is not given is stored as 0 and a text as "", as services of this shape return them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from xml.parsers import expat

from edge_operator.server import saml
from edge_operator.server.problems import shown
from edge_operator.server.rules.backends import BACKEND_PREFIXES
from edge_operator.server.rules.providers import UNSIGNED, WEBHOOK_PROVIDERS
from edge_operator.server.rules.rule import Context, Doc, FieldRule, Place, Sent, reference, references

_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_TEAM: Final = re.compile(r"[^\s/]+/[^\s/]+")
_OAUTH_PROVIDERS: Final = (
    "code_host_a",
    "social_network",
    "os_vendor",
    "search_vendor",
    "professional_network",
    "code_host_b",
    "streaming_vendor",
    "retail_vendor",
)
_NAMEID_FORMATS: Final = (
    # Assumed: the subset of SAML-defined values that is supported; the document names the default alone.
    "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent",
    "urn:oasis:names:tc:SAML:2.0:nameid-format:transient",
    "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress",
    "urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified",
)


def _enabled(sent: Sent) -> bool:
    """Source: API document, Conventions, 6."""
    return bool(sent.get("enabled", True))


def _backend(context: Context, sent: Sent, place: Place) -> Doc:
    backend_id = reference(context, sent["backend_id"], place / "backend_id", *BACKEND_PREFIXES)
    return {"enabled": _enabled(sent), "backend_id": backend_id}


def _ids(name: str, prefix: str) -> FieldRule:
    rule = references(prefix)

    def module(context: Context, sent: Sent, place: Place) -> Doc:
        return {"enabled": _enabled(sent), name: rule(context, sent.get(name, []), place / name)}

    return module


def _tls_termination(_context: Context, sent: Sent, place: Place) -> Doc:
    """Assumed: `terminate_at` is `edge` where it is not given."""
    terminate_at = sent.get("terminate_at", "edge")
    if terminate_at == "upstream" and "min_version" in sent:
        raise (place / "min_version").problem("must be null when terminate_at is 'upstream'")
    return {"enabled": _enabled(sent), "terminate_at": terminate_at, "min_version": sent.get("min_version")}


def _circuit_breaker(_context: Context, sent: Sent, _place: Place) -> Doc:
    unset = {
        "tripped_duration": 0,
        "rolling_window": 0,
        "num_buckets": 0,
        "volume_threshold": 0,
        "error_threshold_percentage": 0.0,
    }
    return {"enabled": _enabled(sent), **unset, **sent}


def _headers(_context: Context, sent: Sent, place: Place) -> Doc:
    """Assumed: header names are stored in lower case."""
    add: dict[str, str] = {}
    for name, value in sent.get("add", {}).items():
        at = place / "add" / name
        lower = _header_name(name, at)
        if lower in add:
            raise at.problem("is given twice: header names have no case")
        if _CONTROL.search(value):
            raise at.problem("has a line break or another control character in its value")
        add[lower] = value
    remove = [_header_name(name, place / "remove" / index) for index, name in enumerate(sent.get("remove", []))]
    return {"enabled": _enabled(sent), "add": add, "remove": remove}


def _header_name(name: str, place: Place) -> str:
    if not _HEADER_NAME.fullmatch(name):
        raise place.problem(f"{shown(name)} is not a header name")
    return name.lower()


def _switch(_context: Context, sent: Sent, _place: Place) -> Doc:
    return {"enabled": _enabled(sent)}


def _webhook(_context: Context, sent: Sent, place: Place) -> Doc:
    provider = sent["provider"].lower()
    if provider not in WEBHOOK_PROVIDERS:
        text = f"{shown(sent['provider'])} is not a supported provider, such as github, slack or stripe"
        raise (place / "provider").problem(text)
    if provider != UNSIGNED and not sent.get("secret"):
        raise (place / "secret").problem(f"is required for every provider except {UNSIGNED}")
    return {"enabled": _enabled(sent), "provider": provider, "secret": sent.get("secret", "")}


def _session(context: Context, sent: Sent) -> Doc:
    """Source: API document, Session fields shared by OIDC, SAML and OAuth modules."""
    return {
        "enabled": _enabled(sent),
        "options_passthrough": sent.get("options_passthrough", False),
        "cookie_prefix": sent.get("cookie_prefix", context.profile.cookie_prefix),
        "inactivity_timeout": sent.get("inactivity_timeout", 0),
        "maximum_duration": sent.get("maximum_duration", 0),
    }


def _oidc(context: Context, sent: Sent, place: Place) -> Doc:
    issuer = sent.get("issuer", "")
    if issuer and not issuer.startswith(("https://", "http://")):
        raise (place / "issuer").problem(f"{shown(issuer)} is not the base URL of an OpenID provider")
    return {
        **_session(context, sent),
        "issuer": issuer,
        "client_id": sent.get("client_id", ""),
        "client_secret": sent.get("client_secret", ""),
        "scopes": sent.get("scopes", []),
    }


def _saml(context: Context, sent: Sent, place: Place) -> Doc:
    metadata = sent.get("idp_metadata", "")
    if metadata and not _entity_descriptor(metadata):
        raise (place / "idp_metadata").problem("is not a full XML EntityDescriptor of an identity provider")
    nameid_format = sent.get("nameid_format") or _NAMEID_FORMATS[0]
    if nameid_format not in _NAMEID_FORMATS:
        expected = " or ".join(_NAMEID_FORMATS)
        raise (place / "nameid_format").problem(f"{shown(nameid_format)} is not supported; expected is {expected}")
    return {
        **_session(context, sent),
        "idp_metadata": metadata,
        "force_authn": sent.get("force_authn", False),
        "allow_idp_initiated": sent.get("allow_idp_initiated", False),
        "authorized_groups": sent.get("authorized_groups", []),
        "nameid_format": nameid_format,
        **saml.service_provider(context.tx, context.world, context.profile.service, context.item_id),
    }


def _entity_descriptor(text: str) -> bool:
    """Whether the text is one well-formed XML document whose root is an EntityDescriptor. Entities are not expanded."""
    roots: list[str] = []
    parser = expat.ParserCreate(namespace_separator=" ")

    def start(name: str, _attributes: Mapping[str, str]) -> None:
        if not roots:
            roots.append(name.rpartition(" ")[2])

    def refuse(*_: Any) -> None:
        raise expat.ExpatError("a document type is not allowed")

    parser.StartElementHandler = start
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(text, True)
    except (expat.ExpatError, ValueError, LookupError):
        return False
    return roots == ["EntityDescriptor"]


def _oauth(context: Context, sent: Sent, place: Place) -> Doc:
    given = sent["provider"]
    at = place / "provider"
    if len(given) != 1:
        found = " and ".join(str(at / name) for name in given) or "none"
        raise at.problem(f"exactly one provider is expected; found is {found}")
    return {
        **_session(context, sent),
        "provider": {name: _app(given.get(name), at / name) for name in _OAUTH_PROVIDERS},
        "auth_check_interval": sent.get("auth_check_interval", 0),
    }


def _app(sent: Sent | None, place: Place) -> Doc | None:
    """Source: API document, OAuth rules. An empty text or list counts as not present."""
    if sent is None:
        return None
    if sent.get("client_id") and not sent.get("client_secret"):
        raise (place / "client_secret").problem("must be present when client_id is present")
    if sent.get("scopes") and not (sent.get("client_id") and sent.get("client_secret")):
        raise (place / "scopes").problem("may be set only when both client_id and client_secret are given")
    for index, team in enumerate(sent.get("teams", [])):
        if not _TEAM.fullmatch(team):
            raise (place / "teams" / index).problem(f"{shown(team)} is not of the form <org>/<team>")
    lists = ("scopes", "email_addresses", "email_domains", "teams", "organizations")
    texts = {name: sent.get(name, "") for name in ("client_id", "client_secret")}
    return {**texts, **{name: sent.get(name, []) for name in lists}}


MODULES: Final[Mapping[str, FieldRule]] = {
    "backend": _backend,
    "ip_restriction": _ids("ip_policy_ids", "ipp_"),
    "mutual_tls": _ids("certificate_authority_ids", "ca_"),
    "tls_termination": _tls_termination,
    "circuit_breaker": _circuit_breaker,
    "compression": _switch,
    "request_headers": _headers,
    "response_headers": _headers,
    "webhook_verification": _webhook,
    "oauth": _oauth,
    "saml": _saml,
    "oidc": _oidc,
    "websocket_tcp_converter": _switch,
}
"""By the name of the module, which is also its member in the resource and its path segment."""
