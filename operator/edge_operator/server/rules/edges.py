"""TCP, TLS and HTTPS edges and HTTPS routes. Source: API document, TCPEdge and following, HTTPS edge route."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from edge_operator.api.catalog import https_edges, https_routes, tcp_edges, tls_edges
from edge_operator.api.wire import Collection
from edge_operator.server.problems import shown
from edge_operator.server.rules import addresses
from edge_operator.server.rules.modules import MODULES
from edge_operator.server.rules.rule import Claimed, Context, Doc, FieldRule, Place, Rules
from edge_operator.server.store import Claim

_MATCH: Final = re.compile(rf"(?:{addresses.HOST})?(?:/[^\s?#\x00-\x1f]*)?")


def _hostports(_context: Context, values: list[str], place: Place) -> list[str]:
    """Assumed: `host:port`, each once; hosts have no case."""
    seen: set[str] = set()
    for index, value in enumerate(values):
        address = addresses.canonical(value)
        if address is None:
            raise (place / index).problem(f"{shown(value)} is not of the form host:port")
        if address in seen:
            raise (place / index).problem(f"{shown(value)} is given twice")
        seen.add(address)
    return values


def _match(_context: Context, value: str, place: Place) -> str:
    if not value or not _MATCH.fullmatch(value):
        raise place.problem(f"{shown(value)} is not of the form /path, host or host/path")
    return value


def _claimed_hostports(doc: Doc) -> Iterable[Claimed]:
    return [
        Claimed(Claim("hostport", addresses.canonical(hostport) or hostport), ("hostports", index), hostport)
        for index, hostport in enumerate(doc["hostports"])
    ]


def _claimed_match(doc: Doc) -> Iterable[Claimed]:
    """Assumed: one edge may have the same match once for each match_type; hosts have no case, paths do."""
    host, slash, path = doc["match"].partition("/")
    claim = Claim(f"match of {doc['edge_id']}", f"{doc['match_type']} {host.lower()}{slash}{path}")
    return [Claimed(claim, ("match",), doc["match"])]


def _used(doc: Doc) -> Iterable[str]:
    backend = doc.get("backend")
    return [backend["backend_id"]] if backend else []


def _decrypted(context: Context, doc: Doc) -> None:
    """Source: API document, TLS termination rules, 2.

    Assumed: of the modules an edge has, that is mutual TLS, and a switched-off module is refused like any other.
    """
    termination = doc["tls_termination"]
    if termination and doc["mutual_tls"] and termination["terminate_at"] == "upstream":
        raise Place(context.place.spell, ("tls_termination", "terminate_at")).problem(
            "'upstream' does not go with mutual_tls, which needs decrypted traffic"
        )


def _fields(collection: Collection[Any], **more: FieldRule) -> dict[str, FieldRule]:
    return {**more, **{name: MODULES[name] for name in collection.modules}}


def _defaults(collection: Collection[Any], **more: Any) -> dict[str, Any]:
    return {**more, **dict.fromkeys(collection.modules)}


TCP: Final = Rules(
    fields=_fields(tcp_edges, hostports=_hostports),
    defaults=_defaults(tcp_edges, hostports=[]),
    claims=_claimed_hostports,
    uses=_used,
)
TLS: Final = Rules(
    fields=_fields(tls_edges, hostports=_hostports),
    defaults=_defaults(tls_edges, hostports=[]),
    check=_decrypted,
    claims=_claimed_hostports,
    uses=_used,
)
HTTPS: Final = Rules(
    fields=_fields(https_edges, hostports=_hostports),
    defaults=_defaults(https_edges, hostports=[]),
    check=_decrypted,
    claims=_claimed_hostports,
)
ROUTES: Final = Rules(
    fields=_fields(https_routes, match=_match),
    # Assumed: path_prefix where match_type is not given.
    defaults=_defaults(https_routes, match_type="path_prefix"),
    claims=_claimed_match,
    uses=_used,
)
