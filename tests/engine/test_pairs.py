"""Certificates and keys that nobody can read: foreign bytes in a Secret end in a reason, never in another exception."""

from __future__ import annotations

import base64

import pytest
from cryptography.hazmat.primitives import serialization

from doubles.pairs import leaf
from doubles.world import START
from edge_operator.engine import x509
from edge_operator.engine.operations import Stalled


def strange(number: int = 1) -> str:
    """A certificate for a key of an algorithm that nobody knows."""
    der = leaf(number).certificate.public_bytes(serialization.Encoding.DER)
    known = bytes.fromhex("06072a8648ce3d0201")
    assert known in der
    body = base64.encodebytes(der.replace(known, known[:-1] + b"\x7f")).decode()
    return f"-----BEGIN CERTIFICATE-----\n{body}-----END CERTIFICATE-----\n"


UNREADABLE = {
    "no certificate inside": lambda: (leaf(1).crt.replace("MII", "MIJ", 1), leaf(1).pem_key),
    "no key inside": lambda: (leaf(1).crt, leaf(1).pem_key.replace("PRIVATE", "STRANGE")),
    "a key of an unknown algorithm": lambda: (strange(), leaf(1).pem_key),
    "an issuer of an unknown algorithm": lambda: (leaf(1).crt + strange(2), leaf(1).pem_key),
    "text that is not ASCII": lambda: ("Zürich", "Zürich"),
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_what_nobody_can_read_is_refused_in_words(what):
    crt, key = UNREADABLE[what]()
    with pytest.raises(Stalled, match="here: "):
        x509.verify(crt, key, where="here", now=START)
