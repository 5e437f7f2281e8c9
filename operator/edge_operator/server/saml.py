"""The service's own side of SAML: the addresses and the signing certificate that a SAML module returns.

Source: API document, SAML module read-only response fields. The certificate is real: one key for the account, made when
the first SAML module is.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from edge_operator.server.store import Transaction
from edge_operator.server.world import World

_FACT: Final = "saml_signing"
_VALIDITY: Final = timedelta(days=3650)


def service_provider(tx: Transaction, world: World, service: str, route_id: str) -> dict[str, Any]:
    """The read-only members of one route's SAML module."""
    base = f"https://idp.{service}.example/saml/{route_id}"
    return {
        "idp_metadata_url": "",
        "entity_id": base,
        "assertion_consumer_service_url": f"{base}/acs",
        "single_logout_url": f"{base}/slo",
        "request_signing_certificate_pem": _certificate(tx, world, service),
        "metadata_url": base,
    }


def _certificate(tx: Transaction, world: World, service: str) -> str:
    """The account's certificate, made when it is first asked for."""
    found = tx.fact(_FACT)
    if found is None:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"idp.{service}.example")])
        now = world.now().replace(microsecond=0)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(int.from_bytes(world.random_bytes(16), "big") >> 1)
            .not_valid_before(now)
            .not_valid_after(now + _VALIDITY)
            .sign(key, hashes.SHA256())
        )
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        public = certificate.public_bytes(serialization.Encoding.PEM)
        found = {"certificate": public.decode(), "private_key": private.decode()}
        tx.set_fact(_FACT, found)
    certificate_pem: str = found["certificate"]
    return certificate_pem
