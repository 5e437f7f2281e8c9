"""A certificate through its life: issued, left alone, renewed, its predecessor deleted, and so on; never in a hurry."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from doubles.world import key_pair
from edge_operator.engine.operations import Claim, Create, Delete, Publish, Read, Stalled
from edge_operator.engine.reasons import Events, Stalls
from edge_operator.engine.state import Published, stamp
from edge_operator.kinds import KINDS
from engine.account import NOW, Account, settled, wanted

HOST, USER = KINDS["SSHHostCertificate"], KINDS["SSHUserCertificate"]
HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"validFor": "24h"}, "a lifetime of its own"),
        ({"validFor": None}, "the service's lifetime"),
        ({"validFor": "24h", "renewBefore": "23h"}, "an hour's rest"),
        ({"validFor": "24h", "validAfter": stamp(NOW)}, "a fixed start that is now"),
        ({"validFor": "24h", "validAfter": stamp(NOW - 500 * HOUR)}, "a fixed start long ago"),
        (
            {"validFor": None, "validAfter": stamp(NOW - 9000 * HOUR)},
            "a fixed start long ago and the service's lifetime",
        ),
        ({"validFor": "24h", "renewBefore": "8h", "validAfter": stamp(NOW - 500 * HOUR)}, "long ago, and a lead"),
        ({"validFor": "24h", "validAfter": stamp(NOW + 10 * HOUR)}, "a fixed start to come"),
    ],
)
@pytest.mark.parametrize("kind", [HOST, USER], ids=["host", "user"])
def test_between_two_certificates_there_is_rest(kind: Any, change: dict[str, Any], reason: str) -> None:
    account, desired = settled(kind, change, now=NOW)
    for _ in range(5):
        resting = account.plan(desired)
        assert (() if not account.recorded.previous else resting.operations) == resting.operations, reason
        account = account.apply(desired, resting)
        resting = account.plan(desired)
        assert () == resting.operations
        assert resting.due is not None
        assert resting.due - account.now >= timedelta(minutes=50), reason
        account = replace(account, now=resting.due)
        todo = account.plan(desired)
        assert [Claim, Create, Publish] == [type(o) for o in todo.operations]
        assert (Events.CERTIFICATE_ISSUED, "due for renewal") == (todo.event, todo.why)
        account = account.apply(desired, todo)


def test_a_predecessor_goes_only_after_its_successor_is_published() -> None:
    account, desired = settled(HOST)
    first = account.recorded.id or ""
    due = account.plan(desired).due
    assert due is not None

    renewed = replace(account, now=due).reconciled(desired)
    assert {first, renewed.recorded.id} == renewed.objects.keys()
    assert (Delete(first, {}),) == renewed.plan(desired).operations


def test_a_fixed_end_is_kept_and_asked_for_as_it_is() -> None:
    account, desired = settled(HOST, {"validFor": None, "validUntil": "2026-06-01T00:00:00Z"})

    assert "2026-06-01T00:00:00Z" == account.answer["valid_until"]
    late = replace(account, now=NOW + 8000 * HOUR)
    assert ((), None) == (late.plan(desired).operations, late.plan(desired).due)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"principals": ["web-2.example.com"]}, "principals changed"),
        ({"validFor": "100h"}, "validFor changed"),
        ({"authority": {"name": "another"}}, "authority changed"),
        ({"validAfter": "2026-01-02T00:00:00Z", "validFor": None}, "validAfter, validFor changed"),
        ({"privateKey": None, "publicKey": {"value": key_pair(number=9).public}}, "publicKey, privateKey changed"),
    ],
)
def test_what_is_in_the_certificate_takes_a_new_one_when_it_changes(change: dict[str, Any], why: str) -> None:
    account, _ = settled(HOST)
    desired = wanted(HOST, change)

    todo = account.plan(desired)

    assert [Claim, Create, Publish] == [type(o) for o in todo.operations]
    assert sorted(why.removesuffix(" changed").split(", ")) == sorted(todo.why.removesuffix(" changed").split(", "))
    after = account.apply(desired, todo).reconciled(desired)
    assert [after.recorded.id] == [*after.objects]
    assert () == after.plan(desired).operations


def test_principals_in_another_order_are_the_same() -> None:
    account, _ = settled(HOST, {"principals": ["a.example.com", "b.example.com"]})

    assert () == account.plan(wanted(HOST, {"principals": ["b.example.com", "a.example.com"]})).operations


def test_a_renewal_asked_for_by_annotation_is_one_renewal() -> None:
    account, desired = settled(HOST)

    todo = account.plan(desired, account.sight(rotate=True))

    assert "rotation was asked for" == todo.why
    assert [Claim, Create, Publish] == [type(o) for o in todo.operations]


@pytest.mark.parametrize(
    ("published", "operations", "reason"),
    [
        (None, [Claim, Create, Publish], "the key that the operator made is gone"),
        (Published(True, "another", frozenset({"x"})), [Claim, Create, Publish], "the Secret is another certificate's"),
    ],
)
def test_a_lost_private_key_takes_a_new_certificate(published: Any, operations: list[type], reason: str) -> None:
    account, desired = settled(HOST)

    todo = replace(account, published=published).plan(desired)

    assert operations == [type(o) for o in todo.operations], reason
    assert "the private key is not in the Secret" == todo.why


def test_a_secret_of_a_given_key_is_written_again_from_what_the_service_holds() -> None:
    account, desired = settled(HOST, {"privateKey": None, "publicKey": {"value": key_pair(number=9).public}})
    emptied = replace(account, published=None)

    assert [Read, Publish] == [type(o) for o in emptied.plan(desired, emptied.unseen()).operations]
    assert [Publish] == [type(o) for o in emptied.plan(desired).operations]
    assert () == emptied.reconciled(desired).plan(desired).operations


def test_a_service_that_gives_less_than_is_kept_free_stalls_instead_of_looping() -> None:
    account, desired = settled(HOST, {"validFor": None, "renewBefore": "24h"}, lifetime=timedelta(hours=24))

    with pytest.raises(Stalled) as stalled:
        account.plan(desired)

    assert Stalls.LIFETIME_TOO_SHORT == stalled.value.reason
    assert "spec.renewBefore: 24h is not shorter than the certificate's lifetime, 24h" == stalled.value.message


def test_an_adopted_certificate_that_is_due_is_said_and_not_replaced() -> None:
    account, _ = settled(HOST, {"privateKey": None, "publicKey": {"value": key_pair(number=9).public}})
    desired = wanted(HOST, {**_given(), "externalID": account.recorded.id, "deletionPolicy": "Retain"})
    account = Account(HOST, replace(account.recorded, applied=desired.applied), account.objects, account.published)

    with pytest.raises(Stalled, match=r"^spec\.externalID: due for renewal, which takes a new object"):
        replace(account, now=NOW + 2000 * HOUR).plan(desired)


def _given() -> dict[str, Any]:
    return {"privateKey": None, "publicKey": {"value": key_pair(number=9).public}}
