"""Finds what a spec points at, and turns pointers into ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from edge_operator.declare import (
    AnyRef,
    ObjectRef,
    Reference,
    RemoteRef,
    SecretInput,
    SecretKeyRef,
    TextInput,
    TLSSecretRef,
)
from edge_operator.engine import project
from edge_operator.engine.operations import Stalled, Waiting
from edge_operator.engine.reasons import Stalls, Waits

Named = tuple[str, str]
"""Kind and name of a resource in the namespace at hand: ("WeightedBackend", "blue")."""


ConnectionKey = tuple[str, str, str]
"""Kind, namespace and name of a connection: ("Connection", "team-a", "main")."""
DEFAULT_CONNECTION: ConnectionKey = ("ClusterConnection", "", "default")
"""What a resource goes through that names none."""


def connection(namespace: str, spec: Mapping[str, Any]) -> ConnectionKey:
    """The connection of a resource in this namespace, from its spec as written, valid or not."""
    ref = spec.get("connectionRef")
    if not isinstance(ref, Mapping) or not isinstance(ref.get("name"), str):
        return DEFAULT_CONNECTION
    if ref.get("kind") == "ClusterConnection":
        return "ClusterConnection", "", ref["name"]
    return "Connection", namespace, ref["name"]


@dataclass(frozen=True)
class Pointer:
    """One reference found in a spec. `at` is its path, for messages: `spec.backends[0].ref`."""

    at: str
    ref: AnyRef | ObjectRef | RemoteRef
    mark: Reference

    @property
    def named(self) -> Named | None:
        """The resource that is meant, if it is named rather than given by id."""
        name = getattr(self.ref, "name", None)
        if name is None:
            return None
        kind = (self.ref.kind if isinstance(self.ref, AnyRef) else None) or self.mark.kinds[0]
        return kind, name


@dataclass(frozen=True)
class Referent:
    """What is known of a resource that somebody points at: its remote id if it has one yet."""

    id: str | None
    deleting: bool = False


def pointers(spec: BaseModel) -> list[Pointer]:
    """Every reference in a spec."""
    return [*_pointers(spec, "spec", None)]


def _pointers(value: Any, at: str, mark: Reference | None) -> Iterator[Pointer]:
    match value:
        case AnyRef() | ObjectRef() | RemoteRef() if mark is not None:
            yield Pointer(at, value, mark)
        case SecretInput() | TextInput():
            return
        case BaseModel():
            for field in project.fields(type(value)):
                yield from _pointers(getattr(value, field.name), f"{at}.{field.alias}", field.reference)
        case list():
            for index, item in enumerate(value):
                yield from _pointers(item, f"{at}[{index}]", mark)


def secret_keys(spec: BaseModel) -> dict[SecretKeyRef, str]:
    """Every Secret key that a spec reads, and where it says so: {SecretKeyRef(...): "spec.oidc.clientSecret"}."""
    return dict(_secret_keys(spec, "spec"))


def _secret_keys(value: Any, at: str) -> Iterator[tuple[SecretKeyRef, str]]:
    match value:
        case TLSSecretRef():
            yield from ((ref, at) for ref in value.members.values())
        case SecretInput() | TextInput():
            if value.secret_key_ref is not None:
                yield value.secret_key_ref, at
        case BaseModel():
            for field in project.fields(type(value)):
                yield from _secret_keys(getattr(value, field.name), f"{at}.{field.alias}")
        case list():
            for index, item in enumerate(value):
                yield from _secret_keys(item, f"{at}[{index}]")


def ids(spec: BaseModel, find: Callable[[Named], Referent | None]) -> dict[Named, str]:
    """The remote ids of every resource that a spec names.

    Raises:
        Waiting: a resource is absent, has no id yet, or is being deleted.
        Stalled: an id has the wrong prefix, or a kind does not fit.

    Source: API document, Identifier prefixes.
    """
    out: dict[Named, str] = {}
    for pointer in pointers(spec):
        named = pointer.named
        if named is None:
            _check_prefix(pointer, str(pointer.ref.id))
            continue
        kind, name = named
        if kind not in pointer.mark.kinds:
            raise Stalled(
                Stalls.INVALID_REFERENCE,
                f"{pointer.at}: {kind} does not fit here; use {' or '.join(pointer.mark.kinds)}",
            )
        found = find(named)
        if found is None:
            message = f"{pointer.at}: there is no {kind} named {name!r} in this namespace"
        elif found.deleting:
            message = f"{pointer.at}: {kind} {name!r} is being deleted"
        elif found.id is None:
            message = f"{pointer.at}: {kind} {name!r} has no id yet"
        else:
            out[named] = found.id
            continue
        raise Waiting(Waits.REFERENCE_NOT_READY, message)
    return out


def _check_prefix(pointer: Pointer, id_: str) -> None:
    if not id_.startswith(pointer.mark.ids):
        raise Stalled(
            Stalls.INVALID_REFERENCE,
            f"{pointer.at}: {id_!r} should start with {' or '.join(pointer.mark.ids)}",
        )


def cycle(start: Named, points_at: Callable[[Named], Iterable[Named]]) -> list[Named] | None:
    """A circle of references through `start`, as the resources in it, or None."""
    trail, visited = [start], {start}
    ahead = [iter(points_at(start))]
    while ahead:
        target = next(ahead[-1], None)
        if target is None:
            ahead.pop()
            trail.pop()
        elif target == start:
            return trail
        elif target not in visited:
            visited.add(target)
            trail.append(target)
            ahead.append(iter(points_at(target)))
    return None
