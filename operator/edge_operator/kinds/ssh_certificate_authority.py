"""SSHCertificateAuthority signs SSH certificates; its private key never leaves the service."""

from __future__ import annotations

from typing import Annotated, Literal

from edge_operator.api import catalog
from edge_operator.declare import Column, Immutable, Kind, Rule
from edge_operator.policies import Described


class Spec(Described):
    """An authority that signs SSH certificates. Its key cannot be changed."""

    private_key_type: Annotated[Literal["rsa", "ecdsa", "ed25519"] | None, Immutable()] = None
    """Type of the authority's private key; the service's default when left out. Assumed: ed25519."""
    elliptic_curve: Annotated[Literal["p256", "p384", "p521"] | None, Immutable()] = None
    """Curve of an ecdsa key; the service's default when left out. Assumed: p256."""
    key_size: Annotated[Literal[2048, 4096] | None, Immutable()] = None
    """Bits of an rsa key; the service's default when left out. Assumed: 2048."""

    rules = (
        *Described.rules,
        Rule(
            "!has(self.ellipticCurve) || (has(self.privateKeyType) && self.privateKeyType == 'ecdsa')",
            "ellipticCurve needs privateKeyType: ecdsa",
            lambda s: s.elliptic_curve is None or s.private_key_type == "ecdsa",
        ),
        Rule(
            "!has(self.keySize) || (has(self.privateKeyType) && self.privateKeyType == 'rsa')",
            "keySize needs privateKeyType: rsa",
            lambda s: s.key_size is None or s.private_key_type == "rsa",
        ),
    )


KIND = Kind(
    name="SSHCertificateAuthority",
    spec=Spec,
    api=catalog.ssh_certificate_authorities,
    short=("sshca",),
    columns=(Column("Type", ".status.keyType"),),
    on_remote_missing="Stall",
    example="""
    description: signs the fleet
    privateKeyType: ecdsa
    ellipticCurve: p384
    """,
)
