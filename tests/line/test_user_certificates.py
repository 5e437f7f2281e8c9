"""User certificates: what is asked for is in what is signed, before it is published; and it never runs out."""

from __future__ import annotations

import dataclasses
import json
from datetime import timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import ssh

from doubles.crashes import STEADY, judge
from doubles.foreign import foreign
from doubles.rig import Rig
from doubles.scenarios import effect_of
from doubles.world import key_pair
from edge_operator.engine.state import parsed

from .test_life import made

KIND, SECRET = "SSHUserCertificate", "example-sshusercertificate"
HOUR = 3600.0
DEFAULTS = {"permit-pty": "", "permit-user-rc": ""}


def held(rig: Rig) -> dict[str, str]:
    found = rig.published(SECRET)
    assert found is not None
    data: dict[str, str] = found["data"]
    return data


def signed(rig: Rig) -> ssh.SSHCertificate:
    """The certificate in the Secret."""
    found = ssh.load_ssh_public_identity(held(rig)["ssh-certificate"].encode())
    assert isinstance(found, ssh.SSHCertificate)
    return found


def words(options: Any) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in options.items()}


async def certified(rig: Rig, **members: Any) -> str:
    """A certificate in sync, foreign ones beside it, empty logs; its id."""
    rig.sample(KIND, **members)
    await rig.settle()
    assert rig.ready(KIND), rig.message(KIND)
    await foreign(rig, KIND)
    rig.forget()
    return rig.id(KIND)


# Lifetime ----------------------------------------------------------------------------------------


async def test_a_certificate_lasts_a_day_where_the_spec_says_nothing_and_is_renewed_before():
    async with Rig() as rig:
        first = await certified(rig, validFor=None, renewBefore=None)
        status = rig.status(KIND)
        assert parsed(status["validUntil"]) - parsed(status["validAfter"]) == timedelta(hours=24)
        await rig.sleep(15 * HOUR)
        assert rig.id(KIND) == first, "not before two thirds, less a twentieth"
        await rig.sleep(1.1 * HOUR)
        assert rig.id(KIND) != first
        assert [effect_of(call) for call in rig.calls] == ["POST", "DELETE"]
        await judge(rig, KIND, STEADY)


async def test_a_week_of_renewals_never_shows_an_expired_certificate():
    async with Rig() as rig:
        await certified(rig, validFor=None, renewBefore="2h")
        seen = set()
        for _ in range(7 * 24 - 5):
            await rig.sleep(HOUR)
            seen.add(rig.id(KIND))
            left = signed(rig).valid_before - rig.world.now().timestamp()
            assert left > 1.9 * HOUR
            assert rig.ready(KIND)
        assert 6 < len(seen) < 10
        await judge(rig, KIND, STEADY)


async def test_a_renewal_that_fails_keeps_the_old_one_and_goes_on_trying():
    async with Rig() as rig:
        first = await certified(rig, validFor=None, renewBefore=None)
        before = held(rig)
        rig.faults({"kind": "status", "status": 503, "method": "POST"})
        await rig.sleep(17 * HOUR)
        assert (rig.id(KIND), held(rig)) == (first, before)
        assert rig.reason(KIND) in ("ServiceUnavailable", "Recovering")
        rig.faults()
        await rig.sleep(HOUR)
        assert rig.id(KIND) != first
        await judge(rig, KIND, STEADY)


# What is signed ----------------------------------------------------------------------------------


async def test_options_and_extensions_are_in_the_signed_certificate():
    options = {"force-command": "/usr/bin/uptime -p", "source-address": "10.0.0.0/8,192.0.2.7/32"}
    extensions = {"permit-pty": "", "permit-port-forwarding": "", "login@example.com": "deploy"}
    async with Rig() as rig:
        await certified(rig, criticalOptions=options, extensions=extensions, principals=["deploy", "root"])
        found = signed(rig)
        assert words(found.critical_options) == options
        assert words(found.extensions) == extensions
        assert sorted(found.valid_principals) == [b"deploy", b"root"]
        assert found.type is ssh.SSHCertificateType.USER
        await judge(rig, KIND, STEADY)


