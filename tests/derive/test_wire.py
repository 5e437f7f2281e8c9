"""Every field of a spec goes somewhere, and everything that can be written is reached."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from pydantic import BaseModel

from edge_operator.api.wire import Body
from edge_operator.declare import Kind, Part, TLSSecretRef
from edge_operator.engine import project
from edge_operator.kinds import KINDS

LEFT_OUT: dict[str, dict[str, str]] = {}
"""By kind: wire fields that no spec field reaches, each with the reason."""

every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def inner_body(annotation: Any) -> type[BaseModel] | None:
    """The shape inside an annotation such as `EndpointBackendMutate | None`."""
    if isinstance(annotation, type) and issubclass(annotation, Body):
        return annotation
    return next((found for arg in get_args(annotation) if (found := inner_body(arg))), None)


def sent(part: type[Part]) -> list[project.Field]:
    return [field for field in project.fields(part) if not field.local and not field.in_path]


def unreachable(part: type[Part], body: type[BaseModel], path: str = "") -> list[str]:
    """Fields of a spec that have no place in the body."""
    found = []
    for field in sent(part):
        shape = body.model_fields.get(field.wire)
        if part.model_fields[field.name].annotation is TLSSecretRef:
            found += [wire for wire in TLSSecretRef.wires if wire not in body.model_fields]
        elif shape is None:
            found.append(f"{path}{field.alias}: {body.__name__} has no {field.wire}")
        elif field.part and not field.keyed:
            inside = inner_body(shape.annotation)
            found += unreachable(field.part, inside, f"{path}{field.alias}.") if inside else [f"{path}{field.alias}"]
    return found


def unreached(part: type[Part], body: type[BaseModel], path: str = "") -> list[str]:
    """Members of the body that no field of the spec fills."""
    by_wire = {field.wire: field for field in sent(part)}
    for name, shape in part.model_fields.items():
        if shape.annotation is TLSSecretRef:
            by_wire |= dict.fromkeys(TLSSecretRef.wires, by_wire[name])
    found = []
    for name, shape in body.model_fields.items():
        field, inside = by_wire.get(name), inner_body(shape.annotation)
        if field is None:
            found.append(path + name)
        elif field.part and inside:
            found += unreached(field.part, inside, f"{path}{name}.")
    return found


@every_kind
def test_every_field_of_a_spec_reaches_the_wire(kind: Kind[Any]) -> None:
    assert kind.api.create is not None
    assert unreachable(kind.spec, kind.api.create) == []


@every_kind
def test_everything_that_can_be_written_is_reached_or_left_out_for_a_reason(kind: Kind[Any]) -> None:
    assert kind.api.create is not None
    left_out = LEFT_OUT.get(kind.name, {})

    assert sorted(left_out) == sorted(unreached(kind.spec, kind.api.create))
    assert all(left_out.values())


@every_kind
def test_ids_in_an_address_come_from_the_spec(kind: Kind[Any]) -> None:
    in_path = {field.in_path for field in project.fields(kind.spec) if field.in_path}

    assert {f"{{{name}}}" in kind.api.path for name in in_path} <= {True}
    assert kind.api.path.count("{") == len(in_path)


@every_kind
def test_modules_with_operations_of_their_own_are_modules_of_the_spec(kind: Kind[Any]) -> None:
    modules = {field.wire: field for field in project.fields(kind.spec) if field.module}

    assert sorted(kind.api.modules) == sorted(modules)
