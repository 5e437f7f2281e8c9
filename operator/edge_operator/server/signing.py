"""SSH keys and certificates, for real: what `ssh-keygen -L` reads and `sshd` accepts.

Source: API document, SSHCertificateAuthority, SSHUserCertificate, SSHHostCertificate.
Assumed: key id is the resource's id, serial is 0.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, cast

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import SSHCertificateBuilder, SSHCertificateType

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey

CURVES: Final[Mapping[str, ec.EllipticCurve]] = {
    "p256": ec.SECP256R1(),
    "p384": ec.SECP384R1(),
    "p521": ec.SECP521R1(),
}
LARGEST_TIME: Final = 2**64 - 1
MOST_PRINCIPALS: Final = 256
"""OpenSSH refuses certificates with more."""
_CERTIFICATE_SUFFIX: Final = "-cert-v01@openssh.com"
_SMALLEST_RSA_BITS: Final = 1024
_RSA_EXPONENT: Final = 65537


class KeyUnusable(ValueError):
    """A public key that cannot be signed; the message says why."""


@dataclass(frozen=True)
class Authority:
    """A new authority's keys. `private_pem` is PKCS #8; `public_key` is OpenSSH's form."""

    private_pem: str = field(repr=False)
    public_key: str


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What a certificate says. An empty list of principals means anyone, or any host."""

    key_id: str
    host: bool
    principals: Sequence[str]
    valid_after: datetime
    valid_until: datetime
    critical_options: Mapping[str, str] = field(default_factory=dict)
    extensions: Mapping[str, str] = field(default_factory=dict)


def new_authority(key_type: str, curve: str, key_size: int) -> Authority:
    """A key pair of the type `rsa` (key_size in bits), `ecdsa` (curve `p256`, `p384`, `p521`) or `ed25519`."""
    key: PrivateKey
    match key_type:
        case "rsa":
            key = rsa.generate_private_key(_RSA_EXPONENT, key_size)
        case "ecdsa":
            key = ec.generate_private_key(CURVES[curve])
        case _:
            key = ed25519.Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return Authority(private.decode(), public.decode())


def read_public_key(text: str) -> tuple[PublicKey, str]:
    """The key of one line in OpenSSH's authorized-keys format, and its type: `rsa`, `ecdsa` or `ed25519`.

    Raises:
        KeyUnusable: not such a line, or a type or size that cannot be signed.
    """
    line = text.strip()
    if "\n" in line or "\r" in line:
        raise KeyUnusable("is more than one line")
    if line.partition(" ")[0].endswith(_CERTIFICATE_SUFFIX):
        raise KeyUnusable("is a certificate; the public key in it is expected")
    try:
        key = serialization.load_ssh_public_key(line.encode())
    except (ValueError, UnsupportedAlgorithm, UnicodeError):
        raise KeyUnusable("is not a public key in OpenSSH authorized-keys format") from None
    match key:
        case rsa.RSAPublicKey():
            if key.key_size < _SMALLEST_RSA_BITS:
                raise KeyUnusable(f"has {key.key_size} bits; at least {_SMALLEST_RSA_BITS} are expected")
            return key, "rsa"
        case ec.EllipticCurvePublicKey():
            return key, "ecdsa"
        case ed25519.Ed25519PublicKey():
            return key, "ed25519"
        case _:
            raise KeyUnusable("is of another type than rsa, ecdsa or ed25519")


def sign(authority_pem: str, key: PublicKey, terms: Terms) -> str:
    """The certificate in OpenSSH's authorized-keys format."""
    builder = (
        SSHCertificateBuilder()
        .public_key(key)
        .type(SSHCertificateType.HOST if terms.host else SSHCertificateType.USER)
        .serial(0)
        .key_id(terms.key_id.encode())
        .valid_after(_seconds(terms.valid_after))
        .valid_before(_seconds(terms.valid_until))
    )
    if terms.principals:
        builder = builder.valid_principals([principal.encode() for principal in terms.principals])
    else:
        builder = builder.valid_for_all_principals()  # type: ignore[no-untyped-call] # the library forgot its annotation
    for name, value in terms.critical_options.items():
        builder = builder.add_critical_option(name.encode(), value.encode())
    for name, value in terms.extensions.items():
        builder = builder.add_extension(name.encode(), value.encode())
    return builder.sign(_private_key(authority_pem)).public_bytes().decode()


@functools.lru_cache(maxsize=32)
def _private_key(pem: str) -> PrivateKey:
    # We made this key ourselves: checking an RSA key again costs more than signing with it.
    key = serialization.load_pem_private_key(pem.encode(), None, unsafe_skip_rsa_key_validation=True)
    return cast("PrivateKey", key)


def _seconds(moment: datetime) -> int:
    return int((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())