async def test_extensions_have_their_defaults_where_the_spec_says_nothing():
    async with Rig() as rig:
        await certified(rig, criticalOptions=None, extensions=None)
        assert words(signed(rig).extensions) == DEFAULTS
        assert words(signed(rig).critical_options) == {}
        await judge(rig, KIND, STEADY)


async def test_no_extensions_at_all_can_be_asked_for():
    async with Rig() as rig:
        await certified(rig, extensions={})
        assert words(signed(rig).extensions) == {}
        await judge(rig, KIND, STEADY)


EDITS: dict[str, dict[str, Any]] = {
    "another principal": {"principals": ["other"]},
    "one principal more": {"principals": ["deploy", "other"]},
    "an option": {"criticalOptions": {"force-command": "/bin/true"}},
    "the value of an option": {"criticalOptions": {"source-address": "192.0.2.0/24"}},
    "no options": {"criticalOptions": None},
    "an extension": {"extensions": {"permit-pty": "", "permit-agent-forwarding": ""}},
    "the default extensions": {"extensions": None},
    "a key of another algorithm": {"privateKey": {"algorithm": "ecdsa", "size": 384}},
    "the user's key": {"privateKey": None, "publicKey": {"value": key_pair(number=3).public}},
}


@pytest.mark.parametrize("what", EDITS)
async def test_an_edit_of_what_is_signed_signs_anew(what):
    async with Rig() as rig:
        first = await certified(rig)
        before = held(rig)
        rig.edit(KIND, **EDITS[what])
        await rig.settle()
        assert rig.ready(KIND), rig.message(KIND)
        assert rig.id(KIND) != first
        assert held(rig)["ssh-certificate"] != before["ssh-certificate"]
        assert [effect_of(call) for call in rig.calls] == ["POST", "DELETE"]
        await judge(rig, KIND, STEADY)


@pytest.mark.parametrize(
    "members",
    [{"renewBefore": "3h"}, {"principals": ["root", "deploy"]}],
    ids=["when to renew", "the order of principals"],
)
async def test_an_edit_of_what_is_not_signed_signs_nothing(members):
    async with Rig() as rig:
        first = await certified(rig, principals=["deploy", "root"])
        rig.edit(KIND, **members)
        await rig.settle()
        assert (rig.id(KIND), rig.calls) == (first, [])
        assert rig.ready(KIND)


async def test_a_request_for_rotation_signs_once_for_each_value():
    async with Rig() as rig:
        seen = [await certified(rig)]
        for value in ("1", "2"):
            rig.annotate(KIND, rotate_requested_at=value)
            await rig.settle()
            await rig.restart()
            await rig.settle()
            seen.append(rig.id(KIND))
            assert rig.status(KIND)["lastHandledRotateAt"] == value
        assert [effect_of(call) for call in rig.calls] == ["POST", "DELETE"] * 2
        assert len(set(seen)) == 3
        await judge(rig, KIND, STEADY)


class _Lying:
    """A service that signs something else than it was asked for, while `lies` says what."""

    def __init__(self, rig: Rig, **lies: Any) -> None:
        self.lies = lies
        self._inner = rig.process.client._exchange.once
        rig.process.client._exchange.once = self._once  # type: ignore[method-assign]

    async def _once(self, outgoing: Any) -> Any:
        if outgoing.method == "POST" and self.lies:
            content = json.dumps({**json.loads(outgoing.content), **self.lies}).encode()
            outgoing = dataclasses.replace(outgoing, content=content)
        return await self._inner(outgoing)


LIES: dict[str, dict[str, Any]] = {
    "another user": {"principals": ["root"]},
    "any user": {"principals": []},
    "another key": {"public_key": key_pair(number=666).public},
    "without its options": {"critical_options": {}},
    "another option": {"critical_options": {"force-command": "/bin/sh"}},
    "another value of an option": {"critical_options": {"source-address": "0.0.0.0/0"}},
    "an extension more": {"extensions": {"permit-pty": "", "permit-port-forwarding": ""}},
    "another value of an extension": {"extensions": {"permit-pty": "yes"}},
}


