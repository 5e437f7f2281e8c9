"""TLS certificates. Source: API document, TLSCertificate."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from .account import START, Account

Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


@dataclass
class Issued:
    certificate: x509.Certificate
    key: Key

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    def key_pem(self, password: bytes | None = None) -> str:
        hidden = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
        return self.key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, hidden).decode()


def issue(
    name: str,
    issuer: Issued | None = None,
    key: Key | None = None,
    *,
    start: datetime = START,
    days: int = 90,
    extensions: tuple[x509.ExtensionType, ...] = (),
    more: tuple[tuple[ObjectIdentifier, str], ...] = (),
) -> Issued:
    key = key or ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name), *(x509.NameAttribute(o, v) for o, v in more)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(0xABC123)
        .not_valid_before(start.replace(microsecond=0))
        .not_valid_after(start.replace(microsecond=0) + timedelta(days=days))
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    signer = issuer.key if issuer else key
    digest = None if isinstance(signer, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    return Issued(builder.sign(signer, digest), key)


def usage(**values: bool) -> x509.KeyUsage:
    return x509.KeyUsage(**{name: values.get(name, False) for name in USAGES})


USAGES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)
CA = x509.BasicConstraints(ca=True, path_length=None)


async def test_every_field_of_the_document_comes_from_the_leaf(account: Account) -> None:
    root = issue("Root", extensions=(CA,))
    middle = issue("Middle", root, extensions=(CA,))
    names = x509.SubjectAlternativeName(
        [
            x509.DNSName("example.com"),
            x509.DNSName("*.example.com"),
            x509.IPAddress(ipaddress.ip_address("2001:db8::1")),
        ]
    )
    leaf = issue(
        "example.com",
        middle,
        rsa.generate_private_key(65537, 2048),
        extensions=(
            names,
            usage(digital_signature=True, key_encipherment=True),
            x509.ExtendedKeyUsage(
                [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH, ObjectIdentifier("1.2.3.4")]
            ),
        ),
        more=(
            (NameOID.ORGANIZATION_NAME, "Org"),
            (NameOID.ORGANIZATIONAL_UNIT_NAME, "Unit"),
            (NameOID.LOCALITY_NAME, "Town"),
            (NameOID.STATE_OR_PROVINCE_NAME, "Province"),
            (NameOID.COUNTRY_NAME, "DE"),
        ),
    )
    chain = leaf.pem + middle.pem + root.pem
    made = await account.make(
        "/tls_certificates", certificate_pem=chain, private_key_pem=leaf.key_pem(), description="d", metadata="m"
    )
    expected = {
        "id": made["id"],
        "uri": f"http://api.test/tls_certificates/{made['id']}",
        "created_at": "2026-01-02T03:04:05Z",
        "description": "d",
        "metadata": "m",
        "certificate_pem": chain,
        "subject_common_name": "example.com",
        "subject_alternative_names": {"dns_names": ["example.com", "*.example.com"], "ips": ["2001:db8::1"]},
        "issued_at": None,
        "not_before": "2026-01-02T03:04:05Z",
        "not_after": "2026-04-02T03:04:05Z",
        "key_usages": ["digital_signature", "key_encipherment"],
        "extended_key_usages": ["server_auth", "client_auth", "1.2.3.4"],
        "private_key_type": "rsa",
        "issuer_common_name": "Middle",
        "serial_number": "abc123",
        "subject_organization": "Org",
        "subject_organizational_unit": "Unit",
        "subject_locality": "Town",
        "subject_province": "Province",
        "subject_country": "DE",
    }
    assert expected == made
    path = f"/tls_certificates/{made['id']}"
    assert {**made, "metadata": "n"} == await account.ask("PATCH", path, {"metadata": "n"})
    assert "certificate_pem: is not a member" in await account.refused("PATCH", path, {"certificate_pem": chain})


@pytest.mark.parametrize(
    ("key", "name"),
    [(ec.generate_private_key(ec.SECP384R1()), "ecdsa"), (ed25519.Ed25519PrivateKey.generate(), "ed25519")],
)
async def test_a_plain_self_signed_certificate_says_little(account: Account, key: Key, name: str) -> None:
    leaf = issue(
        "x", key=key, extensions=(usage(key_agreement=True, decipher_only=True, key_cert_sign=True, crl_sign=True),)
    )
    made = await account.make("/tls_certificates", certificate_pem=leaf.pem, private_key_pem=leaf.key_pem())
    assert name == made["private_key_type"]
    assert made["key_usages"] == ["key_agreement", "cert_sign", "crl_sign", "decipher_only"]
    assert (
        made["subject_alternative_names"],
        made["extended_key_usages"],
        made["subject_country"],
    ) == ({"dns_names": [], "ips": []}, [], "")


def _cases() -> list[tuple[str, dict[str, Any], str]]:
    root = issue("Root", extensions=(CA,))
    other = issue("Root", extensions=(CA,))
    leaf = issue("x", root)
    old = issue("x", start=START - timedelta(days=100))
    good: dict[str, Any] = {"certificate_pem": leaf.pem + root.pem, "private_key_pem": leaf.key_pem()}
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("not a certificate", {"certificate_pem": "junk"}, "certificate_pem: is not a chain of PEM certificates"),
        ("empty", {"certificate_pem": ""}, "certificate_pem: is not a chain"),
        ("no certificate", {"certificate_pem": None}, "certificate_pem: is required"),
        ("no key", {"private_key_pem": None}, "private_key_pem: is required"),
        ("not a key", {"private_key_pem": "junk"}, "private_key_pem: is not a private key in PEM form"),
        ("a certificate for a key", {"private_key_pem": leaf.pem}, "private_key_pem: is not a private key"),
        ("an encrypted key", {"private_key_pem": leaf.key_pem(b"pw")}, "private_key_pem: is encrypted"),
        (
            "another key",
            {"private_key_pem": root.key_pem()},
            "private_key_pem: is not the key of the first certificate",
        ),
        ("root first", {"certificate_pem": root.pem + leaf.pem}, "private_key_pem: is not the key of the first"),
        (
            "a gap",
            {"certificate_pem": leaf.pem + leaf.pem},
            "certificate_pem: certificate 1 is not issued by certificate 2",
        ),
        (
            "a namesake",
            {"certificate_pem": leaf.pem + other.pem},
            "certificate_pem: certificate 1 is not issued by",
        ),
        (
            "a key in the chain",
            {"certificate_pem": leaf.pem + leaf.key_pem()},
            "certificate_pem: holds a private key",
        ),
        (
            "expired",
            {"certificate_pem": old.pem, "private_key_pem": old.key_pem()},
            "certificate_pem: certificate 1 is no longer valid; it ended at 2025-12-23T03:04:05Z",
        ),
    ]
    return [(reason, {**good, **body}, text) for reason, body, text in cases]


@pytest.mark.parametrize(
    ("reason", "body", "expected"), _cases(), ids=lambda value: value if isinstance(value, str) else ""
)
async def test_what_cannot_be_served_is_refused(
    account: Account, reason: str, body: dict[str, Any], expected: str
) -> None:
    message = await account.refused("POST", "/tls_certificates", body)
    assert message.startswith(expected), reason


async def test_the_private_key_is_neither_stored_nor_returned(account: Account) -> None:
    leaf = issue("x")
    made = await account.make("/tls_certificates", certificate_pem=leaf.pem, private_key_pem=leaf.key_pem())
    with account.app.store.read() as tx:
        stored = tx.get("tls_certificates", made["id"])
    assert stored is not None
    assert "PRIVATE" not in str([stored.doc, stored.hidden, made])
