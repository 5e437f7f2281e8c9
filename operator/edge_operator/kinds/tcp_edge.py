"""TCPEdge accepts TCP connections on its hostports and hands them to a backend."""

from __future__ import annotations

from edge_operator import parts
from edge_operator.api import catalog
from edge_operator.declare import Column, Inline, InlineGuard, Kind
from edge_operator.policies import Described


class Spec(Described):
    """An edge for TCP connections."""

    hostports: parts.Hostports
    """Where the edge listens, as host:port."""
    backend: Inline[parts.Backend] = None
    """Where connections go. Removing it removes the module from the edge."""
    ip_restriction: InlineGuard[parts.IPRestriction] = None
    """Which addresses may connect."""


KIND = Kind(
    name="TCPEdge",
    spec=Spec,
    api=catalog.tcp_edges,
    short=("tcpe",),
    columns=(Column("Hostports", ".spec.hostports"),),
    example="""
    description: TCP for the message queue
    hostports: ["mq.example.com:5672"]
    backend:
      ref: {kind: FailoverBackend, name: example}
    ipRestriction:
      ipPolicies: [{id: ipp_2yrt9bq0U3H2dBBOxrYmAkFMnvJ}]
    """,
)
