"""The real world of the line: the system's clocks and randomness, and SSH keys made by `cryptography`."""

from __future__ import annotations

import asyncio
import secrets
import time
from datetime import UTC, datetime

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from edge_operator.engine.operations import KeyPair, KeyRequest

_CURVES: dict[int, type[ec.EllipticCurve]] = {256: ec.SECP256R1, 384: ec.SECP384R1, 521: ec.SECP521R1}


class System:
    """Fulfils `ports.World`."""

    def now(self) -> datetime:
        """The wall clock, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back."""
        return time.monotonic()

    def nonce(self) -> str:
        """Ten characters of 60 random bits."""
        return secrets.token_urlsafe(8)[:10].replace("-", "a").replace("_", "b")

    async def key_pair(self, request: KeyRequest) -> KeyPair:
        """A new key pair in OpenSSH form, made beside the event loop."""
        return await asyncio.to_thread(key_pair, request)


def key_pair(request: KeyRequest) -> KeyPair:
    """A new key pair in OpenSSH form. Source: OpenSSH PROTOCOL.key."""
    key: ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
    match request.algorithm:
        case "ed25519":
            key = ed25519.Ed25519PrivateKey.generate()
        case "ecdsa":
            key = ec.generate_private_key(_CURVES[request.size or 256]())
        case "rsa":
            key = rsa.generate_private_key(65537, request.size or 2048)
        case unknown:
            raise ValueError(f"no such key algorithm: {unknown}")
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return KeyPair(public.decode(), private.decode())
