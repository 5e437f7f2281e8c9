"""TLSEdge accepts TLS connections on its hostports and hands them to a backend."""

from __future__ import annotations

from edge_operator import parts
from edge_operator.api import catalog
from edge_operator.declare import Column, Inline, InlineGuard, Kind, Rule
from edge_operator.policies import Described


class Spec(Described):
    """An edge for TLS connections."""

    hostports: parts.Hostports
    """Where the edge listens, as host:port."""
    backend: Inline[parts.Backend] = None
    """Where connections go. Removing it removes the module from the edge."""
    ip_restriction: InlineGuard[parts.IPRestriction] = None
    """Which addresses may connect."""
    mutual_tls: InlineGuard[parts.MutualTLS] = None
    """Clients must show a certificate."""
    tls_termination: Inline[parts.TLSTermination] = None
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
    name="TLSEdge",
    spec=Spec,
    api=catalog.tls_edges,
    short=("tlse",),
    columns=(Column("Hostports", ".spec.hostports"),),
    example="""
    description: TLS for the database
    hostports: ["db.example.com:443"]
    backend:
      ref: {kind: WeightedBackend, name: example}
    ipRestriction:
      ipPolicies: [{id: ipp_2yrt9bq0U3H2dBBOxrYmAkFMnvJ}]
    mutualTLS:
      certificateAuthorities: [{id: ca_2yrt9bq0U3H2dBBOxrYmAkFMnvJ}]
    tlsTermination: {terminateAt: edge, minVersion: "1.3"}
    """,
)
