"""Connection is an account of the service that resources of one namespace go through."""

from __future__ import annotations

from edge_operator import connections
from edge_operator.connections import COLUMNS, Status
from edge_operator.declare import Companion


class Spec(connections.Spec):
    """Where an account is, with which key, and how hard it may be asked; the Secrets are in the same namespace."""


KIND = Companion(
    name="Connection",
    spec=Spec,
    status=Status,
    short=("econn",),
    columns=COLUMNS,
    example=connections.example("example-connection"),
    needs=connections.needs("example-connection"),
)
