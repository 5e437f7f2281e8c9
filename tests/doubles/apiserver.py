"""An API server in memory: what of its behaviour the operator relies on, and nothing else.

uid, resourceVersion, generation, finalizers, deletionTimestamp, the status subresource, defaults and pruning by the
derived schemas, owner references. Whoever holds it holds the cluster's state; processes come and go.
"""

from __future__ import annotations

import itertools
import marshal
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

from edge_operator.declare import GROUP, VERSION
from edge_operator.derive import crd
from edge_operator.engine.state import stamp
from edge_operator.kinds import DECLARED

T = TypeVar("T")
Object = dict[str, Any]
Key = tuple[str, str, str]
"""Kind, namespace, name."""
Change = Callable[[Key, Object | None, Object | None, str], None]
"""Told of each change: key, before, after, and who made it ("user" or "operator")."""


_REMEMBERED = 4
"""So many changes a cache may be behind."""


class Conflict(Exception):
    """409: the object is not at that resourceVersion any more."""


class Gone(Exception):
    """404."""


def copied(value: T) -> T:
    """A deep copy of JSON, many times faster than one of anything."""
    found: T = marshal.loads(marshal.dumps(value))  # noqa: S302  # what it wrote itself
    return found


@cache
def _schema(kind: str) -> Object:
    return crd.schema(DECLARED[kind])


@dataclass
class ApiServer:
    """Custom resources and Secrets. Everything that goes in and out is a copy."""

    now: Callable[[], datetime]
    objects: dict[Key, Object] = field(default_factory=dict)
    listeners: list[Change] = field(default_factory=list)
    past: dict[Key, list[Object]] = field(default_factory=dict)
    """Each object as it was before its last changes, the last of all first: what a cache that is behind shows."""

    recent: deque[dict[Key, Object]] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    """All objects as they were before the last changes of any, the last of all first."""
    removals: dict[str, str] = field(default_factory=dict)
    """Since when the definition of a kind is being removed."""

    def __post_init__(self) -> None:
        self.version, self._uids = 0, itertools.count(1)

    def get(self, key: Key) -> Object | None:
        return copied(self.objects.get(key))

    def of(self, kind: str) -> list[Object]:
        return [copied(o) for (k, _, _), o in sorted(self.objects.items()) if k == kind]

    def apply(self, key: Key, changes: Mapping[str, Any], by: str = "user", version: str | None = None) -> Object:
        """Create, or replace those top-level members and the labels and annotations that are given.

        With a version it has to be at that one; with an empty one, there must be none yet.
        """
        before = self.objects.get(key)
        if version is not None and version != (before["metadata"]["resourceVersion"] if before else ""):
            raise Conflict(key)
        after = copied(before) if before else self._new(key)
        meta = dict(changes.get("metadata") or {})
        for part in ("labels", "annotations"):
            if part in meta:
                merged = {**after["metadata"].get(part, {}), **meta.pop(part)}
                after["metadata"][part] = {k: v for k, v in merged.items() if v is not None}
        after["metadata"].update(copied(meta))
        after.update({k: copied(v) for k, v in changes.items() if k not in ("metadata", "status")})
        if key[0] in DECLARED:
            after = shaped(_schema(key[0]), after)
        if before is not None and before.get("spec") != after.get("spec"):
            after["metadata"]["generation"] += 1
        return self._store(key, before, after, by)

    def patch_metadata(self, key: Key, version: str | None, change: Callable[[Object], None], by: str) -> Object:
        """Change the metadata; the object goes when it is being deleted and its last finalizer went."""
        before = self._at(key, version)
        after = copied(before)
        change(after["metadata"])
        if after["metadata"].get("deletionTimestamp") and not after["metadata"].get("finalizers"):
            self._remove(key, by)
            return after
        return self._store(key, before, after, by)

    def patch_status(self, key: Key, version: str | None, patch: Mapping[str, Any], by: str) -> Object:
        """Merge-patch the status, pruned and defaulted as its schema says."""
        before = self._at(key, version)
        after = copied(before)
        after["status"] = merged(after.get("status") or {}, patch)
        after = shaped(_schema(key[0]), after)
        return self._store(key, before, after, by)

    def delete(self, key: Key, by: str = "user") -> None:
        before = self._at(key, None)
        if before["metadata"].get("finalizers"):
            if before["metadata"].get("deletionTimestamp"):
                return
            after = copied(before)
            after["metadata"]["deletionTimestamp"] = stamp(self.now())
            after["metadata"]["generation"] = after["metadata"].get("generation", 1) + 1
            self._store(key, before, after, by)
        else:
            self._remove(key, by)

    def remove_definition(self, kind: str) -> None:
        """`kubectl delete crd`: every resource of the kind is deleted."""
        self.removals[kind] = stamp(self.now())
        for key in [key for key in self.objects if key[0] == kind]:
            self.delete(key)

    def _new(self, key: Key) -> Object:
        kind, namespace, name = key
        meta: Object = {
            "name": name,
            "namespace": namespace,
            "uid": f"00000000-0000-4000-8000-{next(self._uids):012d}",
            "creationTimestamp": stamp(self.now()),
        }
        if kind in DECLARED:
            meta["generation"] = 1
            return {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind, "metadata": meta}
        return {"apiVersion": "v1", "kind": kind, "metadata": meta}

    def _at(self, key: Key, version: str | None) -> Object:
        found = self.objects.get(key)
        if found is None:
            raise Gone(key)
        if version is not None and found["metadata"]["resourceVersion"] != version:
            raise Conflict(key)
        return found

    def _store(self, key: Key, before: Object | None, after: Object, by: str) -> Object:
        if before is not None and before == after:
            return copied(after)  # as the API server does: no change, no new version, no event
        if before is not None:
            self.past[key] = [before, *self.past.get(key, ())][:_REMEMBERED]
        self.recent.appendleft(dict(self.objects))
        self.version += 1
        after["metadata"]["resourceVersion"] = str(self.version)
        self.objects[key] = after
        self._tell(key, before, after, by)
        return copied(after)

    def _remove(self, key: Key, by: str) -> None:
        self.recent.appendleft(dict(self.objects))
        before = self.objects.pop(key)
        self.version += 1
        self._tell(key, before, None, by)
        uid = before["metadata"]["uid"]
        for other, held in list(self.objects.items()):
            owners = held["metadata"].get("ownerReferences") or ()
            if owners and all(o["uid"] == uid for o in owners):
                self._remove(other, "garbage collector")

    def _tell(self, key: Key, before: Object | None, after: Object | None, by: str) -> None:
        for listener in self.listeners:
            listener(key, copied(before), copied(after), by)


