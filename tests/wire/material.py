"""Keys and certificates for requests, made once in a process by programs that are not ours: ssh-keygen and OpenSSL."""

from __future__ import annotations

import functools
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

_SSH: Final = {
    "ed25519": ("-t", "ed25519"),
    "rsa": ("-t", "rsa", "-b", "2048"),
    "p256": ("-t", "ecdsa", "-b", "256"),
    "p384": ("-t", "ecdsa", "-b", "384"),
    "p521": ("-t", "ecdsa", "-b", "521"),
    "other": ("-t", "ed25519"),
}
_TLS: Final = {
    "rsa": ("-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"),
    "ecdsa": ("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"),
    "ed25519": ("-algorithm", "ED25519"),
}
_TLS_NAMES: Final = (*_TLS, *(f"{name}_2" for name in _TLS), "authority")
_SUBJECT: Final = "/C=CH/ST=Bern/L=Thun/O=Example Org/OU=Edge/CN=app.example.com"
_EXTENSIONS: Final = (
    "subjectAltName=DNS:app.example.com,DNS:*.app.example.com,IP:192.0.2.7",
    "keyUsage=critical,digitalSignature,keyEncipherment",
    "extendedKeyUsage=serverAuth,clientAuth",
)
SERIAL: Final = 0x1234ABCD


def run(*command: str | Path, given: str | None = None) -> str:
    """What a program prints."""
    return subprocess.run(
        [str(part) for part in command], input=given, check=True, capture_output=True, text=True
    ).stdout


@functools.cache
def ssh_public_key(name: str) -> str:
    """A public key in authorized-keys format, of one of the types above."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "key"
        run("ssh-keygen", "-q", "-N", "", "-C", "", *_SSH[name], "-f", file)
        return file.with_suffix(".pub").read_text().strip()


@functools.cache
def tls_key(name: str) -> str:
    """A private key in PEM; `rsa`, `ecdsa`, `ed25519`, with `_2` another one of that type, and the `authority`'s."""
    kind = "ecdsa" if name == "authority" else name.removesuffix("_2")
    return run("openssl", "genpkey", *_TLS[kind]).strip() + "\n"


@functools.cache
def tls_certificate(name: str) -> str:
    """A leaf for the key of that name, signed by the authority, in PEM; or the authority's own."""
    if name == "authority":
        extensions = ("basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign")
        return _certificate(tls_key(name), "/CN=Example Issuing CA", extensions, serial=1, issuer=False)
    return _certificate(tls_key(name), _SUBJECT, _EXTENSIONS, serial=SERIAL, issuer=True)


def _certificate(key: str, subject: str, extensions: tuple[str, ...], *, serial: int, issuer: bool) -> str:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "key").write_text(key)
        signing: list[str | Path] = []
        if issuer:
            (place / "ca").write_text(tls_certificate("authority"))
            (place / "ca.key").write_text(tls_key("authority"))
            signing = ["-CA", place / "ca", "-CAkey", place / "ca.key"]
        added = [part for extension in extensions for part in ("-addext", extension)]
        subject_and_dates = ["-subj", subject, "-days", "90", "-set_serial", hex(serial)]
        return run("openssl", "req", "-x509", "-new", "-key", place / "key", *signing, *subject_and_dates, *added)


class Material(Mapping[str, Any]):
    """`{material.ssh.ed25519}`, `{material.tls.rsa.certificate}` and so on, in transcripts; made when asked for."""

    def __init__(self, make: Callable[[str], Any], names: Iterable[str]) -> None:
        self._make, self._names = make, tuple(names)

    def __getitem__(self, name: str) -> Any:
        return self._make(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _tls(name: str) -> Material:
    return Material(lambda part: (tls_key if part == "key" else tls_certificate)(name), ("key", "certificate"))


MATERIAL: Final = {"ssh": Material(ssh_public_key, _SSH), "tls": Material(_tls, _TLS_NAMES)}
