"""A good or bad spec as a change to a kind's sample, and a change from one good spec to another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from edge_operator.declare import GROUP, VERSION
from edge_operator.derive import samples
from edge_operator.kinds import DECLARED

Judge = Literal["both", "API server"]


@dataclass(frozen=True)
class Case:
    """A sample with a change, as a JSON merge patch. `message` is part of the refusal, empty for a good spec.

    `judge` says who refuses: a few things only the API server can see, such as duplicates in a set.
    """

    reason: str
    kind: str
    change: Mapping[str, Any]
    message: str = ""
    judge: Judge = "both"
    name: str = "example"

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}"

    @property
    def spec(self) -> dict[str, Any]:
        """The sample's spec with the change in it."""
        merged: dict[str, Any] = merge(samples.spec(DECLARED[self.kind]), self.change)
        return merged

    @property
    def manifest(self) -> dict[str, Any]:
        """The whole resource."""
        return manifest(self.kind, self.spec, self.name)


@dataclass(frozen=True)
class Move:
    """A change from one good spec to another that the API server judges; both are changes to the sample."""

    reason: str
    kind: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    message: str = ""
    name: str = field(default="example")

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}"


def manifest(kind: str, spec: Mapping[str, Any], name: str = "example") -> dict[str, Any]:
    """A resource with this spec."""
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind, "metadata": {"name": name}, "spec": spec}


def merge(value: Any, change: Any) -> Any:
    """JSON merge patch. Source: RFC 7386."""
    if not isinstance(change, Mapping):
        return change
    found = dict(value) if isinstance(value, Mapping) else {}
    for key, inner in change.items():
        if inner is None:
            found.pop(key, None)
        else:
            found[key] = merge(found.get(key), inner)
    return found
