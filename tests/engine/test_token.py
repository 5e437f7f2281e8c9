"""A token through its life: made once, kept, rotated with an overlap, replaced when lost, never pretended."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from edge_operator.engine.operations import Claim, Create, Delete, Publish
from edge_operator.engine.reasons import Events
from edge_operator.engine.state import Published
from edge_operator.kinds import KINDS
from engine.account import NOW, Account, settled, wanted

HOUR = timedelta(hours=1)
KINDS_WITH_TOKEN = [KINDS["APIKey"], KINDS["TunnelCredential"]]
ROTATING = {"rotation": {"interval": "720h", "overlap": "24h"}}
both = pytest.mark.parametrize("kind", KINDS_WITH_TOKEN, ids=lambda k: k.name)


@both
def test_the_first_token_is_made_and_published(kind: Any) -> None:
    todo = Account(kind).plan(wanted(kind))

    assert [Claim, Create, Publish] == [type(o) for o in todo.operations]
    assert (Events.TOKEN_ISSUED, "first token") == (todo.event, todo.why)


@both
def test_a_token_that_is_held_and_not_due_is_left_alone(kind: Any) -> None:
    account, desired = settled(kind, ROTATING)
    young = replace(account, now=NOW + 720 * HOUR - timedelta(seconds=1))

    assert () == young.plan(desired).operations
    assert () == young.plan(desired, young.unseen()).operations
    assert NOW + 720 * HOUR == young.plan(desired).due


@both
def test_without_a_rotation_a_token_stays_for_good(kind: Any) -> None:
    account, desired = settled(kind, {"rotation": None})
    old = replace(account, now=NOW + 100_000 * HOUR)

    assert ((), None) == (old.plan(desired).operations, old.plan(desired).due)


@both
def test_a_due_token_is_followed_by_another_beside_it_until_the_overlap_ends(kind: Any) -> None:
    account, desired = settled(kind, ROTATING)
    first = account.recorded.id or ""
    account = replace(account, now=NOW + 720 * HOUR)

    todo = account.plan(desired)
    after = account.apply(desired, todo)

    assert [Claim, Create, Publish] == [type(o) for o in todo.operations]
    assert (Events.TOKEN_ISSUED, "due for rotation") == (todo.event, todo.why)
    (publish,) = (o for o in todo.operations if isinstance(o, Publish))
    assert {"previous.token": f"token of {first}", "previous.id": first} == publish.material
    assert {"token", "id", "previous-token", "previous-id"} == (after.published and after.published.keys)
    assert {first, after.recorded.id} == after.objects.keys()

    resting = after.plan(desired)
    assert ((), account.now + 24 * HOUR) == (resting.operations, resting.due)
    almost = replace(after, now=account.now + 24 * HOUR - timedelta(seconds=1))
    assert () == almost.plan(desired).operations


@both
def test_when_the_overlap_ends_the_predecessor_goes_from_account_and_secret(kind: Any) -> None:
    account, desired = settled(kind, ROTATING)
    first = account.recorded.id or ""
    after = replace(account, now=NOW + 720 * HOUR).reconciled(desired)
    after = replace(after, now=after.now + 24 * HOUR)

    for _ in range(2):
        after = after.reconciled(desired)

    assert [after.recorded.id] == [*after.objects]
    assert first not in after.objects
    assert {"token", "id"} == (after.published and after.published.keys)
    assert f"token of {after.recorded.id}" == (after.published and after.published.token)
    assert () == after.plan(desired).operations


@both
@pytest.mark.parametrize(("rotation", "stays"), [(ROTATING, 24 * HOUR), ({"rotation": None}, timedelta())])
def test_an_annotation_rotates_at_once(kind: Any, rotation: dict[str, Any], stays: timedelta) -> None:
    account, desired = settled(kind, rotation)

    todo = account.plan(desired, account.sight(rotate=True))
    (previous,) = account.apply(desired, todo).recorded.previous

    assert "rotation was asked for" == todo.why
    assert (account.recorded.id, NOW + stays) == (previous.id, previous.delete_after)


@both
@pytest.mark.parametrize(
    ("published", "reason"),
    [
        (None, "the Secret was deleted"),
        (Published(True, None, frozenset()), "somebody emptied it"),
        (Published(True, "another", frozenset({"token"}), token="x"), "it is another object's"),
        (Published(False, "mine", frozenset({"token"}), token="x"), "it is somebody else's"),
    ],
)
def test_a_lost_token_is_replaced_and_the_old_object_goes(kind: Any, published: Any, reason: str) -> None:
    account, desired = settled(kind, ROTATING)
    first = account.recorded.id or ""
    lost = replace(account, published=published)

    todo = lost.plan(desired)
    after = lost.apply(desired, todo)

    assert "its token is not in the Secret" == todo.why, reason
    assert (Delete(first, {}),) == after.plan(desired).operations
    assert f"token of {after.recorded.id}" == (after.published and after.published.token)
    assert "previous-token" not in (after.published.keys if after.published else ())


@both
def test_a_change_of_words_touches_no_token(kind: Any) -> None:
    account, _ = settled(kind, ROTATING)

    (update,) = account.plan(wanted(kind, {**ROTATING, "description": "new"})).operations

    assert {"description"} == update.body.keys()


@both
def test_the_token_of_an_adopted_object_was_never_ours_to_know(kind: Any) -> None:
    account, _ = settled(kind)
    desired = wanted(kind, {**ROTATING, "externalID": account.recorded.id, "deletionPolicy": "Retain"})
    adopted = replace(account, published=None, recorded=replace(account.recorded, applied=desired.applied))

    for sight in (adopted.sight(), adopted.sight(rotate=True), replace(adopted, now=NOW + 9999 * HOUR).sight()):
        assert () == adopted.plan(desired, sight).operations


@both
@pytest.mark.parametrize("created", [None, "", "yesterday", "2026-01-01T00:00:00"])
def test_an_age_that_is_not_known_is_not_guessed(kind: Any, created: str | None) -> None:
    account, desired = settled(kind, ROTATING)
    status = {"createdAt": created} if created else {}
    account = replace(account, recorded=replace(account.recorded, status=status), now=NOW + 9999 * HOUR)

    assert ((), None) == (
        account.plan(desired, account.unseen()).operations,
        account.plan(desired, account.unseen()).due,
    )


@both
def test_no_token_shows_in_what_may_be_logged(kind: Any) -> None:
    account, desired = settled(kind, ROTATING)
    todo = replace(account, now=NOW + 720 * HOUR).plan(desired)

    assert "token of" not in repr(todo)
    assert "token of" not in repr(account.sight())
