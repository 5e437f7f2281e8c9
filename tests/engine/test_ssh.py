"""What of a certificate is judged besides type, key and names: options, extensions, and bytes that make no sense."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import SSHCertificateBuilder, SSHCertificateType
from hypothesis import given, settings
from hypothesis import strategies as st

from doubles.world import key_pair
from edge_operator.engine import ssh
from edge_operator.engine.operations import Stalled
from edge_operator.engine.reasons import Stalls

NOW = datetime(2026, 1, 1, tzinfo=UTC)
AUTHORITY, USER = key_pair(number=200), key_pair(number=201)
OPTIONS = {"force-command": "/bin/date", "source-address": "10.0.0.0/8"}
EXTENSIONS = {"permit-pty": "", "permit-user-rc": ""}


def signed(
    options: Mapping[str, str] = OPTIONS,
    extensions: Mapping[str, str] = EXTENSIONS,
    principals: tuple[bytes, ...] = (b"deploy",),
    begin: datetime = NOW,
    end: float = (NOW + timedelta(hours=24)).timestamp(),
    key: Any = USER,
) -> str:
    """A user certificate as a service would sign it."""
    builder = (
        SSHCertificateBuilder()
        .public_key(serialization.load_ssh_public_key(key.public.encode()))  # type: ignore[arg-type]  # no DSA key
        .type(SSHCertificateType.USER)
        .serial(7)
        .key_id(b"sucrt_1")
        .valid_after(int(begin.timestamp()))
        .valid_before(int(end))
        .valid_principals(list(principals))
    )
    for name, value in options.items():
        builder = builder.add_critical_option(name.encode(), value.encode())
    for name, value in extensions.items():
        builder = builder.add_extension(name.encode(), value.encode())
    private = serialization.load_ssh_private_key((AUTHORITY.private or "").encode(), None)
    return builder.sign(private).public_bytes().decode()  # type: ignore[arg-type]  # no DSA key


def wish(**members: Any) -> ssh.Wish:
    asked = {"host": False, "public_key": USER.public, "principals": ["deploy"], "authority": AUTHORITY.public}
    return ssh.Wish(**{**asked, "critical_options": OPTIONS, "extensions": EXTENSIONS, **members})


@pytest.mark.parametrize(
    ("certificate", "asked", "reason"),
    [
        (signed(), {}, "all of it was asked for"),
        (signed(), {"critical_options": None, "extensions": None}, "what was left open is the service's to choose"),
        (signed({}, {}), {"critical_options": {}, "extensions": {}}, "none were asked for"),
        (signed(begin=NOW + timedelta(hours=2)), {}, "a start in the future may be asked for"),
        (signed(end=2**64 - 1), {}, "valid for ever"),
        (signed(end=NOW.timestamp() + 1), {}, "valid for another second"),
        (signed(principals=(b"deploy", b"deploy")), {}, "a name that stands there twice"),
        (signed(key=key_pair("ecdsa", 384)), {"public_key": key_pair("ecdsa", 384).public}, "a curve"),
    ],
)
def test_what_was_asked_for_passes(certificate: str, asked: dict[str, Any], reason: str) -> None:
    ssh.verify(certificate, wish(**asked), NOW)


@pytest.mark.parametrize(
    ("certificate", "asked", "message"),
    [
        (
            signed({"source-address": "10.0.0.0/8"}),
            {},
            "the certificate's critical options are source-address; force-command, source-address were asked for",
        ),
        (
            signed(),
            {"critical_options": {}},
            "the certificate's critical options are force-command, ",
        ),
        (
            signed({**OPTIONS, "force-command": "/bin/sh"}),
            {},
            "the certificate's force-command is '/bin/sh'; '/bin/date' was asked for",
        ),
        (
            signed({**OPTIONS, "source-address": "0.0.0.0/0"}),
            {},
            "the certificate's source-address is '0.0.0.0/0'; '10.0.0.0/8' was asked for",
        ),
        (
            signed({**OPTIONS, "verify-required": ""}),
            {},
            "the certificate's critical options are force-command, ",
        ),
        (
            signed(extensions={**EXTENSIONS, "permit-agent-forwarding": ""}),
            {},
            "the certificate's extensions are permit-agent-forwarding, permit-pty, permit-user-rc; permit-pty, ",
        ),
        (signed(extensions={}), {}, "the certificate's extensions are none; permit-pty, permit-user-rc were asked for"),
        (signed(), {"host": True}, "the service returned a user certificate in place of a host certificate"),
        (signed(end=NOW.timestamp()), {}, "the certificate has expired already"),
        (signed(principals=(b"root",)), {}, "the certificate is for root; deploy was asked for"),
        (signed(principals=(b"\xff\xfe",)), {}, "the certificate is for "),
    ],
)
def test_what_is_wrong_in_one_way_is_refused(certificate: str, asked: dict[str, Any], message: str) -> None:
    with pytest.raises(Stalled) as stalled:
        ssh.verify(certificate, wish(**asked), NOW)

    assert Stalls.INVALID_CERTIFICATE == stalled.value.reason
    assert stalled.value.message.startswith(message)
    assert stalled.value.message.endswith("; it was not published")


WHOLE = base64.b64decode(signed().split()[1])


@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255))
@settings(max_examples=150, deadline=None)
def test_no_single_byte_can_change_without_a_refusal(position: int, turned: int) -> None:
    """And whatever the bytes say, the refusal is ours and not a library's."""
    raw = bytearray(WHOLE)
    raw[position] ^= turned
    certificate = f"ssh-ed25519-cert-v01@openssh.com {base64.b64encode(bytes(raw)).decode()}"

    with pytest.raises(Stalled):
        ssh.verify(certificate, wish(), NOW)


@given(st.text(max_size=200))
@settings(max_examples=100, deadline=None)
def test_any_text_in_place_of_a_certificate_is_refused(text: str) -> None:
    with pytest.raises(Stalled, match="cannot be read"):
        ssh.verify(text, wish(), NOW)
