"""Weighted and failover backends. Source: API document, WeightedBackend, FailoverBackend."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from edge_operator.server.problems import shown
from edge_operator.server.rules.rule import Context, Doc, Place, Rules, distinct, reference

BACKEND_PREFIXES: Final = ("bkdhr_", "bkdtg_", "bkdwd_", "bkdfo_")
_KINDS: Final = {"bkdwd_": "weighted_backends", "bkdfo_": "failover_backends"}


def _weighted(context: Context, weights: dict[str, int], place: Place) -> dict[str, int]:
    for child in weights:
        reference(context, child, place / child, *BACKEND_PREFIXES)
    return weights


def _failover(context: Context, children: list[str], place: Place) -> list[str]:
    for index, child in enumerate(children):
        reference(context, child, place / index, *BACKEND_PREFIXES)
    return distinct(children, place)


def _children(doc: Doc) -> Iterable[str]:
    return list(doc["backends"])


def _no_cycle(context: Context, doc: Doc) -> None:
    """Assumed: a backend cannot contain itself, at any depth."""
    seen: set[str] = set()
    waiting: list[tuple[str, Any]] = [(child, child) for child in _children(doc)]
    while waiting:
        child, root = waiting.pop()
        if child == doc["id"]:
            place = root if isinstance(doc["backends"], dict) else doc["backends"].index(root)
            raise (context.place / "backends" / place).problem(f"{shown(root)} contains this backend")
        kind = _KINDS.get(child[:6])
        if kind and child not in seen:
            seen.add(child)
            found = context.tx.get(kind, child)
            waiting += [(inner, root) for inner in _children(found.doc)] if found else []


WEIGHTED: Final = Rules(fields={"backends": _weighted}, defaults={"backends": {}}, check=_no_cycle, uses=_children)
FAILOVER: Final = Rules(fields={"backends": _failover}, defaults={"backends": []}, check=_no_cycle, uses=_children)
