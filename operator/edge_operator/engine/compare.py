"""Says whether what a spec asks for and what the service holds are the same, field by field.

Compared is only what the spec says: a member that the body does not have is the service's own business.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from edge_operator.api.wire import as_sent
from edge_operator.declare import Body, Kind
from edge_operator.engine import marker, reported
from edge_operator.engine.operations import Waiting, shown
from edge_operator.engine.project import Field, fields
from edge_operator.engine.reasons import Waits


def normal(field: Field, value: Any) -> Any:
    """The value without what carries no meaning: order where it has none, case where it has none."""
    match value:
        case dict() if field.part is not None and not field.keyed:
            return {f.wire: normal(f, value[f.wire]) for f in fields(field.part) if f.wire in value}
        case dict() if field.caseless:
            return {str(k).lower(): v for k, v in value.items()}
        case list():
            items = [v.lower() if field.caseless and isinstance(v, str) else v for v in value]
            return sorted(items, key=str) if field.unordered else items
        case str() if field.caseless:
            return value.lower()
        case _:
            return value


def held(kind: Kind[Any], answer: Body) -> Body:
    """What the service holds, in the form that requests have.

    Raises:
        Waiting: the service returned something else than this kind of object.
    """
    try:
        sent: Body = as_sent(kind.api.read.model_validate(reported.readable(kind, answer)))
    except ValidationError as error:
        where = ", ".join(".".join(map(str, e["loc"])) for e in error.errors())
        raise Waiting(
            Waits.SERVICE_UNAVAILABLE, shown(f"the service returned an object that cannot be read, at {where}")
        ) from None
    return sent


def differences(field: Field, want: Any, have: Any) -> list[str]:
    """Paths below a field at which the service holds something else: `["backend.enabled"]`; empty if none."""
    if field.secret and have is None:
        return []  # not echoed: the digest of what was sent decides
    if isinstance(want, dict) and field.part is not None and not field.keyed:
        if not isinstance(have, Mapping):
            return [field.alias]
        return [
            f"{field.alias}.{path}"
            for inner in fields(field.part)
            if inner.wire in want
            for path in differences(inner, want[inner.wire], have.get(inner.wire))
        ]
    return [] if normal(field, want) == normal(field, have) else [field.alias]


def drifted(
    spec: type[BaseModel], want: Mapping[str, Any], have: Mapping[str, Any], *, adopted: bool
) -> dict[str, list[str]]:
    """Wire names of the top-level fields that differ, each with the paths that do.

    An adopted object keeps its metadata without a marker until something else is written.
    """
    out: dict[str, list[str]] = {}
    for field in fields(spec):
        if field.wire not in want or field.in_path or field.local:
            continue
        if field.wire not in have:
            continue  # the service never returns it: the digest of what was sent decides
        held = have[field.wire]
        wanted = want[field.wire]
        if field.wire == "metadata" and adopted and marker.split(str(held))[1] is None:
            wanted = marker.split(wanted)[0]
        if found := differences(field, wanted, held):
            out[field.wire] = found
    return out
