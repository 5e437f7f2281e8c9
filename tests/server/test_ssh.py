"""SSH authorities and certificates, read by the real ssh-keygen. Source: API document, SSHCertificateAuthority."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from .account import Account

KEYS: list[tuple[dict[str, Any], str, str]] = [
    ({}, "ed25519", "ssh-ed25519 "),
    ({"private_key_type": "ed25519", "elliptic_curve": "", "key_size": 0}, "ed25519", "ssh-ed25519 "),
    ({"private_key_type": "ecdsa"}, "ecdsa", "ecdsa-sha2-nistp256 "),
    ({"private_key_type": "ecdsa", "elliptic_curve": "p384", "key_size": 0}, "ecdsa", "ecdsa-sha2-nistp384 "),
    ({"private_key_type": "ecdsa", "elliptic_curve": "p521"}, "ecdsa", "ecdsa-sha2-nistp521 "),
    ({"private_key_type": "rsa", "elliptic_curve": ""}, "rsa", "ssh-rsa "),
    ({"private_key_type": "rsa", "key_size": 4096}, "rsa", "ssh-rsa "),
]


def _inspected(tmp_path: Path, text: str, *options: str) -> str:
    file = tmp_path / "key.pub"
    file.write_text(text + "\n")
    return subprocess.run(
        ["ssh-keygen", *options, "-f", str(file)], check=True, capture_output=True, text=True, env={"TZ": "UTC"}
    ).stdout


def _new_key(tmp_path: Path, *options: str) -> str:
    """The public half of a key that ssh-keygen made."""
    file = tmp_path / f"key{len(list(tmp_path.iterdir()))}"
    subprocess.run(["ssh-keygen", "-q", "-N", "", "-C", "me@host", *options, "-f", str(file)], check=True)
    return file.with_suffix(".pub").read_text().strip()


@pytest.mark.parametrize(("body", "key_type", "start"), KEYS)
async def test_an_authority_of_every_kind_signs_what_ssh_keygen_reads(
    account: Account, tmp_path: Path, body: dict[str, Any], key_type: str, start: str
) -> None:
    authority = await account.make("/ssh_certificate_authorities", **body)
    assert {"id", "uri", "created_at", "description", "metadata", "public_key", "key_type"} == set(authority)
    assert authority["key_type"] == key_type
    assert authority["public_key"].startswith(start)
    fingerprint = _inspected(tmp_path, authority["public_key"], "-l").split()[1]
    if key_type == "rsa":
        assert str(body.get("key_size", 2048)) == _inspected(tmp_path, authority["public_key"], "-l").split()[0]
    made = await account.make(
        "/ssh_host_certificates",
        ssh_certificate_authority_id=authority["id"],
        public_key=_new_key(tmp_path, "-t", "ed25519"),
        principals=["a.example.com"],
    )
    text = _inspected(tmp_path, made["certificate"], "-L")
    assert fingerprint in text
    assert "host certificate" in text


@pytest.mark.parametrize(
    ("options", "key_type"),
    [(["-t", "ed25519"], "ed25519"), (["-t", "ecdsa", "-b", "384"], "ecdsa"), (["-t", "rsa", "-b", "2048"], "rsa")],
)
async def test_a_host_certificate_says_what_was_asked(
    account: Account, tmp_path: Path, options: list[str], key_type: str
) -> None:
    authority = await account.make("/ssh_certificate_authorities")
    public_key = _new_key(tmp_path, *options)
    made = await account.make(
        "/ssh_host_certificates",
        ssh_certificate_authority_id=authority["id"],
        public_key=public_key,
        principals=["a.example.com", "192.0.2.1"],
        valid_after="2026-01-01T01:00:00+01:00",
        valid_until="2027-01-01T00:00:00.5Z",
    )
    assert (public_key, key_type) == (made["public_key"], made["key_type"])
    assert (made["valid_after"], made["valid_until"]) == ("2026-01-01T01:00:00+01:00", "2027-01-01T00:00:00.5Z")
    lines = [line.strip() for line in _inspected(tmp_path, made["certificate"], "-L").splitlines()]
    assert f'Key ID: "{made["id"]}"' in lines
    assert "Serial: 0" in lines
    assert "Valid: from 2026-01-01T00:00:00 to 2027-01-01T00:00:00" in lines
    assert lines[lines.index("Principals:") + 1 : lines.index("Critical Options: (none)")] == [
        "a.example.com",
        "192.0.2.1",
    ]
    assert "Extensions: (none)" in lines
    assert "critical_options" not in made
    assert made["certificate"].split()[1] != public_key.split()[1]


async def test_defaults_of_a_host_certificate(account: Account, tmp_path: Path) -> None:
    authority = await account.make("/ssh_certificate_authorities")
    key = _new_key(tmp_path, "-t", "ed25519")
    made = await account.make("/ssh_host_certificates", ssh_certificate_authority_id=authority["id"], public_key=key)
    assert (made["valid_after"], made["valid_until"]) == ("2026-01-02T03:04:05Z", "2027-01-02T03:04:05Z")
    assert made["principals"] == []
    text = _inspected(tmp_path, made["certificate"], "-L")
    assert "Principals: (none)" in text
    assert "from 2026-01-02T03:04:05 to 2027-01-02T03:04:05" in text


async def test_defaults_of_a_user_certificate(account: Account, tmp_path: Path) -> None:
    authority = await account.make("/ssh_certificate_authorities")
    key = _new_key(tmp_path, "-t", "ed25519")
    made = await account.make("/ssh_user_certificates", ssh_certificate_authority_id=authority["id"], public_key=key)
    assert (made["valid_after"], made["valid_until"]) == ("2026-01-02T03:04:05Z", "2026-01-03T03:04:05Z")
    assert (made["critical_options"], made["extensions"]) == ({}, {"permit-pty": "", "permit-user-rc": ""})
    text = _inspected(tmp_path, made["certificate"], "-L")
    assert "user certificate" in text
    assert text[text.index("Extensions:") :].split()[1:] == ["permit-pty", "permit-user-rc"]


async def test_options_and_extensions_of_a_user_certificate(account: Account, tmp_path: Path) -> None:
    authority = await account.make("/ssh_certificate_authorities")
    options = {"source-address": "192.0.2.0/24,2001:db8::1", "force-command": "/bin/true"}
    made = await account.make(
        "/ssh_user_certificates",
        ssh_certificate_authority_id=authority["id"],
        public_key=_new_key(tmp_path, "-t", "ed25519"),
        principals=["alice", "bob"],
        critical_options=options,
        extensions={},
    )
    assert (options, {}) == (made["critical_options"], made["extensions"])
    text = _inspected(tmp_path, made["certificate"], "-L")
    assert "force-command /bin/true" in text
    assert "source-address 192.0.2.0/24,2001:db8::1" in text
    assert "Extensions: (none)" in text
    path = f"/ssh_user_certificates/{made['id']}"
    assert {**made, "description": "d"} == await account.ask("PATCH", path, {"description": "d"})
    assert "principals: is not a member" in await account.refused("PATCH", path, {"principals": []})


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"private_key_type": "dsa"}, "private_key_type: 'dsa' is not one of rsa, ecdsa, ed25519"),
        ({"private_key_type": "rsa", "key_size": 1024}, "key_size: 1024 is not one of 2048, 4096"),
        ({"private_key_type": "rsa", "key_size": False}, "key_size: is false; an integer is expected"),
        (
            {"private_key_type": "ecdsa", "elliptic_curve": "p224"},
            "elliptic_curve: 'p224' is not one of p256, p384, p521",
        ),
        ({"private_key_type": "rsa", "elliptic_curve": "p256"}, "elliptic_curve: is for private_key_type ecdsa"),
        ({"key_size": 2048}, "key_size: is for private_key_type rsa; private_key_type is ed25519"),
    ],
)
async def test_a_wrong_kind_of_key_is_refused(account: Account, body: Any, expected: str) -> None:
    assert (await account.refused("POST", "/ssh_certificate_authorities", body)).startswith(expected)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"ssh_certificate_authority_id": None}, "ssh_certificate_authority_id: is required"),
        ({"ssh_certificate_authority_id": "sshca_1"}, "ssh_certificate_authority_id: 'sshca_1' does not exist"),
        ({"ssh_certificate_authority_id": "ca_1"}, "ssh_certificate_authority_id: 'ca_1' is not an id"),
        ({"public_key": None}, "public_key: is required"),
        ({"public_key": ""}, "public_key: is not a public key"),
        ({"public_key": "ssh-ed25519 AAAA"}, "public_key: is not a public key"),
        ({"public_key": "-----BEGIN PUBLIC KEY-----"}, "public_key: is not a public key"),
        ({"public_key": "two\nlines"}, "public_key: is more than one line"),
        ({"valid_after": "yesterday"}, "valid_after: 'yesterday' is not an RFC 3339 time"),
        ({"valid_after": "2026-01-02"}, "valid_after: "),
        ({"valid_after": "2026-01-02T03:04:05"}, "valid_after: "),
        ({"valid_after": "2026-02-30T00:00:00Z"}, "valid_after: "),
        ({"valid_after": "1969-12-31T23:59:59Z"}, "valid_after: "),
        ({"valid_after": "1970-01-01T00:00:00+00:01"}, "valid_after: "),
        ({"valid_after": "٢٠٢٦-01-02T03:04:05Z"}, "valid_after: "),
        ({"valid_until": 5}, "valid_until: is a number"),
        ({"valid_until": "2026-01-02T03:04:05Z"}, "valid_until: 2026-01-02T03:04:05Z is not after valid_after"),
        ({"valid_after": "2030-01-01T00:00:00Z"}, "valid_until: "),
        ({"principals": [""]}, "principals[0]: "),
        ({"principals": ["a", "a"]}, "principals[1]: 'a' is given twice"),
        ({"principals": ["a,b"]}, "principals[0]: "),
        ({"principals": [f"p{n}" for n in range(257)]}, "principals: has 257 principals; at most 256"),
        ({"critical_options": {"verify-required": ""}}, "critical_options.verify-required: is not defined"),
        ({"critical_options": {"source-address": "here"}}, "critical_options.source-address: 'here' is not"),
        ({"extensions": {"": ""}}, "extensions: '' is not the name"),
    ],
)
async def test_a_certificate_that_cannot_be_signed_is_refused(
    account: Account, tmp_path: Path, body: Any, expected: str
) -> None:
    authority = await account.make("/ssh_certificate_authorities")
    good = {"ssh_certificate_authority_id": authority["id"], "public_key": authority["public_key"]}
    message = await account.refused("POST", "/ssh_user_certificates", {**good, **body})
    assert message.startswith(expected)


async def test_an_authority_with_certificates_cannot_be_deleted(account: Account) -> None:
    authority = await account.make("/ssh_certificate_authorities")
    body = {"ssh_certificate_authority_id": authority["id"], "public_key": authority["public_key"]}
    path = f"/ssh_certificate_authorities/{authority['id']}"
    for kind in ("ssh_user_certificates", "ssh_host_certificates"):
        certificate = await account.make(f"/{kind}", **body)
        assert certificate["id"] in await account.refused("DELETE", path, status=409)
        await account.ask("DELETE", f"/{kind}/{certificate['id']}")
    await account.ask("DELETE", path)


async def test_private_keys_are_never_returned(account: Account) -> None:
    for kind in ("rsa", "ecdsa", "ed25519"):
        authority = await account.make("/ssh_certificate_authorities", private_key_type=kind)
        text = str([authority, await account.ask("GET", "/ssh_certificate_authorities")])
        assert "PRIVATE" not in text
