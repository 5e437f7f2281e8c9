"""The rules in Python. `tests/cluster/test_bad_input.py` asks a real API server about the same table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from derive.specs import CASES, FIXED, Case
from edge_operator.declare import CustomResource, Kind
from edge_operator.derive import crd
from edge_operator.derive.structural import RULES
from edge_operator.engine import project, references
from edge_operator.engine.operations import Stalled
from edge_operator.kinds import DECLARED


def refusal(kind: CustomResource[Any], spec: dict[str, Any]) -> str:
    """Why the operator does not work on a spec; empty when it does."""
    try:
        parsed = kind.spec.model_validate(spec)
        ids = references.ids(parsed, lambda named: references.Referent(f"id_of_{named[1]}"))
        values = dict.fromkeys(references.secret_keys(parsed), "value")
        if isinstance(kind, Kind):
            project.body(parsed, project.Bindings(ids, values))
    except (ValidationError, Stalled) as error:
        return str(error) or "refused"
    return ""


@pytest.mark.parametrize("case", [case for case in CASES if case.judge == "both"], ids=str)
def test_python_says_the_same_as_the_schema(case: Case) -> None:
    found = refusal(DECLARED[case.kind], case.spec)

    assert bool(found) == bool(case.message), f"{case}: {found or 'accepted'}"


def messages(schema: dict[str, Any]) -> Iterator[str]:
    """The messages of every rule in a schema."""
    yield from (rule["message"] for rule in schema.get(RULES, ()))
    inner = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]
    for child in inner:
        if child:
            yield from messages(child)


@pytest.mark.parametrize("kind", DECLARED.values(), ids=DECLARED)
def test_every_rule_has_a_spec_that_breaks_it(kind: CustomResource[Any]) -> None:
    """Rules that every kind has are tried on one."""
    tried = [case.message for case in CASES if case.message]
    shown = {
        "the name is too long": "or use at most 23",
        "too many bytes": "are allowed",
        "names must not be empty": "add",
        "should be a name of": "lower-case letters",
        "should be host:port": "should be host:port",
        "should be an RFC 3339": "should be an RFC 3339",
        "should start with": "should start",
    }

    for message in messages(crd.schema(kind)):
        if FIXED in message or message.startswith("should start with"):
            continue  # see MOVES; and each prefix is tried for one kind
        found = next((short for long, short in shown.items() if message.startswith(long)), message)
        assert any(part in found or found in part for part in tried), message
