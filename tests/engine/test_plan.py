"""What should be, held against what is: nothing to do where they agree, and exactly the difference where not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from edge_operator.api.wire import SentAs, Wire
from edge_operator.declare import Body, Kind
from edge_operator.engine.operations import Claim, Create, Publish, Update
from edge_operator.engine.project import fields
from edge_operator.kinds import KINDS
from engine.account import Account, settled, wanted

every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@every_kind
def test_what_a_plan_made_needs_no_other_plan(kind: Kind[Any]) -> None:
    account, desired = settled(kind)

    assert () == account.plan(desired).operations
    assert () == account.plan(desired, account.unseen()).operations
    assert None is account.plan(desired).event


@every_kind
def test_what_the_service_fills_in_is_its_own_business(kind: Kind[Any]) -> None:
    """Members that the spec leaves out may be anything, whole modules and nested members included."""
    account, desired = settled(kind, generous=True)

    assert () == account.plan(desired).operations
    assert () == account.plan(desired).drift


@every_kind
def test_a_lost_memory_costs_no_more_than_what_is_not_echoed(kind: Kind[Any]) -> None:
    """Without any digest (another key), the object is compared; only what holds a secret is sent once more."""
    account, desired = settled(kind)
    forgetful = Account(kind, _without_applied(account), account.objects, account.published, account.made)
    secret = {f.wire for f in fields(kind.spec) if not f.reissues and _hidden(kind.api.read, f.wire, desired.plain)}

    todo = forgetful.plan(desired)

    sent = {w for o in todo.operations for w in (o.body if isinstance(o, Update) else [o.segment])}
    assert secret == sent
    assert () == forgetful.apply(desired, todo).plan(desired).operations


@every_kind
def test_the_first_operation_is_the_claim_and_the_post_carries_its_nonce(kind: Kind[Any]) -> None:
    todo = Account(kind).plan(wanted(kind))

    claim, create, *rest = todo.operations
    assert Claim("nonce1") == claim
    assert isinstance(create, Create)
    assert " uid-1.nonce1 default/example" in create.body["metadata"]
    assert [Publish] * bool(kind.outputs) == [type(o) for o in rest]


@every_kind
def test_an_unspent_claim_whose_object_does_not_exist_is_used_again(kind: Kind[Any]) -> None:
    account, desired = Account(kind), wanted(kind)
    account = account.apply(desired, account.plan(desired))
    lost = Account(kind, _only_claimed(account), {}, None, account.made)

    claim, create, *_ = lost.plan(desired).operations

    assert Claim(account.recorded.claim or "") == claim, "writes nothing new, and fails where it was spent meanwhile"
    assert isinstance(create, Create)
    assert f".{account.recorded.claim} " in create.body["metadata"]


def _only_claimed(account: Account) -> Any:
    return replace(account.recorded, id=None, nonce=None, applied={}, status={})


def _without_applied(account: Account) -> Any:
    return replace(account.recorded, applied={})


def _hidden(shape: type[Wire], name: str, sent: Body) -> bool:
    """Whether something below this member is sent and never returned."""
    for member, info in shape.model_fields.items():
        wire = next((m.name for m in info.metadata if isinstance(m, SentAs)), member)
        if wire != name or sent.get(wire) is None:
            continue
        inner = next((a for a in _types(info.annotation) if isinstance(a, type) and issubclass(a, Wire)), None)
        if not info.repr:
            return True
        below = sent[wire] if isinstance(sent[wire], dict) else {}
        return inner is not None and any(_hidden(inner, member, below) for member in below)
    return False


def _types(annotation: Any) -> Iterator[Any]:
    yield annotation
    for inner in getattr(annotation, "__args__", ()):
        yield from _types(inner)
