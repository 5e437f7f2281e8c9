"""HTTPSEdge accepts HTTPS requests on its hostports; HTTPSRoutes say what becomes of them."""

from __future__ import annotations

from edge_operator import parts
from edge_operator.api import catalog
from edge_operator.declare import Column, Guard, Kind, Rule, Sub
from edge_operator.policies import Described


class Spec(Described):
    """An edge for HTTPS requests."""

    hostports: parts.Hostports
    """Where the edge listens, as host:port."""
    mutual_tls: Guard[parts.MutualTLS] = None
    """Clients must show a certificate."""
    tls_termination: Sub[parts.TLSTermination] = None
    """Where TLS ends."""

    rules = (
        *Described.rules,
        Rule(
            "!has(self.mutualTLS) || !has(self.tlsTermination) || self.tlsTermination.terminateAt != 'upstream'",
            "mutualTLS needs decrypted traffic: set tlsTermination.terminateAt to edge, or remove mutualTLS",
            lambda s: s.mutual_tls is None or s.tls_termination is None or s.tls_termination.terminate_at != "upstream",
        ),
    )


KIND = Kind(
    name="HTTPSEdge",
    spec=Spec,
    api=catalog.https_edges,
    short=("hse",),
    columns=(Column("Hostports", ".spec.hostports"),),
    example="""
    description: the shop
    hostports: ["shop.example.com:443"]
    mutualTLS:
      certificateAuthorities: [{id: ca_2yrt9bq0U3H2dBBOxrYmAkFMnvJ}]
    tlsTermination: {terminateAt: edge, minVersion: "1.2"}
    """,
)
