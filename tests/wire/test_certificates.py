"""Certificates, judged by OpenSSH and OpenSSL."""

from __future__ import annotations

import base64
import os
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from wire import account, material
from wire.api import Api, serving
from wire.cited import cites
from wire.clock import Clock

AUTHORITIES = {
    "ed25519": {"private_key_type": "ed25519"},
    "p256": {"private_key_type": "ecdsa", "elliptic_curve": "p256"},
    "p384": {"private_key_type": "ecdsa", "elliptic_curve": "p384"},
    "p521": {"private_key_type": "ecdsa", "elliptic_curve": "p521"},
    "rsa2048": {"private_key_type": "rsa", "key_size": 2048},
    "rsa4096": {"private_key_type": "rsa", "key_size": 4096},
}
BITS = {"ed25519": 256, "p256": 256, "p384": 384, "p521": 521, "rsa2048": 2048, "rsa4096": 4096}
KEYS = ("ed25519", "rsa", "p256", "p384", "p521")


def read_by_openssh(certificate: str, folder: Path) -> dict[str, list[str]]:
    """What `ssh-keygen -L` says, by heading. It verifies the signature: a forged certificate is none to it."""
    file = folder / "key-cert.pub"
    file.write_text(certificate + "\n")
    printed = subprocess.run(
        ["ssh-keygen", "-L", "-f", file],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "TZ": "UTC"},
    ).stdout
    found: dict[str, list[str]] = {}
    heading = ""
    for line in printed.splitlines()[1:]:
        if found_heading := re.match(r"        (\S[^:]*):(.*)", line):
            heading = found_heading[1]
            found[heading] = [found_heading[2].strip()] if found_heading[2].strip() else []
        else:
            found[heading].append(line.strip())
    return found


def fingerprint(public_key: str, folder: Path) -> tuple[int, str]:
    file = folder / "key.pub"
    file.write_text(public_key + "\n")
    bits, digest, *_ = material.run("ssh-keygen", "-l", "-f", file).split()
    return int(bits), digest


async def _authority(api: Api, name: str = "ed25519") -> dict[str, Any]:
    found: dict[str, Any] = await api.ok("POST", "/ssh_certificate_authorities", AUTHORITIES[name])
    return found


async def _signed(api: Api, kind: str, authority: dict[str, Any], key: str = "ed25519", **more: Any) -> dict[str, Any]:
    body = {"ssh_certificate_authority_id": authority["id"], "public_key": material.ssh_public_key(key), **more}
    found: dict[str, Any] = await api.ok("POST", f"/ssh_{kind}_certificates", body)
    return found


@cites("Authority types", "Limits key size", "Curves", "SSH signature", "User certificate form", "User certificate key")
@pytest.mark.parametrize("name", AUTHORITIES)
async def test_an_authority_of_any_type_signs_certificates_that_openssh_accepts(name: str, tmp_path: Path) -> None:
    async with serving() as api:
        authority = await _authority(api, name)
        bits, signer = fingerprint(authority["public_key"], tmp_path)
        assert BITS[name] == bits
        for kind in ("host", "user"):
            for key in KEYS if name == "ed25519" else KEYS[:1]:
                signed = await _signed(api, kind, authority, key, principals=["one.example.com", "192.0.2.1"])
                read = read_by_openssh(signed["certificate"], tmp_path)
                assert read["Type"][0].endswith(f"{kind} certificate")
                assert fingerprint(material.ssh_public_key(key), tmp_path)[1] in read["Public key"][0]
                assert signer in read["Signing CA"][0]
                assert [f'"{signed["id"]}"'] == read["Key ID"]
                assert ["0"] == read["Serial"]
                assert ["one.example.com", "192.0.2.1"] == read["Principals"]


@cites("SSH signature")
async def test_an_rsa_authority_does_not_sign_with_sha1(tmp_path: Path) -> None:
    async with serving() as api:
        signed = await _signed(api, "host", await _authority(api, "rsa2048"))
        assert re.search(r"using rsa-sha2-(256|512)", read_by_openssh(signed["certificate"], tmp_path)["Signing CA"][0])


async def test_openssh_does_not_read_a_certificate_with_another_signature(tmp_path: Path) -> None:
    """Otherwise the tests around this one would show nothing."""
    async with serving() as api:
        kind, blob = (await _signed(api, "host", await _authority(api)))["certificate"].split()[:2]
        broken = bytearray(base64.b64decode(blob))
        broken[-1] ^= 1
        with pytest.raises(subprocess.CalledProcessError):
            read_by_openssh(f"{kind} {base64.b64encode(broken).decode()}", tmp_path)


@cites("Host certificate fields", "Host certificate principals")
async def test_a_host_certificate_has_no_options_and_may_be_for_all_hosts(tmp_path: Path) -> None:
    async with serving() as api:
        read = read_by_openssh((await _signed(api, "host", await _authority(api)))["certificate"], tmp_path)
        assert [["(none)"]] * 3 == [read["Principals"], read["Critical Options"], read["Extensions"]]


