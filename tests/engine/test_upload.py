"""A TLS certificate follows its Secret: uploaded when it can serve, left serving when the Secret holds what cannot."""

from __future__ import annotations

import functools
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from cryptography import x509 as crypto
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from edge_operator.engine import x509
from edge_operator.engine.operations import Claim, Create, Delete, Stalled, Update
from edge_operator.engine.reasons import Events, Stalls
from edge_operator.engine.state import Desired, Sight
from edge_operator.kinds import KINDS
from engine.account import NOW, settled, wanted

KIND = KINDS["TLSCertificate"]
DAY = timedelta(days=1)
WHERE = "spec.secretRef: Secret 'web-tls'"
PRIVATE = ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


@functools.cache
def key(name: str) -> PRIVATE:
    """A private key for each name; what the name begins with is its type."""
    if name.startswith("rsa"):
        return rsa.generate_private_key(65537, 2048)
    if name.startswith("ed25519"):
        return ed25519.Ed25519PrivateKey.generate()
    return ec.generate_private_key(ec.SECP256R1())


def pem_key(name: str, password: bytes | None = None) -> str:
    lock = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    return key(name).private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock).decode()


@functools.cache
def certificate(
    name: str, issuer: str = "root", begin: datetime = NOW - DAY, end: datetime = NOW + 90 * DAY, number: int = 1
) -> str:
    """A certificate for the key of that name, signed by the issuer's key, in PEM."""
    signer = key(issuer)
    built = (
        crypto.CertificateBuilder()
        .subject_name(crypto.Name([crypto.NameAttribute(crypto.NameOID.COMMON_NAME, name)]))
        .issuer_name(crypto.Name([crypto.NameAttribute(crypto.NameOID.COMMON_NAME, issuer)]))
        .public_key(key(name).public_key())
        .serial_number(number)
        .not_valid_before(begin)
        .not_valid_after(end)
        .sign(signer, None if isinstance(signer, ed25519.Ed25519PrivateKey) else hashes.SHA256())
    )
    return built.public_bytes(serialization.Encoding.PEM).decode()


CHAIN = certificate("leaf", "middle") + certificate("middle", "root") + certificate("root", "root")


@pytest.mark.parametrize(
    ("chain", "secret", "reason"),
    [
        (certificate("leaf"), pem_key("leaf"), "a leaf alone"),
        (CHAIN, pem_key("leaf"), "a whole chain, the root included"),
        (certificate("leaf", "middle") + certificate("middle"), pem_key("leaf"), "a chain without its root"),
        (certificate("rsa", "rsa root"), pem_key("rsa"), "RSA"),
        (certificate("ed25519", "ed25519 root"), pem_key("ed25519"), "Ed25519"),
        (f"leaf:\n{certificate('leaf')}\n\n", f"\n{pem_key('leaf')}\n", "words and empty lines around"),
        (certificate("leaf", begin=NOW), pem_key("leaf"), "valid from this moment"),
        (certificate("leaf", end=NOW + timedelta(seconds=1)), pem_key("leaf"), "valid for a second more"),
    ],
)
def test_a_pair_that_can_serve_passes(chain: str, secret: str, reason: str) -> None:
    x509.verify(chain, secret, where=WHERE, now=NOW)


@pytest.mark.parametrize(
    ("chain", "secret", "message"),
    [
        ("", pem_key("leaf"), "tls.crt should be PEM certificates, leaf first"),
        ("no certificate", pem_key("leaf"), "tls.crt should be PEM certificates, leaf first"),
        (certificate("leaf").replace("A", "*"), pem_key("leaf"), "tls.crt should be PEM certificates, leaf first"),
        (certificate("leaf")[:300], pem_key("leaf"), "tls.crt should be PEM certificates, leaf first"),
        (pem_key("leaf"), pem_key("leaf"), "tls.crt should be PEM certificates, leaf first"),
        (certificate("leaf"), "", "tls.key should be a PEM private key without a passphrase"),
        (certificate("leaf"), "no key", "tls.key should be a PEM private key without a passphrase"),
        (certificate("leaf"), certificate("leaf"), "tls.key should be a PEM private key without a passphrase"),
        (certificate("leaf"), pem_key("leaf", b"x"), "tls.key should be a PEM private key without a passphrase"),
        (certificate("leaf"), pem_key("other"), "tls.key is not the key of the first certificate in tls.crt"),
        (certificate("leaf"), pem_key("rsa"), "tls.key is not the key of the first certificate in tls.crt"),
        (
            certificate("middle") + certificate("leaf", "middle"),
            pem_key("leaf"),
            "tls.key is not the key of the first certificate in tls.crt",
        ),
        (
            certificate("leaf", "middle") + certificate("root", "root") + certificate("middle"),
            pem_key("leaf"),
            "certificate 1 of tls.crt is not issued by certificate 2; write the leaf first",
        ),
        (
            certificate("leaf", "middle") + certificate("middle") + certificate("other", "other"),
            pem_key("leaf"),
            "certificate 2 of tls.crt is not issued by certificate 3; write the leaf first",
        ),
        (certificate("leaf", end=NOW), pem_key("leaf"), "the certificate expired at 2026-01-01T00:00:00Z"),
        (
            certificate("leaf", begin=NOW + DAY),
            pem_key("leaf"),
            "the certificate is not valid before 2026-01-02T00:00:00Z",
        ),
    ],
)
def test_a_pair_that_cannot_serve_is_refused_with_the_reason(chain: str, secret: str, message: str) -> None:
    with pytest.raises(Stalled) as stalled:
        x509.verify(chain, secret, where=WHERE, now=NOW)

    assert Stalls.INVALID_KEY_PAIR == stalled.value.reason
    assert f"{WHERE}: {message}" == stalled.value.message


