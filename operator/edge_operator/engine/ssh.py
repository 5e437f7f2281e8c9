"""Judges SSH certificates. Source: OpenSSH PROTOCOL.certkeys; API document, SSHUserCertificate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import ssh

from edge_operator.engine.operations import Stalled, shown
from edge_operator.engine.reasons import Stalls


@dataclass(frozen=True)
class Wish:
    """What was asked for. `critical_options` and `extensions` are None where the service's defaults will do."""

    host: bool
    public_key: str
    principals: list[str]
    authority: str
    critical_options: Mapping[str, str] | None = None
    extensions: Mapping[str, str] | None = None


def verify(certificate: object, wish: Wish, now: datetime) -> None:
    """Nothing, if the certificate is what was asked for: type, key, principals, options, validity, signature.

    Raises:
        Stalled: it is something else; the message says what.
    """
    try:
        signed = ssh.load_ssh_public_identity(str(certificate).encode())
        keys = (
            [_bytes(k) for k in (signed.public_key(), signed.signature_key())]
            if isinstance(signed, ssh.SSHCertificate)
            else []
        )
    except Exception as error:
        raise _refused("the service returned a certificate that cannot be read") from error
    if not isinstance(signed, ssh.SSHCertificate):
        raise _refused("the service returned a plain key in place of a certificate")
    if (signed.type is ssh.SSHCertificateType.HOST) != wish.host:
        other, asked = ("user", "host") if wish.host else ("host", "user")
        raise _refused(f"the service returned a {other} certificate in place of a {asked} certificate")
    key, signer = keys
    if key != _bytes(load_public(wish.public_key, "the public key")):
        raise _refused("the certificate is for another key")
    found = sorted({p.decode(errors="backslashreplace") for p in signed.valid_principals})
    if found != sorted(set(wish.principals)):
        everybody = "any host" if wish.host else "any user"
        raise _refused(
            f"the certificate is for {', '.join(found) or everybody}; "
            f"{', '.join(wish.principals) or everybody} was asked for"
        )
    _verify_options("critical options", wish.critical_options, signed.critical_options)
    _verify_options("extensions", wish.extensions, signed.extensions)
    if now.timestamp() >= signed.valid_before:
        raise _refused("the certificate has expired already")
    if signer != _bytes(load_public(wish.authority, "the authority's public key")):
        raise _refused("the certificate is signed by another authority")
    try:
        signed.verify_cert_signature()
    except Exception as error:
        raise _refused("the certificate's signature is wrong") from error


def _verify_options(what: str, wish: Mapping[str, str] | None, found: Mapping[bytes, bytes]) -> None:
    if wish is None:
        return
    held = {k.decode(errors="backslashreplace"): v.decode(errors="backslashreplace") for k, v in found.items()}
    names = held.keys()
    if names != wish.keys():
        raise _refused(
            f"the certificate's {what} are {', '.join(sorted(names)) or 'none'}; "
            f"{', '.join(sorted(wish)) or 'none'} were asked for"
        )
    for name in sorted(wish):
        if held[name] != wish[name]:
            raise _refused(f"the certificate's {name} is {shown(held[name])!r}; {shown(wish[name])!r} was asked for")


def load_public(text: str, what: str) -> Any:
    """A public key from OpenSSH authorized-keys format.

    Raises:
        Stalled: it cannot be read.
    """
    try:
        return serialization.load_ssh_public_key(text.strip().encode())
    except Exception as error:
        raise Stalled(
            Stalls.INVALID_KEY_PAIR, f"{what} cannot be read; it should be a line such as 'ssh-ed25519 AAAA…'"
        ) from error


_SIZES = {"rsa": 2048, "ecdsa": 256}
_NAMES = {"rsa": "ssh-rsa", "ed25519": "ssh-ed25519"}


def fits(public_key: str, algorithm: str, size: int | None) -> bool:
    """Whether a public key is of this algorithm and size; None is the algorithm's default."""
    bits = size or _SIZES.get(algorithm)
    try:
        key = load_public(public_key, "the public key")
    except Stalled:
        return False
    name, *_ = public_key.split()
    if name != _NAMES.get(algorithm, f"ecdsa-sha2-nistp{bits}"):
        return False
    return algorithm != "rsa" or key.key_size == bits


def _bytes(key: Any) -> bytes:
    return key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)  # type: ignore[no-any-return]


def _refused(message: str) -> Stalled:
    return Stalled(Stalls.INVALID_CERTIFICATE, f"{message}; it was not published")