def merged(target: Mapping[str, Any], patch: Mapping[str, Any]) -> Object:
    """RFC 7386."""
    out = dict(target)
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        elif isinstance(value, Mapping):
            old = out.get(key)
            out[key] = merged(old if isinstance(old, Mapping) else {}, value)
        else:
            out[key] = copied(value)
    return out


_TYPES: Mapping[str, type] = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict}


def shaped(schema: Mapping[str, Any], value: Any) -> Any:
    """The value with defaults filled in and unknown members dropped, as a structural schema has it.

    Raises:
        TypeError: a value is of another type than the schema says; an API server refuses the whole object for it.
    """
    if value is not None and not isinstance(value, _TYPES.get(schema.get("type", ""), object)):
        raise TypeError(f"{value!r} is no {schema['type']}")
    if isinstance(value, list) and "items" in schema:
        return [shaped(schema["items"], item) for item in value]
    if not isinstance(value, dict):
        return value
    if "properties" not in schema:
        inner = schema.get("additionalProperties")
        return {k: shaped(inner, v) for k, v in value.items()} if isinstance(inner, dict) else value
    known = schema["properties"]
    out = {k: shaped(known[k], v) for k, v in value.items() if k in known and v is not None}
    for name, member in known.items():
        if name not in out and "default" in member:
            out[name] = shaped(member, copied(member["default"]))
    return out
