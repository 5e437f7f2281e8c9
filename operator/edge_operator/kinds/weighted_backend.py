"""WeightedBackend splits traffic over child backends in proportion to their weights."""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge, Le, MaxLen, MinLen

from edge_operator.api import catalog
from edge_operator.declare import Column, Keyed, Kind, Part
from edge_operator.parts import AnyBackend
from edge_operator.policies import Described


class Child(Part):
    """One destination and its share of the traffic."""

    ref: AnyBackend
    """The child backend: a WeightedBackend or FailoverBackend by kind and name, or any backend by id."""
    weight: Annotated[int, Ge(0), Le(10_000)]
    """Share of the traffic, 0 to 10000, in proportion to the sum of all weights."""


class Spec(Described):
    """A backend that splits traffic by weight."""

    backends: Annotated[list[Child], MinLen(1), MaxLen(64), Keyed(by="ref", value="weight")]
    """Child backends and their weights."""


KIND = Kind(
    name="WeightedBackend",
    spec=Spec,
    api=catalog.weighted_backends,
    short=("wb",),
    columns=(Column("Description", ".spec.description"),),
    example="""
    description: ninety to ten
    backends:
    - ref: {kind: FailoverBackend, name: example}
      weight: 90
    - ref: {id: bkdtg_2yrt9ZkAqlNPxGdGEsGS0fYYjNj}
      weight: 10
    """,
)
