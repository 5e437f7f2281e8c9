"""Values and their schema belong together."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from chart.chart import CHART
from edge_operator.derive import documents

SCHEMA = json.loads((CHART / "values.schema.json").read_text())
(VALUES,) = documents.load((CHART / "values.yaml").read_text())


def leaves(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, member in schema["properties"].items():
        if "properties" in member:
            yield from leaves(member, f"{path}{name}.")
        else:
            yield f"{path}{name}", member


def objects(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield path, schema
    for name, member in schema["properties"].items():
        if "properties" in member:
            yield from objects(member, f"{path}{name}.")


def test_every_value_is_described() -> None:
    assert [path for path, member in leaves(SCHEMA) if not member.get("description", "").endswith(".")] == []


def test_every_object_refuses_what_it_does_not_know() -> None:
    assert [path for path, member in objects(SCHEMA) if member.get("additionalProperties") is not False] == []


def test_every_value_of_the_schema_has_a_default_and_the_other_way_round() -> None:
    def paths(values: Mapping[str, Any], schema: Mapping[str, Any], path: str = "") -> Iterator[str]:
        for name, value in values.items():
            member = schema["properties"][name]
            yield from paths(value, member, f"{path}{name}.") if "properties" in member else [f"{path}{name}"]

    assert {*paths(VALUES, SCHEMA)} == {path for path, _ in leaves(SCHEMA)} - {"global"}
