"""Certificates renew in time, are verified before they are published, and never lose their key."""

from __future__ import annotations

from datetime import timedelta

import pytest

from doubles.crashes import STEADY, judge
from doubles.foreign import foreign
from doubles.rig import Rig
from doubles.scenarios import effect_of
from doubles.world import key_pair
from edge_operator.declare import Issued
from edge_operator.kinds import KINDS

from .test_life import made

ISSUED = [kind for kind in KINDS if isinstance(KINDS[kind].lifecycle, Issued)]
DAY = 86_400.0
HOST = "SSHHostCertificate"
SECRET = "example-sshhostcertificate"


def secret_of(kind: str) -> str:
    return f"example-{kind.lower()}"


def spec_with_given_key(rig: Rig, kind: str, **members: object) -> None:
    rig.sample(kind, privateKey=None, publicKey={"value": key_pair(number=7).public}, **members)


@pytest.mark.parametrize("kind", ISSUED)
async def test_a_certificate_renews_after_two_thirds_of_its_lifetime(kind):
    async with Rig() as rig:
        rig.sample(kind, validFor="90h", renewBefore=None)
        await rig.settle()
        await foreign(rig, kind)
        first = rig.id(kind)
        rig.forget()
        await rig.sleep((60 - 3 - 0.2) * 3600)
        assert rig.calls == [], "not before: jitter is a twentieth of the 60 hours at most"
        await rig.sleep(3.3 * 3600)
        assert rig.id(kind) != first
        assert [effect_of(call) for call in rig.calls] == ["POST", "DELETE"]
        await judge(rig, kind, STEADY)


async def test_the_new_certificate_is_published_before_the_old_one_is_deleted():
    async with Rig() as rig:
        await made(rig, HOST)
        old = rig.id(HOST)
        await rig.sleep(61 * DAY)
        order = [name.split(" for ")[0].split(",")[0] for name in rig.effects.log]
        renewal = order[order.index("cluster PATCH SSHHostCertificate/example status") + 1 :]
        assert renewal == [
            "cluster PATCH SSHHostCertificate/example finalizer",
            "POST /ssh_host_certificates",
            f"cluster PUT Secret/{SECRET}",
            "cluster PATCH SSHHostCertificate/example status",
            f"DELETE /ssh_host_certificates/{old}",
            "cluster PATCH SSHHostCertificate/example status",
        ]


async def test_a_renewal_after_a_restart_is_not_forgotten():
    async with Rig() as rig:
        await made(rig, HOST)
        first = rig.id(HOST)
        await rig.restart()
        await rig.sleep(61 * DAY)
        assert rig.id(HOST) != first


async def test_a_process_that_slept_past_expiry_renews_at_once():
    async with Rig() as rig:
        await made(rig, HOST)
        first = rig.id(HOST)
        rig.world.elapsed += 400 * DAY
        await rig.restart()
        await rig.settle()
        assert rig.id(HOST) != first
        assert rig.ready(HOST)


async def test_a_clock_that_steps_back_renews_nothing():
    async with Rig() as rig:
        await made(rig, HOST)
        rig.world.step(timedelta(days=-30))
        await rig.restart()
        await rig.settle()
        await rig.sleep(40 * DAY)
        assert rig.calls == []
        await rig.sleep(60 * DAY)
        assert [effect_of(call) for call in rig.calls] == ["POST", "DELETE"]


async def test_a_certificate_with_a_fixed_end_is_not_renewed():
    async with Rig() as rig:
        rig.sample(HOST, validFor=None, validUntil="2026-06-01T00:00:00Z")
        await rig.settle()
        rig.forget()
        await rig.sleep(140 * DAY)
        assert rig.calls == []
        assert rig.status(HOST)["validUntil"] == "2026-06-01T00:00:00Z"


async def test_a_fixed_end_in_the_past_is_said_before_anything_is_asked():
    async with Rig() as rig:
        rig.sample(HOST, validFor=None, validUntil="2025-06-01T00:00:00Z")
        await rig.settle()
        assert rig.reason(HOST) == "LifetimeTooShort"
        assert rig.remote(HOST) == []


@pytest.mark.parametrize("text", ["soon", "2026-13-01T00:00:00Z", "2026-06-01T00:00:00"])
async def test_an_end_that_is_no_time_is_said(text):
    async with Rig() as rig:
        rig.sample(HOST, validFor=None, validUntil=text)
        await rig.settle()
        assert rig.reason(HOST) == "InvalidSpec"
        assert "spec.validUntil" in rig.message(HOST)
        assert rig.remote(HOST) == []


