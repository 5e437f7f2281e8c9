"""Who has to be looked at when something changes, as the index of the operator has it."""

from __future__ import annotations

from typing import Any

from doubles.apiserver import ApiServer, Key, Object
from edge_operator.engine import references
from edge_operator.kinds import KINDS


def rivals(api: ApiServer, key: Key, before: Object | None, after: Object | None) -> list[Key]:
    """Others that adopt what a resource has or adopts, where that changed hands."""
    if before is not None and after is not None and before.get("spec") == after.get("spec"):
        return []
    ids = {i for r in (before, after) if r for i in (r["spec"].get("externalID"), (r.get("status") or {}).get("id"))}
    return [
        other
        for other, found in api.objects.items()
        if other[0] == key[0] and other != key and found["spec"].get("externalID") in ids - {None}
    ]


def seen_by_others(resource: Object | None) -> Any:
    """What of a resource those that point at it are woken by."""
    if resource is None:
        return None
    return (resource.get("status") or {}).get("id"), bool(resource["metadata"].get("deletionTimestamp"))


def secrets_of(resource: Object) -> set[str]:
    """Secrets that a resource reads, and the one that it would write."""
    kind, spec = KINDS[resource["kind"]], resource.get("spec") or {}
    written = spec.get("secretName") or f"{resource['metadata']['name']}-{kind.name.lower()}"
    try:
        read = references.secret_keys(kind.spec.model_validate(spec))
    except ValueError:
        return {written}
    return {ref.name for ref in read} | {written}
