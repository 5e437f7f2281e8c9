"""Reads TLS certificate chains: checks that they can be served, and takes from the leaf what the document lists.

Source: API document, TLSCertificate. Assumed: names of key usages (`digital_signature`, `cert_sign`, `server_auth`, …,
an OID where there is no name), a serial number in lower-case hexadecimal, "" for what the subject does not say.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from edge_operator.server.world import timestamp

_MOST_CERTIFICATES: Final = 20
_KEY_USAGES: Final = {
    "digital_signature": "digital_signature",
    "content_commitment": "content_commitment",
    "key_encipherment": "key_encipherment",
    "data_encipherment": "data_encipherment",
    "key_agreement": "key_agreement",
    "key_cert_sign": "cert_sign",
    "crl_sign": "crl_sign",
}
_AGREEMENT_USAGES: Final = ("encipher_only", "decipher_only")
_EXTENDED: Final = {
    ExtendedKeyUsageOID.SERVER_AUTH: "server_auth",
    ExtendedKeyUsageOID.CLIENT_AUTH: "client_auth",
    ExtendedKeyUsageOID.CODE_SIGNING: "code_signing",
    ExtendedKeyUsageOID.EMAIL_PROTECTION: "email_protection",
    ExtendedKeyUsageOID.TIME_STAMPING: "time_stamping",
    ExtendedKeyUsageOID.OCSP_SIGNING: "ocsp_signing",
    ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE: "any",
}
_SUBJECT: Final = {
    "subject_common_name": NameOID.COMMON_NAME,
    "subject_organization": NameOID.ORGANIZATION_NAME,
    "subject_organizational_unit": NameOID.ORGANIZATIONAL_UNIT_NAME,
    "subject_locality": NameOID.LOCALITY_NAME,
    "subject_province": NameOID.STATE_OR_PROVINCE_NAME,
    "subject_country": NameOID.COUNTRY_NAME,
}


class ChainUnusable(ValueError):
    """A chain or key that cannot be served. `member` is the wire name of the field that is to blame."""

    def __init__(self, member: str, text: str) -> None:
        super().__init__(text)
        self.member = member


def read(certificate_pem: str, private_key_pem: str, now: datetime) -> dict[str, Any]:
    """What the service says of an uploaded chain, once pair, order and dates are right.

    Raises:
        ChainUnusable: they are not.
    """
    chain = _chain(certificate_pem)
    key_type = _check_pair(chain[0], private_key_pem)
    _check_order(chain)
    _check_dates(chain, now)
    try:
        return {**_leaf(chain[0]), "private_key_type": key_type}
    except (ValueError, x509.DuplicateExtension, UnsupportedAlgorithm):
        raise ChainUnusable("certificate_pem", "the leaf has an extension or a name that cannot be read") from None


def _chain(pem: str) -> Sequence[x509.Certificate]:
    if "PRIVATE KEY-----" in pem:
        raise ChainUnusable("certificate_pem", "holds a private key, and would be returned to callers with it")
    try:
        chain = x509.load_pem_x509_certificates(pem.encode())
    except (ValueError, UnicodeError):
        raise ChainUnusable("certificate_pem", "is not a chain of PEM certificates") from None
    if len(chain) > _MOST_CERTIFICATES:
        raise ChainUnusable(
            "certificate_pem", f"has {len(chain)} certificates; at most {_MOST_CERTIFICATES} are allowed"
        )
    return chain


def _check_pair(leaf: x509.Certificate, private_key_pem: str) -> str:
    try:
        key = serialization.load_pem_private_key(private_key_pem.encode(), None)
    except TypeError:
        raise ChainUnusable("private_key_pem", "is encrypted; an unencrypted key is expected") from None
    except (ValueError, UnsupportedAlgorithm, UnicodeError):
        raise ChainUnusable("private_key_pem", "is not a private key in PEM form") from None
    match key:
        case rsa.RSAPrivateKey():
            key_type = "rsa"
        case ec.EllipticCurvePrivateKey():
            key_type = "ecdsa"
        case ed25519.Ed25519PrivateKey():
            key_type = "ed25519"
        case _:
            raise ChainUnusable("private_key_pem", "is of another type than rsa, ecdsa or ed25519")
    try:
        pair = leaf.public_key() == key.public_key()
    except (ValueError, UnsupportedAlgorithm):
        pair = False
    if not pair:
        raise ChainUnusable("private_key_pem", "is not the key of the first certificate; the leaf must come first")
    return key_type


def _check_order(chain: Sequence[x509.Certificate]) -> None:
    for index, (certificate, issuer) in enumerate(itertools.pairwise(chain)):
        try:
            certificate.verify_directly_issued_by(issuer)
        except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
            text = (
                f"certificate {index + 1} is not issued by certificate {index + 2}; the leaf comes first, then issuers"
            )
            raise ChainUnusable("certificate_pem", text) from None


def _check_dates(chain: Sequence[x509.Certificate], now: datetime) -> None:
    for index, certificate in enumerate(chain):
        if certificate.not_valid_after_utc < now:
            ended = timestamp(certificate.not_valid_after_utc)
            raise ChainUnusable("certificate_pem", f"certificate {index + 1} is no longer valid; it ended at {ended}")


def _leaf(leaf: x509.Certificate) -> dict[str, Any]:
    return {
        **{name: _text(leaf.subject, oid) for name, oid in _SUBJECT.items()},
        "issuer_common_name": _text(leaf.issuer, NameOID.COMMON_NAME),
        "subject_alternative_names": _alternative_names(leaf),
        "issued_at": None,
        "not_before": timestamp(leaf.not_valid_before_utc),
        "not_after": timestamp(leaf.not_valid_after_utc),
        "key_usages": _key_usages(leaf),
        "extended_key_usages": _extended_key_usages(leaf),
        "serial_number": format(leaf.serial_number, "x"),
    }


def _text(name: x509.Name, oid: x509.ObjectIdentifier) -> str:
    found = name.get_attributes_for_oid(oid)
    if not found:
        return ""
    value = found[0].value
    return value if isinstance(value, str) else value.hex()


def _alternative_names(leaf: x509.Certificate) -> dict[str, list[str]]:
    try:
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return {"dns_names": [], "ips": []}
    return {
        "dns_names": names.get_values_for_type(x509.DNSName),
        "ips": [str(address) for address in names.get_values_for_type(x509.IPAddress)],
    }


def _key_usages(leaf: x509.Certificate) -> list[str]:
    try:
        usage = leaf.extensions.get_extension_for_class(x509.KeyUsage).value
    except x509.ExtensionNotFound:
        return []
    found = [name for attribute, name in _KEY_USAGES.items() if getattr(usage, attribute)]
    if usage.key_agreement:
        found += [attribute for attribute in _AGREEMENT_USAGES if getattr(usage, attribute)]
    return found


def _extended_key_usages(leaf: x509.Certificate) -> list[str]:
    try:
        usages = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return []
    return [_EXTENDED.get(oid, oid.dotted_string) for oid in usages]
