"""ClusterConnection is an account of the service that resources of several namespaces go through.

The one named `default` is what resources without a connectionRef use.
"""

from __future__ import annotations

from typing import Annotated

from annotated_types import MaxLen

from edge_operator import connections
from edge_operator.connections import COLUMNS, Status
from edge_operator.declare import Companion, ObjectName, Unordered


class Spec(connections.Spec):
    """Where an account is, with which key, and how hard it may be asked; Secrets are in the operator's namespace."""

    allowed_namespaces: Annotated[list[ObjectName] | None, MaxLen(1000), Unordered()] = None
    """Namespaces whose resources may go through this connection; all of them when left out."""


KIND = Companion(
    name="ClusterConnection",
    spec=Spec,
    status=Status,
    short=("ceconn",),
    columns=COLUMNS,
    namespaced=False,
    example=connections.example("example-clusterconnection") + "allowedNamespaces: [default, team-a]\n",
    needs=connections.needs("example-clusterconnection"),
)