def test_a_name_alone_does_not_make_an_issuer() -> None:
    """The issuer's name is right and its key is another one's."""
    impostor = (
        crypto.CertificateBuilder()
        .subject_name(crypto.Name([crypto.NameAttribute(crypto.NameOID.COMMON_NAME, "forger")]))
        .issuer_name(crypto.Name([crypto.NameAttribute(crypto.NameOID.COMMON_NAME, "root")]))
        .public_key(key("other").public_key())
        .serial_number(1)
        .not_valid_before(NOW - DAY)
        .not_valid_after(NOW + DAY)
        .sign(key("root"), hashes.SHA256())  # type: ignore[arg-type]  # an elliptic-curve key
    )

    pem = impostor.public_bytes(serialization.Encoding.PEM).decode()

    with pytest.raises(Stalled, match=r"certificate 1 of tls\.crt is not issued by certificate 2"):
        x509.verify(certificate("leaf", "forger") + pem, pem_key("leaf"), where=WHERE, now=NOW)


# When it is uploaded -------------------------------------------------------------------------


def holding(name: str, chain: str, secret: str | None = None, **change: object) -> Desired:
    """The example, with this in its Secret."""
    desired = wanted(KIND, change)
    plain = {**desired.plain, "certificate_pem": chain, "private_key_pem": secret or pem_key("leaf")}
    return replace(desired, plain=plain, applied={**desired.applied, "secretRef": name})


A, B = certificate("leaf", number=1), certificate("leaf", number=2)


def test_a_certificate_that_did_not_change_is_uploaded_once() -> None:
    account, desired = settled(KIND)

    assert () == account.plan(desired, account.unseen()).operations
    assert None is account.plan(desired).due


def test_another_certificate_in_the_secret_is_a_new_upload_and_the_old_one_goes_afterwards() -> None:
    account, _ = settled(KIND)
    first, desired = account.recorded.id or "", holding("b", B)

    todo = account.plan(desired, account.unseen())
    after = account.apply(desired, todo)

    assert [Claim, Create] == [type(o) for o in todo.operations]
    assert (Events.CERTIFICATE_UPLOADED, "the Secret holds another certificate") == (todo.event, todo.why)
    assert (Delete(first, {}),) == after.plan(desired).operations
    assert [after.recorded.id] == [*after.reconciled(desired).objects]


def test_what_cannot_serve_is_not_uploaded_and_the_old_one_goes_on_serving() -> None:
    account, _ = settled(KIND)

    with pytest.raises(Stalled) as stalled:
        account.plan(holding("b", B, pem_key("other")))

    message = "spec.secretRef: Secret 'example-tls': tls.key is not the key of the first certificate in tls.crt"
    assert message == stalled.value.message


def test_a_certificate_that_expired_in_place_is_no_reason_to_do_anything() -> None:
    """What is uploaded is judged when it is uploaded."""
    account, desired = settled(KIND)

    assert () == replace(account, now=NOW + 100_000 * DAY).plan(desired).operations


def test_another_description_is_a_patch_and_no_upload() -> None:
    account, _ = settled(KIND)

    (update,) = account.plan(wanted(KIND, {"description": "new"})).operations

    assert isinstance(update, Update)


@pytest.mark.parametrize("found", [False, True], ids=["another digest key", "found again after a crash"])
def test_without_a_memory_the_certificates_themselves_are_compared(found: bool) -> None:
    """Or a Secret that changed in the meantime would never be uploaded."""
    account, desired = settled(KIND)
    id_ = account.recorded.id or ""
    forgetful = replace(account.recorded, applied={}, **({"id": None, "nonce": None} if found else {}))
    account = replace(account, recorded=forgetful)
    sight = Sight(answer=account.objects[id_], found=id_ if found else None)

    assert () == account.plan(desired, sight).operations
    changed = account.plan(holding("b", B), sight)
    assert "the Secret holds another certificate" == changed.why
    assert [o.body["certificate_pem"] for o in changed.operations if isinstance(o, Create)] == [B]


def test_another_layout_of_the_same_certificate_is_no_other_certificate() -> None:
    account, desired = settled(KIND)
    forgetful = replace(account, recorded=replace(account.recorded, applied={}))
    returned = {**account.answer, "certificate_pem": account.answer["certificate_pem"].replace("\n", "\r\n").strip()}

    assert () == forgetful.plan(desired, Sight(answer=returned)).operations
