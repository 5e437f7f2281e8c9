"""When certificates are issued and renewed: at a time that is stable, early, and never in a loop."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doubles.imagined import IDENTITY, desired
from doubles.world import key_pair
from edge_operator.derive import samples
from edge_operator.engine import issue, state
from edge_operator.engine.operations import KeyPair, KeyRequest, Publish, Read, Stalled
from edge_operator.engine.reasons import Stalls
from edge_operator.engine.state import Published, Recorded, Sight
from edge_operator.kinds import KINDS

KIND = KINDS["SSHHostCertificate"]
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
KEYS = frozenset(o.key for o in KIND.outputs)
PAIR = KeyPair(key_pair().public, "private")
HELD = Published(ours=True, id="shcrt_1", keys=KEYS, key_pair=PAIR)


def want(**members):
    return desired(KIND, {k: v for k, v in {**samples.spec(KIND), **members}.items() if v is not None})


def recorded(wanted, lifetime: timedelta) -> Recorded:
    status = {"validAfter": state.stamp(BEGIN), "validUntil": state.stamp(BEGIN + lifetime)}
    return Recorded(id="shcrt_1", nonce="n", claim="n", finalizer=True, applied=wanted.applied, status=status)


def due(wanted, lifetime: timedelta) -> datetime:
    at = issue.due(wanted, recorded(wanted, lifetime), Sight(published=HELD))
    assert at is not None
    return at


@given(st.integers(60, 10**8), st.uuids())
def test_renewal_is_after_two_thirds_at_the_latest_and_a_twentieth_of_that_earlier_at_most(seconds: int, uid):
    wanted = replace(want(renewBefore=None), identity=replace(IDENTITY, uid=str(uid)))
    lifetime = timedelta(seconds=seconds)
    two_thirds = lifetime - lifetime / 3
    at = due(wanted, lifetime) - BEGIN
    assert two_thirds * 0.95 - timedelta(seconds=1) <= at <= two_thirds
    assert due(wanted, lifetime) == due(wanted, lifetime)


@given(st.integers(1, 2159))
def test_renew_before_is_kept_or_exceeded_by_a_twentieth(hours: int):
    wanted = want(renewBefore=f"{hours}h")
    lifetime = timedelta(hours=2160)
    latest = lifetime - timedelta(hours=hours)
    assert latest * 0.95 <= due(wanted, lifetime) - BEGIN <= latest


def test_jitter_spreads_a_fleet():
    times = {due(replace(want(), identity=replace(IDENTITY, uid=f"uid-{n}")), timedelta(days=90)) for n in range(100)}
    assert 100 == len(times)
    assert timedelta(days=2) < max(times) - min(times) < timedelta(days=3)


@pytest.mark.parametrize("hours", [2160, 3000])
def test_a_lifetime_not_longer_than_renew_before_is_said(hours):
    wanted = want(renewBefore=f"{hours}h", validFor=None)
    with pytest.raises(Stalled) as stalled:
        due(wanted, timedelta(hours=2160))
    assert stalled.value.reason is Stalls.LIFETIME_TOO_SHORT
    assert f"spec.renewBefore: {hours}h is not shorter than the certificate's lifetime, 2160h" == stalled.value.message


def test_a_fixed_end_is_not_renewed():
    wanted = want(validFor=None, validUntil="2026-04-01T00:00:00Z")
    assert None is issue.due(wanted, recorded(wanted, timedelta(days=90)), Sight())


@pytest.mark.parametrize(
    ("after", "until"), [(None, None), ("soon", "later"), ("2026-01-01T00:00:00", "2026-02-01T00:00:00")]
)
def test_a_validity_that_the_service_does_not_tell_is_not_guessed(after, until):
    answer = {"valid_after": after, "valid_until": until}
    assert None is issue.due(want(), Recorded(id="shcrt_1"), Sight(answer=answer))


@pytest.mark.parametrize(
    ("sight", "change", "why"),
    [
        pytest.param(Sight(published=HELD), {}, "", id="in sync"),
        pytest.param(Sight(missing=True, published=HELD), {}, "vanished", id="vanished"),
        pytest.param(Sight(), {}, "private key is not in the Secret", id="no Secret"),
        pytest.param(
            Sight(published=replace(HELD, key_pair=None)), {}, "private key is not in the Secret", id="key lost"
        ),
        pytest.param(
            Sight(published=replace(HELD, id="shcrt_0")), {}, "private key is not in the Secret", id="of another one"
        ),
        pytest.param(
            Sight(published=replace(HELD, ours=False)), {}, "private key is not in the Secret", id="somebody else's"
        ),
        pytest.param(Sight(published=HELD, rotate=True), {}, "rotation was asked for", id="asked for"),
        pytest.param(Sight(published=HELD), {"principals": "x" * 16}, "principals changed", id="principals"),
        pytest.param(Sight(published=HELD), {"validFor": "x" * 16}, "validFor changed", id="lifetime"),
    ],
)
def test_a_new_certificate_is_issued_for_a_reason_that_is_said(sight, change, why):
    wanted = want()
    before = recorded(wanted, timedelta(days=90))
    before = replace(before, applied={**before.applied, **change})
    verdict = issue.verdict(wanted, before, sight, BEGIN)
    assert (bool(why), True) == (verdict.replace, why in verdict.why)


def test_the_first_certificate_is_issued():
    verdict = issue.verdict(want(), Recorded(), Sight(), BEGIN)
    assert (True, "first certificate") == (verdict.replace, verdict.why)


def test_the_time_decides_to_the_second():
    wanted = want()
    before, at = recorded(wanted, timedelta(days=90)), due(want(), timedelta(days=90))
    second = timedelta(seconds=1)
    assert not issue.verdict(wanted, before, Sight(published=HELD), at - second).replace
    assert issue.verdict(wanted, before, Sight(published=HELD), at).replace


def test_a_secret_that_lacks_what_can_be_read_again_is_written_again():
    wanted = want()
    less = replace(HELD, keys=KEYS - {"ca.pub"})
    verdict = issue.verdict(wanted, recorded(wanted, timedelta(days=90)), Sight(published=less), BEGIN)
    assert (False, True) == (verdict.replace, verdict.publish)
    steps = issue.republish(wanted, Sight(published=less), "shcrt_1")
    assert (Read("shcrt_1", {}), Publish("example-sshhostcertificate", PAIR)) == steps


@pytest.mark.parametrize("key", ["ssh-host-key-cert.pub", "ssh-host-key.pub", "ca.pub"])
def test_a_secret_of_a_given_key_lacks_only_what_it_should_have(key):
    wanted = want(privateKey=None, publicKey={"value": PAIR.public})
    whole = KEYS - {"ssh-host-key"}

    def publish(keys: frozenset[str]) -> bool:
        held = Published(ours=True, id="shcrt_1", keys=keys)
        return issue.verdict(wanted, recorded(wanted, timedelta(days=90)), Sight(published=held), BEGIN).publish

    assert (False, True) == (publish(whole), publish(whole - {key}))


@pytest.mark.parametrize(
    ("spec", "kept", "expected"),
    [
        pytest.param({"algorithm": "ed25519"}, True, KeyRequest("ed25519", None), id="Always: a new one each time"),
        pytest.param({"algorithm": "ed25519", "rotationPolicy": "Never"}, True, PAIR, id="Never: the kept one"),
        pytest.param(
            {"algorithm": "ed25519", "rotationPolicy": "Never"}, False, KeyRequest("ed25519", None), id="Never: none"
        ),
        pytest.param(
            {"algorithm": "ecdsa", "size": 384, "rotationPolicy": "Never"}, True, KeyRequest("ecdsa", 384),
            id="Never: the kept one is of another algorithm",
        ),
    ],
)  # fmt: skip
def test_the_rotation_policy_says_which_key_is_signed(spec, kept, expected):
    published = HELD if kept else replace(HELD, key_pair=None)
    assert expected == issue.key(want(privateKey=spec), Sight(published=published))


def test_a_given_key_needs_none():
    wanted = want(privateKey=None, publicKey={"value": PAIR.public})
    assert None is issue.key(wanted, Sight())


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        pytest.param({"validFor": "10h"}, {"valid_until": "2026-01-01T10:00:00Z"}, id="from now"),
        pytest.param(
            {"validFor": "10h", "validAfter": "2026-02-01T00:00:00+01:00"},
            {"valid_until": "2026-02-01T09:00:00Z"},
            id="from a fixed start",
        ),
        pytest.param({"validFor": None}, {}, id="the service's default"),
    ],
)
def test_the_lifetime_is_said_as_an_end(members, expected):
    assert expected == issue.body(want(**members), BEGIN)