@cites("User certificate principals", "User certificate critical options", "User certificate extensions")
async def test_a_user_certificate_carries_the_options_that_it_shows(tmp_path: Path) -> None:
    asked: dict[str, Any] = {
        "principals": ["root", "deploy"],
        "critical_options": {"source-address": "192.0.2.0/24", "force-command": "/bin/true"},
        "extensions": {"permit-user-rc": "", "permit-X11-forwarding": "", "permit-agent-forwarding": ""},
    }
    async with serving() as api:
        authority = await _authority(api)
        read = read_by_openssh((await _signed(api, "user", authority, **asked))["certificate"], tmp_path)
        assert ["root", "deploy"] == read["Principals"]
        assert ["force-command /bin/true", "source-address 192.0.2.0/24"] == read["Critical Options"]
        assert ["permit-X11-forwarding", "permit-agent-forwarding", "permit-user-rc"] == read["Extensions"]
        plain = read_by_openssh((await _signed(api, "user", authority))["certificate"], tmp_path)
        assert ["permit-pty", "permit-user-rc"] == plain["Extensions"]
        assert [["(none)"]] * 2 == [plain["Principals"], plain["Critical Options"]]


@cites("Limits user validity", "Limits host validity", "User certificate dates")
@pytest.mark.parametrize(("kind", "until"), [("user", "2026-03-01T13:00:00"), ("host", "2027-02-28T13:00:00")])
async def test_a_certificate_is_valid_from_now_for_its_default_time(kind: str, until: str, tmp_path: Path) -> None:
    """24 hours for users, one year for hosts."""
    clock = Clock(datetime(2026, 2, 28, 13, tzinfo=UTC))
    async with serving(clock.world()) as api:
        signed = await _signed(api, kind, await _authority(api))
        after, before = re.findall(
            r"\d{4}-\d\d-\d\dT[\d:]{8}", read_by_openssh(signed["certificate"], tmp_path)["Valid"][0]
        )
        assert "2026-02-28T13:00:00Z" == signed["valid_after"] == signed["created_at"]
        assert (f"{until}Z", until) == (signed["valid_until"], before)
        assert datetime.fromisoformat(after) <= datetime(2026, 2, 28, 13)  # noqa: DTZ001 - as ssh-keygen prints it


@cites("Limits user validity", "Limits host validity")
@pytest.mark.parametrize(("kind", "days"), [("user", 1), ("host", 365)])
async def test_the_default_end_counts_from_creation_even_where_the_beginning_is_given(kind: str, days: int) -> None:
    clock = Clock()
    async with serving(clock.world()) as api:
        signed = await _signed(api, kind, await _authority(api), valid_after="2025-12-31T12:00:00Z")
        assert days == (datetime.fromisoformat(signed["valid_until"]) - clock.at).days


@cites("User certificate dates", "Times echoed")
async def test_dates_with_an_offset_are_the_same_moment_in_the_certificate(tmp_path: Path) -> None:
    dates = {"valid_after": "2026-06-01T02:00:00+02:00", "valid_until": "2026-06-30T20:00:00-04:00"}
    async with serving() as api:
        signed = await _signed(api, "user", await _authority(api), **dates)
        assert dates == {name: signed[name] for name in dates}
        read = read_by_openssh(signed["certificate"], tmp_path)
        assert ["from 2026-06-01T00:00:00 to 2026-07-01T00:00:00"] == read["Valid"]


@cites("Authority private key", "TLS private key")
async def test_no_answer_holds_a_private_key() -> None:
    async with serving() as api:
        await account.one_of_each(api)
        for path in ("/ssh_certificate_authorities", "/ssh_host_certificates", "/tls_certificates", "/edges/https"):
            assert "PRIVATE KEY" not in (await api.call("GET", path)).text


def read_by_openssl(pem: str, *options: str) -> str:
    return material.run("openssl", "x509", "-noout", *options, given=pem)


@cites("TLS leaf")
@pytest.mark.parametrize("name", ["rsa", "ecdsa", "ed25519"])
async def test_a_tls_certificate_shows_the_dates_and_usages_that_openssl_reads(name: str) -> None:
    leaf = material.tls_certificate(name)
    async with serving() as api:
        body = {"certificate_pem": leaf, "private_key_pem": material.tls_key(name)}
        found = await api.ok("POST", "/tls_certificates", body)
    read = dict(
        line.split("=", 1) for line in read_by_openssl(leaf, "-dates", "-dateopt", "iso_8601").replace(" ", "T").split()
    )
    assert (read["notBefore"], read["notAfter"]) == (found["not_before"], found["not_after"])
    assert {"digitalsignature", "keyencipherment"} == {_plain(usage) for usage in found["key_usages"]}
    assert {"serverauth", "clientauth"} == {_plain(usage) for usage in found["extended_key_usages"]}


def _plain(usage: str) -> str:
    return re.sub(r"[^a-z]", "", usage.lower())


@cites("SAML read-only")
async def test_the_certificate_that_signs_saml_requests_is_one_that_openssl_reads() -> None:
    async with serving() as api:
        ids = await account.one_of_each(api)
        path = f"/edges/https/{ids['HTTPSEdge']}/routes/{ids['HTTPSRoute']}/saml"
        saml = await api.ok("GET", path)
        assert "subject=" in read_by_openssl(saml["request_signing_certificate_pem"], "-subject")
        assert saml["entity_id"] == saml["metadata_url"]
