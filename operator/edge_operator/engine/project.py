"""Projects a spec onto a request body, by the marks of its fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from edge_operator.api.wire import SentAs
from edge_operator.declare import (
    AnyRef,
    Body,
    CaseInsensitive,
    Immutable,
    InPath,
    Keyed,
    Local,
    Module,
    ObjectRef,
    Part,
    Reference,
    Reissues,
    RemoteRef,
    SecretInput,
    SecretKeyRef,
    TextInput,
    TLSSecretRef,
    Unordered,
)
from edge_operator.engine.operations import Stalled
from edge_operator.engine.reasons import Stalls

Ref = AnyRef | ObjectRef | RemoteRef
M = TypeVar("M")


@dataclass(frozen=True)
class Field:
    """One field of a part: its three names, its marks, and the part inside it if there is one."""

    name: str
    alias: str
    wire: str
    reference: Reference | None
    module: Module | None
    keyed: Keyed | None
    in_path: str | None
    local: bool
    immutable: bool
    reissues: bool
    unordered: bool
    caseless: bool
    secret: bool
    text: bool
    part: type[Part] | None


def fields(part: type[BaseModel]) -> tuple[Field, ...]:
    """The fields of a part, in the order they are declared."""
    known = _FIELDS.get(part)
    if known is None:
        known = _FIELDS[part] = tuple(_field(name, info) for name, info in part.model_fields.items())
    return known


_FIELDS: dict[type[BaseModel], tuple[Field, ...]] = {}
"""What follows from a class alone, worked out once for each."""


def _field(name: str, info: FieldInfo) -> Field:
    def mark(kind: type[M]) -> M | None:
        return next((m for m in info.metadata if isinstance(m, kind)), None)

    inner = [*_types(info.annotation)]
    sent, in_path = mark(SentAs), mark(InPath)
    reference = mark(Reference) or next((t for t in inner if isinstance(t, Reference)), None)
    parts = [t for t in inner if isinstance(t, type) and issubclass(t, Part)]
    leaf = any(t in (AnyRef, ObjectRef, RemoteRef, SecretInput, TextInput, TLSSecretRef) for t in parts)
    return Field(
        name=name,
        alias=info.alias or name,
        wire=sent.name if sent else in_path.name if in_path else name,
        reference=reference,
        module=mark(Module),
        keyed=mark(Keyed),
        in_path=in_path.name if in_path else None,
        local=mark(Local) is not None,
        immutable=mark(Immutable) is not None,
        reissues=mark(Reissues) is not None,
        unordered=mark(Unordered) is not None,
        caseless=mark(CaseInsensitive) is not None,
        secret=SecretInput in parts or TextInput in parts,
        text=TextInput in parts,
        part=None if leaf or not parts else parts[0],
    )


def _types(annotation: Any) -> Iterator[Any]:
    if isinstance(annotation, type):
        yield annotation
    yield from getattr(annotation, "__metadata__", ())
    for arg in get_args(annotation):
        yield from _types(arg)


@dataclass(frozen=True)
class Bindings:
    """What stands in for pointers in a body: ids by (kind, name), values by Secret and key."""

    ids: Mapping[tuple[str, str], str]
    values: Mapping[SecretKeyRef, str]

    def id_of(self, ref: Ref, mark: Reference) -> str:
        """The remote id that a reference means."""
        if ref.id is not None:
            return ref.id
        kind = (ref.kind if isinstance(ref, AnyRef) else None) or mark.kinds[0]
        return self.ids[kind, getattr(ref, "name", "")]


def body(spec: BaseModel, bindings: Bindings) -> Body:
    """The request body that makes the remote object look like `spec`. What is unset stays absent."""
    out: Body = {}
    for field in fields(type(spec)):
        value = getattr(spec, field.name)
        if value is None or field.local or field.in_path or isinstance(value, timedelta):
            continue
        if isinstance(value, TLSSecretRef):
            out |= {wire: bindings.values[ref] for wire, ref in value.members.items()}
            continue
        out[field.wire] = value_of(value, field, bindings)
    return out


def path(spec: BaseModel, bindings: Bindings) -> dict[str, str]:
    """The ids in the object's address: `{"edge_id": "edghts_1"}`."""
    return {
        field.in_path: bindings.id_of(getattr(spec, field.name), field.reference)
        for field in fields(type(spec))
        if field.in_path and field.reference
    }


def value_of(value: Any, field: Field, bindings: Bindings) -> Any:
    """One field's value in wire form."""
    match value:
        case AnyRef() | ObjectRef() | RemoteRef():
            if field.reference is None:
                raise TypeError(f"{field.name}: a reference without a Reference mark")
            return bindings.id_of(value, field.reference)
        case SecretInput():
            return bindings.values[value.secret_key_ref]
        case TextInput():
            return value.value if value.secret_key_ref is None else bindings.values[value.secret_key_ref]
        case list() if field.keyed:
            return _keyed(value, field, field.keyed, bindings)
        case list():
            return [value_of(item, field, bindings) for item in value]
        case BaseModel():
            return body(value, bindings)
        case _:
            return value


def _keyed(items: list[Any], field: Field, keyed: Keyed, bindings: Bindings) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if field.part is None:
        raise TypeError(f"{field.name}: Keyed is for lists of parts")
    key = next(f for f in fields(field.part) if f.name == keyed.by)
    for index, item in enumerate(items):
        name = value_of(getattr(item, keyed.by), key, bindings)
        if name in out:
            raise Stalled(
                Stalls.DUPLICATE_REFERENCE,
                f"spec.{field.alias}[{index}].{key.alias}: {name} is listed twice; list each backend once",
            )
        out[name] = getattr(item, keyed.value)
    return out
