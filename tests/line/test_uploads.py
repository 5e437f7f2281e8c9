"""TLS certificates follow their Secret: what can serve is uploaded, what cannot is said, and the old one goes on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta

import pytest

from doubles.crashes import STEADY, judge
from doubles.effects import Fate
from doubles.foreign import foreign
from doubles.hands import NAMESPACE
from doubles.pairs import DAY, Pair, issuing, leaf, new_key, pair, root
from doubles.rig import GRACE_SECONDS, Rig
from doubles.scenarios import effect_of
from doubles.world import START
from edge_operator.engine import brownfield
from edge_operator.kinds import KINDS

from .test_tokens import ours

KIND, SECRET = "TLSCertificate", "example-tls"


def put(rig: Rig, chain: Sequence[Pair] | str, key: Pair | str) -> None:
    """What cert-manager would write."""
    crt = chain if isinstance(chain, str) else "".join(one.crt for one in chain)
    data = {"tls.crt": crt, "tls.key": key if isinstance(key, str) else key.pem_key}
    rig.api.apply(("Secret", NAMESPACE, SECRET), {"type": "kubernetes.io/tls", "data": data})


async def uploaded(rig: Rig, number: int = 0) -> str:
    """A certificate in sync, foreign ones beside it, empty logs; its id."""
    rig.sample(KIND)
    put(rig, [leaf(number), issuing()], leaf(number))
    await rig.settle()
    assert rig.ready(KIND), rig.message(KIND)
    await foreign(rig, KIND)
    rig.forget()
    return rig.id(KIND)


def serving(rig: Rig) -> str:
    """The chain of the object that is ours."""
    (id_,) = ours(rig, KIND)
    (found,) = (doc["certificate_pem"] for doc in rig.remote(KIND) if doc["id"] == id_)
    return str(found)


async def test_every_field_of_the_document_is_in_the_status():
    async with Rig() as rig:
        await uploaded(rig)
        status = rig.status(KIND)
        own = ("applied", "conditions", "createdAt", "id", "uri", "nonce", "seal")
        said = {k: v for k, v in status.items() if k not in own}
        assert said == {
            "observedGeneration": 1,
            "subjectCommonName": "app.example.com",
            "subjectAlternativeNames": {"dnsNames": ["app.example.com", "*.app.example.com"], "ips": ["192.0.2.7"]},
            "notBefore": "2025-12-31T00:00:00Z",
            "notAfter": "2026-04-01T00:00:00Z",
            "keyUsages": status["keyUsages"],
            "extendedKeyUsages": status["extendedKeyUsages"],
            "privateKeyType": "ecdsa",
            "issuerCommonName": "Example Issuing CA",
            "serialNumber": status["serialNumber"],
            "subjectOrganization": "Example Org",
            "subjectOrganizationalUnit": "Edge",
            "subjectLocality": "Thun",
            "subjectProvince": "Bern",
            "subjectCountry": "CH",
        }
        assert len(status["keyUsages"]) == len(status["extendedKeyUsages"]) == 2
        assert status["serialNumber"].replace(":", "").lower().lstrip("0") in ("1234abcd", str(0x1234ABCD))


@pytest.mark.parametrize("kind", ["rsa", "ecdsa", "ed25519"])
async def test_keys_of_every_type_are_uploaded(kind):
    async with Rig() as rig:
        rig.sample(KIND)
        put(rig, [leaf(5, kind), issuing(), root()], leaf(5, kind))
        await rig.settle()
        assert rig.ready(KIND), rig.message(KIND)
        assert rig.status(KIND)["privateKeyType"] == kind


async def test_no_key_and_no_chain_is_in_the_resource_or_an_event():
    async with Rig() as rig:
        await uploaded(rig)
        put(rig, [leaf(1), issuing()], leaf(1))
        await rig.settle()
        text = json.dumps([rig.get(KIND), rig.writes, [str(e) for e in rig.events()]])
        assert "PRIVATE KEY" not in text
        assert "BEGIN CERTIFICATE" not in text
        assert leaf(1).pem_key.splitlines()[1] not in text


async def test_a_changed_secret_uploads_the_new_one_and_then_deletes_the_old():
    async with Rig() as rig:
        first = await uploaded(rig)
        put(rig, [leaf(1), issuing()], leaf(1))
        await rig.settle()
        assert rig.id(KIND) != first
        assert [effect_of(call) for call in rig.calls] == ["POST", "DELETE"]
        assert serving(rig).strip() == (leaf(1).crt + issuing().crt).strip()
        assert rig.events()[0].reason == "CertificateUploaded"
        await judge(rig, KIND, STEADY)


async def test_the_same_certificate_with_another_issuer_behind_it_is_uploaded_too():
    async with Rig() as rig:
        first = await uploaded(rig)
        put(rig, [leaf(0), issuing(), root()], leaf(0))
        await rig.settle()
        assert rig.id(KIND) != first
        await judge(rig, KIND, STEADY)


async def test_a_secret_that_is_written_again_as_it_was_uploads_nothing():
    async with Rig() as rig:
        first = await uploaded(rig)
        rig.api.apply(("Secret", NAMESPACE, SECRET), {"metadata": {"labels": {"touched": "yes"}}})
        await rig.settle()
        assert (rig.id(KIND), rig.calls, rig.writes) == (first, [], [])


BAD = {
    "another key": (lambda: [leaf(1), issuing()], lambda: leaf(2), "not the key of the first"),
    "issuer first": (lambda: [issuing(), leaf(1)], lambda: leaf(1), "not the key of the first"),
    "wrong order behind the leaf": (lambda: [leaf(1), root(), issuing()], lambda: leaf(1), "not issued by"),
    "an issuer of somebody else": (
        lambda: [leaf(1), pair(subject="Example Issuing CA", authority=True, key=new_key("ecdsa", 77))],
        lambda: leaf(1),
        "not issued by",
    ),
    "expired": (
        lambda: [pair(issuing(), key=leaf(1).key, end=START - timedelta(hours=1)), issuing()],
        lambda: leaf(1),
        "expired at 2025-12-31T23:00:00Z",
    ),
    "not valid yet": (
        lambda: [pair(issuing(), key=leaf(1).key, begin=START + DAY), issuing()],
        lambda: leaf(1),
        "not valid before 2026-01-02T00:00:00Z",
    ),
    "no certificate": (lambda: "", lambda: leaf(1), "leaf first"),
    "half a certificate": (lambda: leaf(1).crt[:200], lambda: leaf(1), "leaf first"),
    "no key": (lambda: [leaf(1)], lambda: "", "without a passphrase"),
    "half a key": (lambda: [leaf(1)], lambda: leaf(1).pem_key[:80], "without a passphrase"),
}


@pytest.mark.parametrize("what", BAD)
async def test_a_pair_that_cannot_serve_is_said_and_the_old_one_goes_on(what):
    chain, key, text = BAD[what]
    async with Rig() as rig:
        first = await uploaded(rig)
        put(rig, chain(), key())
        await rig.settle()
        assert rig.reason(KIND) == "InvalidKeyPair"
        assert rig.message(KIND).startswith("spec.secretRef: Secret 'example-tls': ")
        assert text in rig.message(KIND)
        assert ours(rig, KIND) == [first]
        assert [call for call in rig.calls if not call.startswith("GET")] == []
        await rig.restart()
        await rig.settle()
        await rig.resync(KIND)
        assert ours(rig, KIND) == [first]
        put(rig, [leaf(3), issuing()], leaf(3))
        await rig.settle()
        assert rig.id(KIND) != first
        await judge(rig, KIND, STEADY)


@pytest.mark.parametrize("what", BAD)
async def test_a_first_pair_that_cannot_serve_makes_nothing(what):
    chain, key, text = BAD[what]
    async with Rig() as rig:
        rig.sample(KIND)
        put(rig, chain(), key())
        await rig.settle()
        assert (rig.reason(KIND), rig.remote(KIND), rig.calls) == ("InvalidKeyPair", [], [])
        assert text in rig.message(KIND)


@pytest.mark.parametrize("missing", ["tls.crt", "tls.key", None])
async def test_a_half_written_secret_keeps_the_old_one_serving(missing):
    async with Rig() as rig:
        first = await uploaded(rig)
        whole = (rig.published(SECRET) or {})["data"]
        if missing is None:
            rig.api.delete(("Secret", NAMESPACE, SECRET))
        else:
            rig.api.apply(("Secret", NAMESPACE, SECRET), {"data": {k: v for k, v in whole.items() if k != missing}})
        await rig.settle()
        assert rig.reason(KIND) == "SecretNotReady"
        assert (missing or "no Secret") in rig.message(KIND)
        assert ours(rig, KIND) == [first]
        put(rig, whole["tls.crt"], whole["tls.key"])
        await rig.settle()
        assert rig.id(KIND) == first
        await judge(rig, KIND, STEADY)


async def test_a_bad_pair_that_goes_back_to_the_old_one_heals_without_a_write_to_the_service():
    async with Rig() as rig:
        first = await uploaded(rig)
        put(rig, [leaf(1)], leaf(2))
        await rig.settle()
        assert not rig.ready(KIND)
        put(rig, [leaf(0), issuing()], leaf(0))
        await rig.settle()
        assert rig.id(KIND) == first
        assert {call.split()[0] for call in rig.calls} <= {"GET"}
        await judge(rig, KIND, STEADY)


async def test_a_certificate_that_is_not_valid_yet_is_uploaded_when_it_is():
    async with Rig() as rig:
        await uploaded(rig)
        put(rig, [pair(issuing(), key=leaf(1).key, begin=START + DAY), issuing()], leaf(1))
        await rig.settle()
        assert not rig.ready(KIND)
        await rig.sleep(DAY.total_seconds())
        await rig.resync(KIND)
        await judge(rig, KIND, STEADY)


async def test_a_certificate_that_was_uploaded_and_expires_stays_until_there_is_another():
    async with Rig() as rig:
        first = await uploaded(rig)
        await rig.sleep(100 * DAY.total_seconds())
        await rig.restart()
        await rig.resync(KIND)
        assert ours(rig, KIND) == [first]
        assert rig.ready(KIND)


async def test_other_metadata_is_a_patch():
    async with Rig() as rig:
        first = await uploaded(rig)
        rig.edit(KIND, description="other words", metadata='{"team": "a"}')
        await rig.settle()
        assert [effect_of(call) for call in rig.calls] == ["PATCH"]
        assert rig.id(KIND) == first
        assert rig.sent[0].body.keys() == {"description", "metadata"}
        await judge(rig, KIND, STEADY)


async def test_a_certificate_that_vanished_is_uploaded_again():
    async with Rig() as rig:
        first = await uploaded(rig)
        await rig.outside.of(KINDS[KIND].api).raw.delete(first)
        await rig.resync(KIND)
        assert rig.id(KIND) != first
        await judge(rig, KIND, STEADY)


async def test_a_certificate_that_vanished_is_not_uploaded_again_when_it_has_expired():
    async with Rig() as rig:
        first = await uploaded(rig)
        await rig.sleep(100 * DAY.total_seconds())
        await rig.outside.of(KINDS[KIND].api).raw.delete(first)
        await rig.resync(KIND)
        assert rig.reason(KIND) == "InvalidKeyPair"
        assert ours(rig, KIND) == []
        put(rig, [pair(issuing(), key=leaf(1).key, end=START + 900 * DAY), issuing()], leaf(1))
        await rig.settle()
        await judge(rig, KIND, STEADY)


async def test_another_secret_that_is_named_is_uploaded():
    async with Rig() as rig:
        first = await uploaded(rig)
        rig.secret("second", {"tls.crt": leaf(1).crt, "tls.key": leaf(1).pem_key})
        rig.edit(KIND, secretRef={"name": "second"})
        await rig.settle()
        assert rig.id(KIND) != first
        assert serving(rig).strip() == leaf(1).crt.strip()
        await judge(rig, KIND, STEADY)


async def test_another_secret_with_the_same_pair_uploads_nothing():
    async with Rig() as rig:
        first = await uploaded(rig)
        rig.secret("second", (rig.published(SECRET) or {})["data"])
        rig.edit(KIND, secretRef={"name": "second"})
        await rig.settle()
        assert (rig.id(KIND), rig.calls) == (first, [])


@pytest.mark.parametrize("effect", [2, 3])
async def test_a_secret_that_changes_while_an_upload_is_in_doubt_ends_with_the_newest(effect):
    """What was found is compared with the Secret: it may be the certificate from before the crash."""
    async with Rig() as rig:
        await uploaded(rig)
        rig.effects.fates = {len(rig.effects.log) + 2: Fate.DIE_AFTER}
        put(rig, [leaf(1), issuing()], leaf(1))
        await rig.settle(GRACE_SECONDS / 2)
        assert rig.deaths == 1
        put(rig, [leaf(effect), issuing()], leaf(effect))
        await rig.settle()
        assert serving(rig).strip() == (leaf(effect).crt + issuing().crt).strip()
        await judge(rig, KIND, STEADY)


async def test_a_digest_key_that_was_lost_does_not_hide_a_changed_secret():
    async with Rig() as rig:
        first = await uploaded(rig)
        rig.cluster.digest_key = b"another key of thirty-two bytes."
        put(rig, [leaf(1), issuing()], leaf(1))
        await rig.settle()
        assert rig.id(KIND) != first
        assert serving(rig).strip() == (leaf(1).crt + issuing().crt).strip()
        await judge(rig, KIND, STEADY)


async def test_a_digest_key_that_was_lost_uploads_nothing_that_is_there():
    async with Rig() as rig:
        first = await uploaded(rig)
        rig.cluster.digest_key = b"another key of thirty-two bytes."
        await rig.restart()
        await rig.settle()
        assert rig.id(KIND) == first
        assert {call.split()[0] for call in rig.calls} <= {"GET"}


@pytest.mark.parametrize(("number", "ready"), [(0, True), (1, False)])
async def test_an_adopted_certificate_is_ready_only_if_the_secret_holds_it(number, ready):
    async with Rig() as rig:
        body = {"certificate_pem": leaf(0).crt + issuing().crt, "private_key_pem": leaf(0).pem_key}
        answer = await rig.outside.of(KINDS[KIND].api).raw.create(body)
        manifest = brownfield.manifest(KINDS[KIND], answer, NAMESPACE)
        assert manifest is not None
        put(rig, [leaf(number), issuing()], leaf(number))
        rig.apply(KIND, "adopted", {**manifest.document["spec"], "secretRef": {"name": SECRET}})
        await rig.settle()
        assert rig.ready(KIND, "adopted") is ready
        assert {call.split()[0] for call in rig.calls} == {"GET"}
        if not ready:
            assert "another certificate" in rig.message(KIND, "adopted")


async def test_what_stands_between_the_certificates_is_no_other_certificate():
    async with Rig() as rig:
        first = await uploaded(rig)
        rig.cluster.digest_key = b"another key of thirty-two bytes."
        put(
            rig,
            f"subject=app\n{leaf(0).crt}\n\nissuer=ca\n{issuing().crt.replace(chr(10), chr(13) + chr(10))}",
            leaf(0),
        )
        await rig.settle()
        assert (rig.id(KIND), rig.ready(KIND)) == (first, True)
        assert {call.split()[0] for call in rig.calls} <= {"GET"}
