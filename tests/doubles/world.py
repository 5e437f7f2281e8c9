"""Clock, chance and keys that a test holds in its hand."""

from __future__ import annotations

import functools
import hashlib
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from edge_operator.engine.operations import KeyPair, KeyRequest
from edge_operator.server import world as server_world

START = datetime(2026, 1, 1, tzinfo=UTC)
_CURVES: dict[int, ec.EllipticCurve] = {256: ec.SECP256R1(), 384: ec.SECP384R1(), 521: ec.SECP521R1()}


@dataclass
class FakeWorld:
    """Time moves only by `advance`; the wall clock besides by `step`. Nonces and keys are numbered."""

    seed: int = 0
    elapsed: float = 1000.0
    stepped: timedelta = timedelta()
    nonces: int = 0
    keys: int = 0
    made: list[KeyPair] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        self._dice = random.Random(self.seed)

    def now(self) -> datetime:
        return START + timedelta(seconds=self.elapsed - 1000) + self.stepped

    def monotonic(self) -> float:
        return self.elapsed

    def advance(self, seconds: float) -> None:
        self.elapsed += seconds

    def step(self, span: timedelta) -> None:
        """Set the wall clock, forward or back."""
        self.stepped += span

    def nonce(self) -> str:
        self.nonces += 1
        return f"nonce{self.nonces}"

    async def key_pair(self, request: KeyRequest) -> KeyPair:
        self.keys += 1
        pair = key_pair(request.algorithm, request.size, self.keys)
        self.made.append(pair)
        return pair

    def server(self) -> server_world.World:
        """The same clock for the reference API, which rests by moving it; a step of ours is not one of theirs."""

        def now() -> datetime:
            return self.now() - self.stepped

        async def sleep(seconds: float) -> None:
            self.advance(seconds)

        return server_world.World(now=now, monotonic=self.monotonic, random_bytes=self._dice.randbytes, sleep=sleep)


@functools.cache
def key_pair(algorithm: str = "ed25519", size: int | None = None, number: int = 0) -> KeyPair:
    """A real key pair; the same arguments give the same pair within a run."""
    seed = hashlib.sha512(f"{algorithm} {size} {number}".encode()).digest()
    key: ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
    match algorithm:
        case "ed25519":
            key = ed25519.Ed25519PrivateKey.from_private_bytes(seed[:32])
        case "ecdsa":
            key = ec.derive_private_key(int.from_bytes(seed[:31], "big"), _CURVES[size or 256])
        case _:
            key = rsa.generate_private_key(65537, size or 2048)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return KeyPair(public.decode(), private.decode())
