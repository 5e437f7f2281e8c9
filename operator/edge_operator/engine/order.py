"""The order of the operations that one change of an object takes."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

from edge_operator.declare import Body, Module
from edge_operator.engine.operations import DeleteModule, Operation, Path, PutModule, Update
from edge_operator.engine.project import Field
from edge_operator.engine.state import Desired

_TERMINATION = "tls_termination"


class _Rank(IntEnum):
    """The order of the steps of one change: what protects goes on before all else and comes off after all else.

    TLS termination decides what the service can see: at the edge it comes before what protects, upstream after all.
    Source: API document, TLS termination rules, 2.
    """

    SIGHT_GAINED = 0
    GUARDS_ON = 1
    FIELDS = 2
    MODULES_ON = 3
    MODULES_OFF = 4
    GUARDS_DISABLED = 5
    GUARDS_OFF = 6
    SIGHT_LOST = 7


def steps(
    desired: Desired, current: str, path: Path, body: Body, changed: Mapping[str, Field], removed: list[Field]
) -> list[Operation]:
    """The operations of one change, in the order in which nothing is ever less protected than before or after."""
    on = {w: f.module for w, f in changed.items() if f.module}
    off = {f.wire: f.module for f in removed if f.module}
    ranked: list[tuple[_Rank, Operation]] = [
        (_rank_on(w, module, body[w]), PutModule(current, w, body[w], path))
        for w, module in on.items()
        if module.own_path
    ]
    patches: dict[_Rank, Body] = {}
    for wire in changed:
        if wire not in on or not on[wire].own_path:
            patches.setdefault(_rank_patched(wire, on, off, body), {})[wire] = body[wire]
    if defaults := _defaults(desired, removed):
        patches.setdefault(_Rank.FIELDS, {}).update(defaults)
    ranked += [(rank, Update(current, part, path)) for rank, part in patches.items()]
    ranked += [(_rank_off(w, module, on), DeleteModule(current, w, path)) for w, module in off.items()]
    return [step for _, step in sorted(ranked, key=lambda pair: pair[0])]


def _defaults(desired: Desired, removed: list[Field]) -> Body:
    """What fields that are no modules become again when they are left out."""
    shape = desired.kind.api.read.model_fields
    return {f.wire: shape[f.wire].get_default(call_default_factory=True) for f in removed if not f.module}


def _rank_on(wire: str, module: Module, value: Mapping[str, Any]) -> _Rank:
    if wire == _TERMINATION:
        return _Rank.SIGHT_LOST if value.get("terminate_at") == "upstream" else _Rank.SIGHT_GAINED
    if module.protects:
        return _Rank.GUARDS_ON if value.get("enabled", True) else _Rank.GUARDS_DISABLED
    return _Rank.MODULES_ON


def _rank_patched(wire: str, on: Mapping[str, Module], off: Mapping[str, Module], body: Body) -> _Rank:
    """One PATCH changes all at once, so a part of it waits only where modules have to come off before it."""
    rank = _rank_on(wire, on[wire], body[wire]) if wire in on else _Rank.FIELDS
    if rank is _Rank.SIGHT_LOST and any(module.protects for module in off.values()):
        return rank
    if rank is _Rank.GUARDS_DISABLED and not all(module.protects for module in off.values()):
        return rank
    return _Rank.FIELDS


def _rank_off(wire: str, module: Module, on: Mapping[str, Module]) -> _Rank:
    if wire == _TERMINATION and any(other.protects for other in on.values()):
        return _Rank.SIGHT_GAINED  # it may have been upstream, where no guard goes on
    return _Rank.GUARDS_OFF if module.protects else _Rank.MODULES_OFF