async def test_a_lifetime_that_is_shorter_than_renew_before_stalls_and_does_not_loop():
    async with Rig() as rig:
        rig.sample(HOST, validFor=None, renewBefore="9000h")
        await rig.settle()
        assert rig.reason(HOST) == "LifetimeTooShort"
        assert len(rig.remote(HOST)) == 1
        rig.forget()
        await rig.sleep(10 * DAY)
        await rig.restart()
        await rig.settle()
        assert [call for call in rig.calls if not call.startswith("GET")] == []
        assert rig.writes == []
        rig.edit(HOST, renewBefore="1000h")
        await rig.settle()
        assert rig.ready(HOST)
        assert len(rig.remote(HOST)) == 1


@pytest.mark.parametrize("policy", ["Always", "Never"])
async def test_the_rotation_policy_decides_whether_the_key_stays(policy):
    async with Rig() as rig:
        rig.sample(HOST, privateKey={"algorithm": "ed25519", "rotationPolicy": policy})
        await rig.settle()
        await foreign(rig, HOST)
        before = (rig.published(SECRET) or {})["data"]
        await rig.sleep(61 * DAY)
        after = (rig.published(SECRET) or {})["data"]
        assert before["ssh-host-key-cert.pub"] != after["ssh-host-key-cert.pub"]
        assert (before["ssh-host-key"] == after["ssh-host-key"]) is (policy == "Never")
        await judge(rig, HOST, STEADY)


async def test_a_kept_key_of_another_algorithm_gives_way():
    async with Rig() as rig:
        rig.sample(HOST, privateKey={"algorithm": "ed25519", "rotationPolicy": "Never"})
        await rig.settle()
        await foreign(rig, HOST)
        rig.edit(HOST, privateKey={"algorithm": "ecdsa", "size": 384, "rotationPolicy": "Never"})
        await rig.settle()
        assert (rig.published(SECRET) or {})["data"]["ssh-host-key.pub"].startswith("ecdsa-sha2-nistp384 ")
        await judge(rig, HOST, STEADY)


@pytest.mark.parametrize(("algorithm", "size"), [("rsa", 2048), ("rsa", None), ("ecdsa", 521), ("ecdsa", None)])
async def test_every_algorithm_of_key_is_made_and_signed(algorithm, size):
    async with Rig() as rig:
        rig.sample(HOST, privateKey={"algorithm": algorithm, **({"size": size} if size else {})})
        await rig.settle()
        await foreign(rig, HOST)
        await judge(rig, HOST, STEADY)
        assert rig.status(HOST)["keyType"] == algorithm


@pytest.mark.parametrize("kind", ISSUED)
async def test_a_lost_secret_with_an_operator_made_key_is_a_new_certificate(kind):
    async with Rig() as rig:
        await made(rig, kind)
        await foreign(rig, kind)
        first = rig.id(kind)
        rig.api.delete(("Secret", "default", secret_of(kind)))
        await rig.settle()
        assert rig.id(kind) != first
        await judge(rig, kind, STEADY)


@pytest.mark.parametrize("kind", ISSUED)
async def test_a_lost_secret_for_a_given_key_is_written_again(kind):
    async with Rig() as rig:
        spec_with_given_key(rig, kind)
        await rig.settle()
        await foreign(rig, kind)
        first = rig.id(kind)
        rig.forget()
        rig.api.delete(("Secret", "default", secret_of(kind)))
        await rig.settle()
        assert rig.id(kind) == first
        assert [effect_of(call) for call in rig.calls] == ["GET"]
        await judge(rig, kind, STEADY)


async def test_a_key_of_the_secret_that_went_is_written_again_without_a_new_certificate():
    async with Rig() as rig:
        await made(rig, HOST)
        await foreign(rig, HOST)
        first, held = rig.id(HOST), (rig.published(SECRET) or {})["data"]
        rig.api.apply(("Secret", "default", SECRET), {"data": {k: v for k, v in held.items() if k != "ca.pub"}})
        await rig.settle()
        assert rig.id(HOST) == first
        assert (rig.published(SECRET) or {})["data"] == held
        await judge(rig, HOST, STEADY)


async def test_a_secret_of_somebody_else_is_found_before_anything_is_created():
    async with Rig() as rig:
        rig.secret(SECRET, {"precious": "somebody else's"})
        rig.sample(HOST)
        await rig.settle()
        assert rig.reason(HOST) == "SecretConflict"
        assert rig.message(HOST).startswith(f"Secret '{SECRET}' exists and is not this resource's")
        assert rig.remote(HOST) == []
        assert (rig.published(SECRET) or {})["data"] == {"precious": "somebody else's"}
        rig.api.delete(("Secret", "default", SECRET))
        await rig.settle()
        assert rig.ready(HOST)


