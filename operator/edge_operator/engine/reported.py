"""What a status shows: what the service says that the user did not say.

Everything in the read shape of a kind's collection, but for what the spec has a field for, for secrets (declared with
`repr=False`), for what goes into the Secret instead, and for resources of other collections that come along
(`routes` of an HTTPS edge). One exception: what the service settles for good when the user leaves it open, the validity
of a certificate and the owner of a token, is shown although the spec has fields for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, get_args, get_origin

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from edge_operator.api.wire import Entity, Ref, Wire
from edge_operator.declare import Immutable, InPath, Kind, Part, Reissues, SentAs, TLSSecretRef, to_camel


@dataclass(frozen=True)
class Reported:
    """One member of a status: `name` here, `wire` in the answer. `inside` is empty but for nested members."""

    wire: str
    name: str
    type: Any
    description: str
    inside: tuple[Reported, ...] = ()


Tree = tuple[Reported, ...]


def fields(kind: Kind[Any]) -> Tree:
    """What the status of this kind can show, in the order of the read shape, `id`, `uri` and `createdAt` first."""
    read: Any = kind.api.read
    spec: Any = kind.spec
    uploaded = {
        wire
        for shape in spec.model_fields.values()
        if _model(shape.annotation, TLSSecretRef)
        for wire in TLSSecretRef.wires
    }
    published = frozenset(output.source for output in kind.outputs if output.source != "id") | uploaded
    return _remainder(read, spec, published)


def values(kind: Kind[Any], answer: Mapping[str, Any]) -> dict[str, Any]:
    """The members of a status that this answer gives, for example `{"id": "sshca_1", "keyType": "ecdsa"}`.

    `answer` is the resource as the service returned it. Null and absent members are left out, and so are those of
    another type than the API document says: a cluster would refuse the whole status for one of them, the id with it.
    """
    return _values(fields(kind), answer)


def readable(kind: Kind[Any], answer: Mapping[str, Any]) -> dict[str, Any]:
    """The answer without what only a status shows and is of another type than it should be: as if it were absent."""
    types = {member.wire: member.type for member in fields(kind) if not member.inside}
    return {name: v for name, v in answer.items() if v is None or name not in types or _fits(types[name], v)}


def _values(tree: Tree, answer: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for member in tree:
        value = answer.get(member.wire)
        if member.inside:
            value = _values(member.inside, value) or None if isinstance(value, Mapping) else None
        elif value is not None and not _fits(member.type, value):
            value = None
        if value is not None:
            found[member.name] = value
    return found


def _fits(shape: Any, value: Any) -> bool:
    """Whether a value is of the type that a member has."""
    try:
        _adapter(shape).validate_python(value, strict=True)
    except ValidationError:
        return False
    return True


@cache
def _adapter(shape: Any) -> TypeAdapter[Any]:
    return TypeAdapter(shape)


@cache
def _remainder(read: type[Wire], spec: type[Part], published: frozenset[str]) -> Tree:
    said = {_sent_as(name, shape): shape for name, shape in spec.model_fields.items()}
    found = []
    for name, shape in read.model_fields.items():
        stated, inner = said.get(_sent_as(name, shape)), _model(shape.annotation, Wire)
        if not shape.repr or name in published or (inner and issubclass(inner, Entity)):
            continue
        if stated is None or _left_to_the_service(stated):
            found.append(_member(name, shape, _everything(inner) if inner else ()))
        elif inside := _inside(inner, stated):
            found.append(_member(name, shape, inside, stated.description))
    return tuple(found)


def _inside(inner: Any, stated: FieldInfo) -> Tree:
    """What a nested shape says beyond the part of the spec that it answers to."""
    part = _model(stated.annotation, Part)
    return _remainder(inner, part, frozenset()) if part and inner and inner is not Ref else ()


def _everything(shape: type[Wire]) -> Tree:
    """All members of a nested shape that the spec knows nothing of; lists of shapes are shown as they are."""
    return tuple(_member(name, field, ()) for name, field in shape.model_fields.items() if field.repr)


def _member(name: str, shape: FieldInfo, inside: Tree, description: str | None = None) -> Reported:
    return Reported(name, to_camel(name), shape.annotation, shape.description or description or "", inside)


def _left_to_the_service(shape: FieldInfo) -> bool:
    """Whether this field fixes a plain value of the remote object and may be left out."""
    fixed = any(isinstance(mark, Immutable | Reissues) for mark in shape.metadata)
    plain = any(get_origin(option) is Annotated and get_args(option)[0] is str for option in get_args(shape.annotation))
    return fixed and not shape.is_required() and plain


def _sent_as(name: str, shape: FieldInfo) -> str:
    return next((mark.name for mark in shape.metadata if isinstance(mark, SentAs | InPath)), name)


def _model(annotation: Any, base: type) -> Any:
    """The model inside an annotation such as `Annotated[list[Ref], …]` or `Part | None`, if there is one."""
    if isinstance(annotation, type) and issubclass(annotation, base):
        return annotation
    return next((m for a in get_args(annotation) if (m := _model(a, base))), None)
