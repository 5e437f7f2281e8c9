"""Real certificates, each wrong in one way: none but the right one passes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import SSHCertificateBuilder, SSHCertificateType

from doubles.world import key_pair
from edge_operator.engine import ssh
from edge_operator.engine.operations import Stalled
from edge_operator.engine.reasons import Stalls

NOW = datetime(2026, 1, 1, tzinfo=UTC)
AUTHORITY, OTHER_AUTHORITY = key_pair(number=100), key_pair(number=101)
HOST, OTHER_HOST = key_pair(number=102), key_pair(number=103)


def signed(
    *,
    authority=AUTHORITY,
    key=HOST,
    type_=SSHCertificateType.HOST,
    principals=("web-1", "web-2"),
    until=NOW + timedelta(days=1),
    extensions=(),
) -> str:
    builder = (
        SSHCertificateBuilder()
        .public_key(serialization.load_ssh_public_key(key.public.encode()))
        .type(type_)
        .serial(0)
        .key_id(b"shcrt_1")
        .valid_after((NOW - timedelta(days=2)).timestamp())
        .valid_before(until.timestamp())
    )
    builder = (
        builder.valid_principals([p.encode() for p in principals]) if principals else builder.valid_for_all_principals()
    )
    for name in extensions:
        builder = builder.add_extension(name.encode(), b"")
    private = serialization.load_ssh_private_key(authority.private.encode(), None)
    return builder.sign(private).public_bytes().decode()


def wish(**members) -> ssh.Wish:
    return ssh.Wish(
        **{
            "host": True,
            "public_key": HOST.public,
            "principals": ["web-2", "web-1"],
            "authority": AUTHORITY.public,
            **members,
        }
    )


def tampered(certificate: str) -> str:
    """The same certificate with one bit of its signature turned."""
    import base64

    kind, blob = certificate.split()[:2]
    raw = bytearray(base64.b64decode(blob))
    raw[-1] ^= 1
    return f"{kind} {base64.b64encode(bytes(raw)).decode()}"


def test_the_right_certificate_passes_in_any_order_of_principals_and_with_a_comment():
    ssh.verify(signed(), wish(), NOW)
    ssh.verify(f"{signed()} root@web\n", wish(public_key=f"{HOST.public} comment\n"), NOW)


@pytest.mark.parametrize("algorithm", ["rsa", "ecdsa", "ed25519"])
def test_every_algorithm_of_key_passes(algorithm):
    key = key_pair(algorithm, number=104)
    ssh.verify(signed(key=key), wish(public_key=key.public), NOW)


def test_no_principals_mean_any_host_where_that_was_asked_for():
    ssh.verify(signed(principals=()), wish(principals=[]), NOW)


@pytest.mark.parametrize(
    ("certificate", "says"),
    [
        pytest.param("", "cannot be read", id="nothing"),
        pytest.param("ssh-ed25519-cert-v01@openssh.com AAAA", "cannot be read", id="broken"),
        pytest.param(HOST.public, "a plain key in place of a certificate", id="a key"),
        pytest.param(signed(type_=SSHCertificateType.USER), "a user certificate in place of a host", id="a user's"),
        pytest.param(signed(key=OTHER_HOST), "is for another key", id="another key"),
        pytest.param(signed(principals=("web-1",)), "is for web-1; web-2, web-1 was asked for", id="fewer names"),
        pytest.param(signed(principals=("web-1", "web-2", "x")), "is for web-1, web-2, x", id="more names"),
        pytest.param(signed(principals=()), "is for any host", id="every name"),
        pytest.param(signed(until=NOW), "has expired already", id="expired"),
        pytest.param(signed(authority=OTHER_AUTHORITY), "is signed by another authority", id="another authority"),
        pytest.param(tampered(signed()), "signature is wrong", id="tampered with"),
    ],
)
def test_a_certificate_that_is_wrong_in_one_way_is_refused(certificate, says):
    with pytest.raises(Stalled, match=says) as stalled:
        ssh.verify(certificate, wish(), NOW)
    assert stalled.value.reason is Stalls.INVALID_CERTIFICATE
    assert stalled.value.message.endswith("; it was not published")


@pytest.mark.parametrize("which", ["public_key", "authority"])
def test_a_key_that_cannot_be_read_is_named(which):
    with pytest.raises(Stalled, match="cannot be read; it should be a line such as") as stalled:
        ssh.verify(signed(), wish(**{which: "no key"}), NOW)
    assert stalled.value.reason is Stalls.INVALID_KEY_PAIR


@pytest.mark.parametrize(
    ("key", "algorithm", "size", "expected"),
    [
        (key_pair("ed25519"), "ed25519", None, True),
        (key_pair("ed25519"), "rsa", None, False),
        (key_pair("ecdsa", 384), "ecdsa", 384, True),
        (key_pair("ecdsa", 384), "ecdsa", None, False),
        (key_pair("ecdsa"), "ecdsa", None, True),
        (key_pair("rsa"), "rsa", None, True),
        (key_pair("rsa"), "rsa", 4096, False),
    ],
)
def test_whether_a_kept_key_is_of_the_kind_that_is_asked_for(key, algorithm, size, expected):
    assert expected is ssh.fits(key.public, algorithm, size)
    assert not ssh.fits("garbage", algorithm, size)