async def test_an_authority_by_id_is_asked_for_its_key_before_anything_is_signed():
    async with Rig() as rig:
        await made(rig, "SSHCertificateAuthority")
        rig.sample(HOST, authority={"id": rig.id("SSHCertificateAuthority")})
        await rig.settle()
        await foreign(rig, HOST)
        assert [effect_of(call) for call in rig.calls] == ["GET", "POST"]
        await judge(rig, HOST, STEADY)


async def test_an_authority_by_id_that_does_not_answer_signs_nothing():
    """Otherwise each try would leave a certificate behind."""
    async with Rig() as rig:
        await made(rig, "SSHCertificateAuthority")
        rig.faults({"kind": "status", "status": 503, "method": "GET"})
        rig.sample(HOST, authority={"id": rig.id("SSHCertificateAuthority")})
        await rig.settle()
        assert rig.reason(HOST) == "ServiceUnavailable"
        assert rig.remote(HOST) == []
        rig.faults()
        await rig.sleep(120)
        await foreign(rig, HOST)
        await judge(rig, HOST, STEADY)


class _WrongOnce:
    """A service that signs for other principals than were asked for, as long as `wrong` is set."""

    def __init__(self, rig: Rig) -> None:
        self.wrong = True
        self._inner = rig.process.client._exchange.once
        rig.process.client._exchange.once = self._once  # type: ignore[method-assign]

    async def _once(self, outgoing):
        import dataclasses
        import json

        if self.wrong and outgoing.method == "POST" and b'"principals"' in (outgoing.content or b""):
            body = {**json.loads(outgoing.content), "principals": ["evil.example.com"]}
            outgoing = dataclasses.replace(outgoing, content=json.dumps(body).encode())
        return await self._inner(outgoing)


async def test_a_certificate_for_somebody_else_is_deleted_and_not_published():
    async with Rig() as rig:
        await made(rig, "SSHCertificateAuthority")
        service = _WrongOnce(rig)
        rig.sample(HOST)
        await rig.settle()
        assert rig.reason(HOST) == "InvalidCertificate"
        assert "evil.example.com" in rig.message(HOST)
        assert rig.published(SECRET) is None
        assert rig.remote(HOST) == []
        service.wrong = False
        await rig.resync(HOST)
        await foreign(rig, HOST)
        await judge(rig, HOST, STEADY)


async def test_a_renewal_that_went_wrong_leaves_the_old_certificate_in_place_and_in_the_secret():
    async with Rig() as rig:
        await made(rig, HOST)
        first, held = rig.id(HOST), (rig.published(SECRET) or {})["data"]
        service = _WrongOnce(rig)
        await rig.sleep(61 * DAY)
        assert rig.reason(HOST) == "InvalidCertificate"
        assert rig.id(HOST) == first
        assert [doc["id"] for doc in rig.remote(HOST)] == [first]
        assert (rig.published(SECRET) or {})["data"] == held
        assert "previous" not in rig.status(HOST)
        service.wrong = False
        await rig.resync(HOST)
        await foreign(rig, HOST)
        assert rig.id(HOST) != first
        await judge(rig, HOST, STEADY)


async def test_a_changed_key_of_the_user_is_signed_anew():
    async with Rig() as rig:
        rig.secret("given", {"key.pub": key_pair(number=1).public})
        ref = {"secretKeyRef": {"name": "given", "key": "key.pub"}}
        rig.sample(HOST, privateKey=None, publicKey=ref)
        await rig.settle()
        await foreign(rig, HOST)
        first = rig.id(HOST)
        rig.secret("given", {"key.pub": key_pair(number=2).public})
        await rig.settle()
        assert rig.id(HOST) != first
        assert (rig.published(SECRET) or {})["data"]["ssh-host-key.pub"].strip() == key_pair(number=2).public
        await judge(rig, HOST, STEADY)


async def test_another_authority_signs_anew():
    async with Rig() as rig:
        await made(rig, HOST)
        await foreign(rig, HOST)
        rig.sample("SSHCertificateAuthority", "second")
        rig.edit(HOST, authority={"name": "second"})
        await rig.settle()
        assert (rig.published(SECRET) or {})["data"]["ca.pub"].strip() == rig.status(
            "SSHCertificateAuthority", "second"
        )["publicKey"]
        await judge(rig, HOST, STEADY)


async def test_another_secret_name_moves_the_output_and_keeps_it_whole():
    async with Rig() as rig:
        spec_with_given_key(rig, HOST)
        await rig.settle()
        rig.edit(HOST, secretName="elsewhere")
        await rig.settle()
        assert rig.published("elsewhere") is not None
        assert rig.status(HOST)["secretName"] == "elsewhere"
        assert rig.ready(HOST)
        rig.delete(HOST)
        await rig.settle()
        assert rig.published("elsewhere") is rig.published(SECRET) is None