@pytest.mark.parametrize("lie", LIES)
async def test_a_certificate_that_is_not_what_was_asked_for_is_deleted_and_not_published(lie):
    async with Rig() as rig:
        await made(rig, "SSHCertificateAuthority")
        service = _Lying(rig, **LIES[lie])
        rig.sample(KIND, criticalOptions={"source-address": "10.0.0.0/8"}, extensions={"permit-pty": ""})
        await rig.settle()
        assert rig.reason(KIND) == "InvalidCertificate"
        assert rig.published(SECRET) is None
        assert rig.remote(KIND) == []
        service.lies = {}
        await rig.resync(KIND)
        await foreign(rig, KIND)
        await judge(rig, KIND, STEADY)


# Keys --------------------------------------------------------------------------------------------


async def test_an_operator_made_key_is_in_the_secret_under_the_names_of_openssh():
    async with Rig() as rig:
        await certified(rig)
        data = held(rig)
        assert data.keys() == {"ssh-privatekey", "ssh-publickey", "ssh-certificate", "ca.pub"}
        assert all(text.endswith("\n") for text in data.values())
        private = serialization.load_ssh_private_key(data["ssh-privatekey"].encode(), None)
        public = private.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
        assert data["ssh-publickey"].strip() == public.decode()
        assert data["ca.pub"].strip() == rig.status("SSHCertificateAuthority")["publicKey"]


async def test_a_given_key_is_signed_and_no_private_key_is_in_the_secret():
    async with Rig() as rig:
        await certified(rig, privateKey=None, publicKey={"value": f"{key_pair(number=5).public} me@laptop"})
        data = held(rig)
        assert data.keys() == {"ssh-publickey", "ssh-certificate", "ca.pub"}
        assert data["ssh-publickey"].split()[1] == key_pair(number=5).public.split()[1]
        assert rig.world.made == []
        await judge(rig, KIND, STEADY)


async def test_a_key_from_a_secret_is_followed():
    async with Rig() as rig:
        rig.sample("SSHCertificateAuthority")
        rig.sample(KIND, privateKey=None, publicKey={"secretKeyRef": {"name": "mine", "key": "id.pub"}})
        await rig.settle()
        assert rig.reason(KIND) == "SecretNotReady"
        rig.secret("mine", {"id.pub": key_pair(number=1).public + "\n"})
        await rig.settle()
        await foreign(rig, KIND)
        first = rig.id(KIND)
        rig.secret("mine", {"id.pub": key_pair(number=2).public + "\n"})
        await rig.settle()
        assert rig.id(KIND) != first
        assert held(rig)["ssh-publickey"].strip() == key_pair(number=2).public
        await judge(rig, KIND, STEADY)


@pytest.mark.parametrize("text", ["", "no key", "ssh-ed25519 AAAA", key_pair(number=1).private])
async def test_a_given_key_that_cannot_be_read_is_said_and_nothing_is_signed(text):
    async with Rig() as rig:
        rig.sample("SSHCertificateAuthority")
        await rig.settle()
        rig.secret("mine", {"id.pub": text})
        rig.sample(KIND, privateKey=None, publicKey={"secretKeyRef": {"name": "mine", "key": "id.pub"}})
        await rig.settle()
        assert not rig.ready(KIND)
        assert rig.reason(KIND) in ("InvalidKeyPair", "InvalidSpec")
        assert rig.remote(KIND) == []
        assert rig.published(SECRET) is None


@pytest.mark.parametrize("to_given", [True, False])
async def test_the_key_can_change_hands(to_given):
    given = {"privateKey": None, "publicKey": {"value": key_pair(number=8).public}}
    own = {"privateKey": {"algorithm": "ed25519"}, "publicKey": None}
    async with Rig() as rig:
        await certified(rig, **(own if to_given else given))
        rig.edit(KIND, **(given if to_given else own))
        await rig.settle()
        assert ("ssh-privatekey" in held(rig)) is not to_given
        await judge(rig, KIND, STEADY)
