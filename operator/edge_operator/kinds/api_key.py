"""APIKey creates a key for the management API and keeps its token in a Secret."""

from __future__ import annotations

from typing import Annotated

from edge_operator.api import catalog
from edge_operator.declare import Column, Immutable, Kind, Output, RemoteID, Token
from edge_operator.policies import Rotating


class Spec(Rotating):
    """A key that calls the management API."""

    owner_id: Annotated[RemoteID | None, Immutable()] = None
    """User or bot that owns the key; only admins may name another than themselves. Cannot be changed."""


KIND = Kind(
    name="APIKey",
    spec=Spec,
    api=catalog.api_keys,
    short=("ak",),
    columns=(Column("Secret", ".status.secretName"), Column("Description", ".spec.description")),
    lifecycle=Token(),
    outputs=(
        Output("token", key="token"),
        Output("id", key="id"),
        Output("previous.token", key="previous-token"),
        Output("previous.id", key="previous-id"),
    ),
    on_remote_missing="Stall",
    example="""
    description: used by the build
    rotation: {interval: 720h, overlap: 24h}
    """,
)
