"""Judges a TLS key pair before it is uploaded: readable, belonging together, in order, in date.

Source: RFC 5280; API document, TLSCertificate ("chain of PEM-encoded certificates, leaf first").
"""

from __future__ import annotations

import itertools
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes, PublicKeyTypes

from edge_operator.engine.operations import Stalled
from edge_operator.engine.reasons import Stalls


def verify(chain_pem: str, key_pem: str, *, where: str, now: datetime) -> None:
    """Nothing, if certificate and key can serve together now.

    `where` begins the message, for example `spec.secretName: Secret 'web-tls'`.

    Raises:
        Stalled: they cannot; the message says why and what is expected.
    """
    chain = _chain(chain_pem, where)
    leaf = chain[0]
    if _public(leaf, where) != _spki(_key(key_pem, where).public_key()):
        raise _refused(where, "tls.key is not the key of the first certificate in tls.crt")
    for index, (cert, issuer) in enumerate(itertools.pairwise(chain)):
        try:
            cert.verify_directly_issued_by(issuer)
        except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm) as error:
            text = f"certificate {index + 1} of tls.crt is not issued by certificate {index + 2}; write the leaf first"
            raise _refused(where, text) from error
    if now >= leaf.not_valid_after_utc:
        raise _refused(where, f"the certificate expired at {leaf.not_valid_after_utc:%Y-%m-%dT%H:%M:%SZ}")
    if now < leaf.not_valid_before_utc:
        raise _refused(where, f"the certificate is not valid before {leaf.not_valid_before_utc:%Y-%m-%dT%H:%M:%SZ}")


def alike(chain_pem: str, other_pem: str) -> bool:
    """Whether two chains hold the same certificates, whatever stands between them."""
    try:
        return _ders(chain_pem) == _ders(other_pem)
    except ValueError:
        return False


def _ders(pem: str) -> list[bytes]:
    found = x509.load_pem_x509_certificates(pem.encode())
    return [cert.public_bytes(serialization.Encoding.DER) for cert in found]


def _chain(pem: str, where: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem.encode())
    except ValueError as error:
        raise _refused(where, "tls.crt should be PEM certificates, leaf first") from error


def _key(pem: str, where: str) -> PrivateKeyTypes:
    try:
        return serialization.load_pem_private_key(pem.encode(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise _refused(where, "tls.key should be a PEM private key without a passphrase") from error


def _public(leaf: x509.Certificate, where: str) -> bytes:
    try:
        return _spki(leaf.public_key())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _refused(where, "the first certificate in tls.crt should be for an RSA, ECDSA or Ed25519 key") from error


def _spki(key: PublicKeyTypes) -> bytes:
    return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def _refused(where: str, text: str) -> Stalled:
    return Stalled(Stalls.INVALID_KEY_PAIR, f"{where}: {text}")
