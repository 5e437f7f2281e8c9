"""Agent ingresses and tunnel sessions. Source: API document, AgentIngress, TunnelSession."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from edge_operator.server import regions
from edge_operator.server.problems import shown
from edge_operator.server.rules.rule import Claimed, Context, Doc, Place, Rules
from edge_operator.server.store import Claim

_LABEL: Final = r"[0-9A-Za-z](?:[0-9A-Za-z-]{0,61}[0-9A-Za-z])?"
_DOMAIN: Final = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})+")


def _domain(_context: Context, value: str, place: Place) -> str:
    if not _DOMAIN.fullmatch(value):
        raise place.problem(f"{shown(value)} is not a domain such as connect.example.com")
    return value


def _claimed(doc: Doc) -> Iterable[Claimed]:
    return [Claimed(Claim("agent ingress", doc["domain"].lower()), ("domain",), doc["domain"])]


def _derived(context: Context, doc: Doc) -> Doc:
    """Regions may be added, so what depends on them is worked out at each read."""
    return {
        "ns_targets": regions.ns_targets(context.profile.service),
        "region_domains": regions.domains(context.tx, doc["domain"]),
    }


INGRESSES: Final = Rules(fields={"domain": _domain}, claims=_claimed, derived=_derived)
SESSIONS: Final = Rules()
