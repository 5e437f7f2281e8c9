"""TLS certificates with their keys, and the authorities above them, as cert-manager would keep them."""

from __future__ import annotations

import functools
import ipaddress
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from doubles.world import START

DAY = timedelta(days=1)
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


@dataclass(frozen=True)
class Pair:
    """A certificate with its key, and what signed it."""

    certificate: x509.Certificate
    key: PrivateKey

    @property
    def crt(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    @property
    def pem_key(self) -> str:
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode()


@functools.cache
def new_key(kind: str = "ecdsa", number: int = 0) -> PrivateKey:
    del number
    match kind:
        case "rsa":
            return rsa.generate_private_key(65537, 2048)
        case "ed25519":
            return ed25519.Ed25519PrivateKey.generate()
        case _:
            return ec.generate_private_key(ec.SECP256R1())


SUBJECT = x509.Name(
    [
        x509.NameAttribute(NameOID.COMMON_NAME, "app.example.com"),
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Example Org"),
        x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "Edge"),
        x509.NameAttribute(NameOID.LOCALITY_NAME, "Thun"),
        x509.NameAttribute(NameOID.STATE_OR_PROVINCE_NAME, "Bern"),
        x509.NameAttribute(NameOID.COUNTRY_NAME, "CH"),
    ]
)


def pair(
    issuer: Pair | None = None,
    *,
    subject: x509.Name | str = SUBJECT,
    key: PrivateKey | None = None,
    begin: datetime = START - DAY,
    end: datetime = START + 90 * DAY,
    authority: bool = False,
) -> Pair:
    """A certificate for a name; self-signed where no issuer is given."""
    name = subject if isinstance(subject, x509.Name) else x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)])
    own = key or new_key("ecdsa", hash((str(subject), authority)))
    usage = x509.KeyUsage(
        digital_signature=True,
        key_encipherment=not authority,
        key_cert_sign=authority,
        crl_sign=False,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer.certificate.subject if issuer else name)
        .public_key(own.public_key())
        .serial_number(0x1234ABCD)
        .not_valid_before(begin)
        .not_valid_after(end)
        .add_extension(usage, critical=True)
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    )
    if not authority:
        names: list[x509.GeneralName] = [x509.DNSName("app.example.com"), x509.DNSName("*.app.example.com")]
        names.append(x509.IPAddress(ipaddress.ip_address("192.0.2.7")))
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
    signer = issuer.key if issuer else own
    return Pair(builder.sign(signer, None if isinstance(signer, ed25519.Ed25519PrivateKey) else hashes.SHA256()), own)


@functools.cache
def root() -> Pair:
    return pair(subject="Example Root", authority=True, end=START + 900 * DAY)


@functools.cache
def issuing() -> Pair:
    return pair(root(), subject="Example Issuing CA", authority=True, end=START + 900 * DAY)


@functools.cache
def leaf(number: int = 0, kind: str = "ecdsa") -> Pair:
    """A certificate with every field, of a key of its own."""
    return pair(issuing(), key=new_key(kind, 1000 + number))
