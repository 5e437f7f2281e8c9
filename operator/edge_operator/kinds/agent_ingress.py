"""AgentIngress is a base domain of your own that agents connect through."""

from __future__ import annotations

from typing import Annotated

from annotated_types import MaxLen, MinLen

from edge_operator.api import catalog
from edge_operator.declare import Column, Immutable, Kind
from edge_operator.policies import Described


class Spec(Described):
    """A domain for agents. Its status names the NS records to set and the regional domains, which may grow."""

    domain: Annotated[str, MinLen(1), MaxLen(253), Immutable()]
    """A domain that you own, the base of regional agent-ingress domains; cannot be changed."""


KIND = Kind(
    name="AgentIngress",
    spec=Spec,
    api=catalog.agent_ingresses,
    short=("agin",),
    columns=(Column("Domain", ".spec.domain"),),
    on_remote_missing="Stall",
    example="""
    description: agents of the shop
    domain: tunnel.example.com
    """,
)
