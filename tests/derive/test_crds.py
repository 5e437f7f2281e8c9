"""CustomResourceDefinitions, as far as they can be judged without an API server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from edge_operator.declare import CustomResource, Kind, Part
from edge_operator.derive import crd, documents
from edge_operator.derive.structural import RULES, ordered, structural
from edge_operator.engine import project
from edge_operator.kinds import DECLARED, MIRRORS

every_kind = pytest.mark.parametrize("kind", DECLARED.values(), ids=DECLARED)


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema inside a schema, with its path."""
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}".lstrip("."))
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if key in schema:
            yield from nodes(schema[key], f"{path}{mark}")


def members(kind: CustomResource[Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every named member of a resource's schema."""
    for path, schema in nodes(crd.schema(kind)):
        for name, child in schema.get("properties", {}).items():
            yield f"{path}.{name}".lstrip("."), child


@every_kind
def test_schemas_are_structural(kind: CustomResource[Any]) -> None:
    """Source: Kubernetes, Specifying a structural schema."""
    for path, schema in nodes(crd.schema(kind)):
        assert schema.get("type") in {"object", "array", "string", "integer", "number", "boolean"}, path
        assert not schema.keys() & {"$ref", "anyOf", "oneOf", "allOf", "not", "title", "const", "nullable"}, path
        assert not {"properties", "additionalProperties"} <= schema.keys(), path
        assert ("items" in schema) == (schema["type"] == "array"), path
        assert ordered(schema) == schema, path


@every_kind
def test_every_field_is_described(kind: CustomResource[Any]) -> None:
    silent = [path for path, schema in members(kind) if not schema.get("description") and path != "metadata"]

    assert silent == []


@every_kind
def test_descriptions_are_sentences(kind: CustomResource[Any]) -> None:
    for path, schema in members(kind):
        text = schema.get("description", "A.")
        assert text.endswith("."), path
        assert "\n" not in text, path


@every_kind
def test_sets_hold_scalars_alone(kind: CustomResource[Any]) -> None:
    """Atomic objects would be legal, but server-side apply, and so Helm, refuses every resource with such a set."""
    for path, schema in nodes(crd.schema(kind)):
        if schema.get("x-kubernetes-list-type") == "set":
            assert schema["items"]["type"] not in {"object", "array"}, path


@every_kind
def test_maps_have_keys_that_are_there(kind: CustomResource[Any]) -> None:
    """Source: Kubernetes API reference, x-kubernetes-list-map-keys."""
    for path, schema in nodes(crd.schema(kind)):
        if schema.get("x-kubernetes-list-type") == "map":
            items, keys = schema["items"], schema["x-kubernetes-list-map-keys"]
            assert {*keys} <= {*items["required"]} & items["properties"].keys(), path


@every_kind
def test_a_mark_never_replaces_the_rules_of_a_part(kind: CustomResource[Any]) -> None:
    def check(part: type[Part], schema: dict[str, Any], path: str) -> None:
        rules = [rule["rule"] for rule in schema.get(RULES, ())]
        assert [rule.cel for rule in part.rules] == rules[: len(part.rules)], path
        for field in project.fields(part):
            child = schema["properties"][field.alias]
            if inner := field.part or _leaf(part, field.name):
                check(inner, child.get("items", child), f"{path}.{field.alias}")

    check(kind.spec, crd.spec(kind), "spec")


def _leaf(part: type[Part], name: str) -> type[Part] | None:
    """The class of a reference or secret input, whose own rules count too."""
    annotation = part.model_fields[name].annotation
    found = [t for t in project._types(annotation) if isinstance(t, type) and issubclass(t, Part)]
    return found[0] if found else None


@every_kind
def test_what_costs_cel_is_bounded(kind: CustomResource[Any]) -> None:
    for path, schema in nodes(crd.spec(kind)):
        if schema["type"] == "string" and "enum" not in schema:
            assert "maxLength" in schema, path
        if schema["type"] == "array":
            assert "maxItems" in schema, path
        if "additionalProperties" in schema:
            assert "maxProperties" in schema, path


@every_kind
def test_a_fixed_field_can_neither_change_nor_come_nor_go(kind: CustomResource[Any]) -> None:
    spec = crd.spec(kind)
    for field in project.fields(kind.spec):
        if field.immutable:
            assert "self == oldSelf" in [rule["rule"] for rule in spec["properties"][field.alias][RULES]]
            on_parent = f"has(self.{field.alias}) == has(oldSelf.{field.alias})"
            optional = field.alias not in spec.get("required", ())
            assert optional == (on_parent in [rule["rule"] for rule in spec.get(RULES, ())])


@every_kind
def test_untouched_resources_count_as_not_yet_seen(kind: CustomResource[Any]) -> None:
    """Helm and Flux take a resource without status for done. Source: kstatus."""
    status = crd.schema(kind)["properties"]["status"]

    assert status["default"] == {"observedGeneration": -1}
    assert status["properties"]["observedGeneration"]["default"] == -1


@every_kind
def test_a_status_takes_whatever_the_service_says(kind: CustomResource[Any]) -> None:
    """A limit there would make the operator's own writes fail."""
    limits = {"maxLength", "minLength", "maxItems", "minItems", "maxProperties", "pattern", "minimum", "maximum", RULES}
    for path, schema in nodes(crd.schema(kind)["properties"]["status"]):
        assert not limits & schema.keys(), path


@every_kind
def test_kubectl_get_shows_what_matters(kind: CustomResource[Any]) -> None:
    every = crd.columns(kind)
    columns = [column for column in every if not column.get("priority")]
    names = [column["name"] for column in columns]

    wide = [(column["name"], every.index(column)) for column in every if column.get("priority")]
    assert wide == ([] if kind.name in MIRRORS else [("Message", len(every) - 2)])
    fixed = ["Ready", "Reason", "ID"] if isinstance(kind, Kind) else ["Ready", "Reason"]
    fixed = ["ID"] if kind.name in MIRRORS else fixed  # it is ready while it is there
    assert names[: len(fixed)] == fixed
    assert names[-1] == "Age"
    assert len(set(names)) == len(names) <= 7
    dates = [column["jsonPath"] for column in columns if column["type"] == "date"]
    assert dates == [".metadata.creationTimestamp"], "kubectl shows a time in the future as <invalid>"
    paths = {path for path, _ in members(kind)}
    assert {column["jsonPath"].removeprefix(".") for column in columns[len(fixed) : -1]} <= paths


def test_names_are_told_apart() -> None:
    names = [crd.crd(kind)["spec"]["names"] for kind in DECLARED.values()]
    words = [word for n in names for word in (n["plural"], n["singular"], *n["shortNames"])]

    assert len(set(words)) == len(words)


@every_kind
def test_crds_fit_where_kubectl_keeps_a_copy(kind: CustomResource[Any]) -> None:
    """`kubectl apply` writes the whole manifest into an annotation of at most 262,144 bytes."""
    assert len(documents.dump(crd.crd(kind))) < 131_072


def test_a_union_is_refused_when_it_is_derived() -> None:
    with pytest.raises(TypeError, match="OneOf"):
        structural({"anyOf": [{"type": "string"}, {"type": "integer"}]})
