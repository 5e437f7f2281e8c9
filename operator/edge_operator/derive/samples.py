"""A kind's example as whole manifests, all of them named `example`, so that references among samples resolve."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from textwrap import dedent, indent
from typing import Any

from edge_operator.declare import GROUP, VERSION, Companion, CustomResource, Kind
from edge_operator.derive import documents

NAME = "example"


def shown(kind: CustomResource[Any]) -> bool:
    """Whether there is a sample to apply: not of what only the operator writes."""
    return not (isinstance(kind, Companion) and kind.mirror)


def text(kind: CustomResource[Any]) -> str:
    """What the example needs, then the example, as its author laid it out."""
    needs = dedent(kind.needs).strip()
    head = f"apiVersion: {GROUP}/{VERSION}\nkind: {kind.name}\nmetadata:\n  name: {NAME}\nspec:\n"
    sample = head + indent(dedent(kind.example).strip(), "  ") + "\n"
    return f"{needs}\n---\n{sample}" if needs else sample


def file(kind: CustomResource[Any]) -> str:
    """Where the sample stands below docs/samples. Those of companions stand apart, so that the others can be applied
    as a folder to any account.
    """
    name = f"{kind.name.lower()}.yaml"
    return name if isinstance(kind, Kind) else f"companions/{name}"


def manifests(kind: CustomResource[Any]) -> list[dict[str, Any]]:
    """The same as objects; the resource itself is the last."""
    return deepcopy(_loaded(text(kind)))


@cache
def _loaded(sample: str) -> list[dict[str, Any]]:
    return documents.load(sample)


def spec(kind: CustomResource[Any]) -> dict[str, Any]:
    """The example alone."""
    found: dict[str, Any] = manifests(kind)[-1]["spec"]
    return found
