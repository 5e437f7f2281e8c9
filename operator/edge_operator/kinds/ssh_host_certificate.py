"""SSHHostCertificate keeps a signed, unexpired host certificate in a Secret."""

from __future__ import annotations

from edge_operator.api import catalog
from edge_operator.certificates import Certificate
from edge_operator.declare import Column, Issued, Kind, Output


class Spec(Certificate):
    """A host certificate that renews itself; the service's default lifetime is one year."""


KIND = Kind(
    name="SSHHostCertificate",
    spec=Spec,
    api=catalog.ssh_host_certificates,
    short=("shc",),
    lifecycle=Issued(authority="authority", host=True),
    columns=(Column("Secret", ".status.secretName"), Column("Valid-Until", ".status.validUntil")),
    outputs=(
        Output("certificate", key="ssh-host-key-cert.pub"),
        Output("public_key", key="ssh-host-key.pub"),
        Output("private_key", key="ssh-host-key"),
        Output("authority.public_key", key="ca.pub"),
    ),
    example="""
    authority: {name: example}
    privateKey: {algorithm: ed25519}
    principals: [web-1.example.com]
    validFor: 2160h
    """,
)
