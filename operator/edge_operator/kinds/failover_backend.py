"""FailoverBackend sends traffic to the first of its child backends that is there."""

from __future__ import annotations

from typing import Annotated

from annotated_types import MaxLen, MinLen

from edge_operator.api import catalog
from edge_operator.declare import Column, Kind
from edge_operator.parts import AnyBackend
from edge_operator.policies import Described


class Spec(Described):
    """A backend that falls back in order."""

    backends: Annotated[list[AnyBackend], MinLen(1), MaxLen(64)]
    """Child backends, first choice first: by kind and name, or by id."""


KIND = Kind(
    name="FailoverBackend",
    spec=Spec,
    api=catalog.failover_backends,
    short=("fb",),
    columns=(Column("Description", ".spec.description"),),
    example="""
    description: blue before green
    backends:
    - id: bkdhr_2yrt9ZkAqlNPxGdGEsGS0fYYjNj
    - id: bkdtg_2yrt9bq0U3H2dBBOxrYmAkFMnvJ
    """,
)
