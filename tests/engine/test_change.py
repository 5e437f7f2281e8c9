"""What an edit of the spec takes: only what changed, in an order that never leaves anything unguarded."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from edge_operator.declare import Kind
from edge_operator.engine.operations import Create, DeleteModule, Operation, PutModule, Stalled, Update
from edge_operator.engine.plan import Plan
from edge_operator.engine.project import fields
from edge_operator.engine.reasons import Events, Stalls
from edge_operator.kinds import KINDS
from engine.account import NOW, Account, drifting, settled, wanted

ROUTE = KINDS["HTTPSRoute"]
OTHER_BACKEND = {"ref": {"kind": None, "name": None, "id": "bkdhr_other"}}


def edited(kind: str, change: dict[str, Any], *, before: dict[str, Any] | None = None, look: bool = False) -> Plan:
    """What it takes to bring the example with `before` on it to the example with `change` on it."""
    account, _ = settled(KINDS[kind], before)
    return account.plan(wanted(KINDS[kind], change), account.sight() if look else account.unseen())


look_or_not = pytest.mark.parametrize("look", [False, True], ids=["by digests", "by a look"])


@look_or_not
@pytest.mark.parametrize(
    ("kind", "change", "members"),
    [
        ("TLSEdge", {"description": "new"}, {"description"}),
        ("TLSEdge", {"metadata": "new"}, {"metadata"}),
        ("TLSEdge", {"hostports": ["db.example.com:8443"]}, {"hostports"}),
        ("TLSEdge", {"backend": OTHER_BACKEND, "description": "new"}, {"backend", "description"}),
        ("TCPEdge", {"ipRestriction": {"enabled": False}}, {"ip_restriction"}),
        ("HTTPSRoute", {"match": "/v2"}, {"match"}),
        ("WeightedBackend", {"backends": [{"ref": {"id": "bkdhr_1"}, "weight": 1}]}, {"backends"}),
        ("FailoverBackend", {"backends": [{"id": "bkdhr_1"}]}, {"backends"}),
        ("EventDestination", {"target": {"monitoring": {"site": "us"}}}, {"target"}),
        ("TunnelCredential", {"acl": None}, {"acl"}),
        ("SSHHostCertificate", {"description": "new"}, {"description"}),
        ("TLSCertificate", {"description": "new"}, {"description"}),
    ],
)
def test_a_patch_carries_only_what_changed(kind: str, change: dict[str, Any], members: set[str], look: bool) -> None:
    todo = edited(kind, change, look=look)

    (update,) = todo.operations
    assert isinstance(update, Update)
    assert members == update.body.keys()
    assert (Events.UPDATED, ()) == (todo.event, todo.drift)


@look_or_not
def test_a_changed_module_is_sent_complete(look: bool) -> None:
    todo = edited("TLSEdge", {"backend": {"enabled": False}}, look=look)

    (update,) = todo.operations
    assert isinstance(update, Update)
    assert {"backend": {"enabled": False, "backend_id": "bkdwd_example"}} == update.body


@look_or_not
@pytest.mark.parametrize(
    ("kind", "change", "reason"),
    [
        ("TunnelCredential", {"acl": ["bind:env=production", "bind:*.example.com"]}, "rules have no order"),
        ("HTTPSRoute", {"requestHeaders": {"remove": ["X-Debug"]}}, "header names have no case"),
        ("HTTPSRoute", {"webhookVerification": {"provider": "GITHUB"}}, "providers have no case"),
        ("TLSEdge", {"deletionPolicy": "Retain"}, "a policy is for the operator alone"),
        ("TLSEdge", {"onRemoteMissing": "Stall"}, "a policy is for the operator alone"),
        ("APIKey", {"rotation": {"interval": "900h"}}, "a rotation changes nothing about the key that is there"),
        ("SSHHostCertificate", {"renewBefore": "200h"}, "renewal is for the operator alone"),
        ("SSHHostCertificate", {"validFor": "7776000s"}, "2160h in another unit"),
    ],
)
def test_an_edit_without_meaning_sends_nothing(kind: str, change: dict[str, Any], reason: str, look: bool) -> None:
    assert () == edited(kind, change, look=look).operations, reason


@look_or_not
@pytest.mark.parametrize(
    ("kind", "alias"), [(k.name, f.alias) for k in KINDS.values() for f in fields(k.spec) if f.module]
)
def test_a_module_that_leaves_the_spec_is_deleted_and_stays_so(kind: str, alias: str, look: bool) -> None:
    account, _ = settled(KINDS[kind])
    desired = wanted(KINDS[kind], {alias: None})
    wire = next(f.wire for f in fields(KINDS[kind].spec) if f.alias == alias)

    todo = account.plan(desired, account.sight() if look else account.unseen())
    after = account.apply(desired, todo)

    assert (DeleteModule(account.recorded.id or "", wire, account.recorded.path),) == todo.operations
    assert (Events.UPDATED, alias) == (todo.event, todo.why)
    assert {**account.answer, wire: None} == after.answer
    assert () == after.plan(desired).operations
    assert () == after.plan(desired, after.unseen()).operations


@look_or_not
def test_a_changed_secret_is_sent_although_the_service_never_shows_it(look: bool) -> None:
    change = {"oidc": {"clientSecret": {"secretKeyRef": {"key": "another"}}}}

    (put,) = edited("HTTPSRoute", change, look=look).operations

    assert isinstance(put, PutModule)
    assert ("oidc", "value of example-route/another") == (put.segment, put.body["client_secret"])


# Order ---------------------------------------------------------------------------------------

GUARDED = [KINDS[k] for k in ("HTTPSRoute", "HTTPSEdge", "TLSEdge", "TCPEdge")]
TERMINATIONS = st.sampled_from([None, {"terminateAt": "upstream", "minVersion": None}, {"terminateAt": "edge"}])


@st.composite
def specs(draw: st.DrawFn, kind: Kind[Any]) -> dict[str, Any]:
    """A change to the example: each module there, switched off, or absent, and other words."""
    change: dict[str, Any] = {"description": draw(st.sampled_from(["one", "two"]))}
    if "match" in kind.spec.model_fields:
        change["match"] = draw(st.sampled_from(["/one", "/two"]))
    for field in fields(kind.spec):
        if field.alias == "tlsTermination":
            change[field.alias] = draw(TERMINATIONS)
        elif field.alias == "backend":
            change[field.alias] = draw(st.sampled_from([None, {}, OTHER_BACKEND]))
        elif field.module:
            change[field.alias] = draw(st.sampled_from([None, {"enabled": False}, {"enabled": True}]))
    try:
        wanted(kind, change)
    except ValidationError:  # client certificates with TLS that passes through
        change["mutualTLS"] = None
    return change


@st.composite
def moves(draw: st.DrawFn) -> tuple[Kind[Any], dict[str, Any], dict[str, Any], bool]:
    kind = draw(st.sampled_from(GUARDED))
    return kind, draw(specs(kind)), draw(specs(kind)), draw(st.booleans())


@given(moves())
@settings(max_examples=150, deadline=None)
def test_guards_go_on_before_anything_else_changes_and_come_off_after_everything_else(
    move: tuple[Kind[Any], dict[str, Any], dict[str, Any], bool],
) -> None:
    kind, before, after, look = move
    account, _ = settled(kind, before)
    desired = wanted(kind, after)
    guards = {f.wire for f in fields(kind.spec) if f.module and f.module.protects}

    todo = account.plan(desired, account.sight() if look else account.unseen())

    on, other, off = [], [], []
    for index, operation in enumerate(todo.operations):
        going_on, going_off, rest = _parts(operation, guards)
        on += [index] * going_on
        off += [index] * going_off
        other += [index] * rest
    assert all(g <= o for g in on for o in other), todo.operations
    assert all(o <= g for g in off for o in (*other, *on)), todo.operations


def _parts(operation: Operation, guards: set[str]) -> tuple[bool, bool, bool]:
    """Whether an operation puts a guard on, takes one off, changes anything else. TLS termination is judged below."""
    match operation:
        case Update(body=body):
            sent = {w: v for w, v in body.items() if w != "tls_termination"}
        case PutModule(segment=segment, body=body):
            sent = {segment: body} if segment != "tls_termination" else {}
        case DeleteModule(segment=segment):
            return False, segment in guards, segment not in guards and segment != "tls_termination"
        case _:
            raise AssertionError(operation)
    switched = [v["enabled"] for w, v in sent.items() if w in guards]
    return any(switched), not all(switched) and len(sent) == 1, bool(sent.keys() - guards)


@given(moves())
@settings(max_examples=150, deadline=None)
def test_every_step_in_between_is_one_that_the_service_permits(
    move: tuple[Kind[Any], dict[str, Any], dict[str, Any], bool],
) -> None:
    """Source: API document, TLS termination rules, 2."""
    kind, before, after, look = move
    account, _ = settled(kind, before)
    desired = wanted(kind, after)
    todo = account.plan(desired, account.sight() if look else account.unseen())

    for count in range(len(todo.operations) + 1):
        partly = account.apply(desired, Plan(todo.operations[:count])).answer
        termination, mutual = partly.get("tls_termination"), partly.get("mutual_tls")
        passes = termination is not None and termination["terminate_at"] == "upstream"
        assert not (passes and mutual is not None), todo.operations

    done = account.apply(desired, todo)
    assert {k: v for k, v in settled(kind, after)[0].answer.items() if k != "metadata"} == {
        k: v for k, v in done.answer.items() if k != "metadata"
    }
    assert () == done.plan(desired).operations


@pytest.mark.parametrize(
    ("change", "members"),
    [
        ({"ipRestriction": {"enabled": False}}, {"ip_restriction"}),
        ({"tlsTermination": {"terminateAt": "upstream", "minVersion": None}}, {"tls_termination"}),
    ],
    ids=["a guard is switched off", "TLS passes through"],
)
def test_what_has_no_module_to_wait_for_is_one_request(change: dict[str, Any], members: set[str]) -> None:
    before = {"mutualTLS": None}

    (update,) = edited("TLSEdge", {**before, **change, "description": "new"}, before=before).operations

    assert isinstance(update, Update)
    assert {"description", *members} == update.body.keys()


def test_sign_in_is_never_off_while_one_provider_takes_the_place_of_another() -> None:
    todo = edited("HTTPSRoute", {"oauth": {"enabled": False}, "saml": None}, before={"oidc": None, "saml": None})

    assert [("oidc", True), ("oauth", False)] == [
        (o.segment, o.body["enabled"]) for o in todo.operations if isinstance(o, PutModule)
    ]


def test_a_creation_carries_every_module_in_one_request() -> None:
    _, create = Account(ROUTE).plan(wanted(ROUTE)).operations

    assert isinstance(create, Create)
    assert {f.wire for f in fields(ROUTE.spec) if f.module} <= create.body.keys()


# What cannot change --------------------------------------------------------------------------


@look_or_not
@pytest.mark.parametrize(
    ("kind", "change", "alias"),
    [
        ("AgentIngress", {"domain": "other.example.com"}, "domain"),
        ("SSHCertificateAuthority", {"ellipticCurve": "p256"}, "ellipticCurve"),
        ("SSHCertificateAuthority", {"ellipticCurve": None}, "ellipticCurve"),
        ("SSHCertificateAuthority", {"privateKeyType": "ed25519", "ellipticCurve": None}, "privateKeyType"),
        ("HTTPSRoute", {"edge": {"name": "other"}}, "edge"),
        ("HTTPSRoute", {"edge": {"name": None, "id": "edghts_other"}}, "edge"),
    ],
)
def test_a_changed_fixed_field_stalls_and_names_it(kind: str, change: dict[str, Any], alias: str, look: bool) -> None:
    with pytest.raises(Stalled) as stalled:
        edited(kind, change, look=look)

    assert Stalls.IMMUTABLE_FIELD_CHANGED == stalled.value.reason
    assert f"spec.{alias}" in stalled.value.message
    assert "delete and create the resource to change it" in stalled.value.message


def test_an_owner_that_is_named_later_is_a_change_that_the_service_does_not_offer() -> None:
    account, _ = settled(KINDS["APIKey"], {"ownerID": "usr_1"})

    with pytest.raises(Stalled) as stalled:
        account.plan(wanted(KINDS["APIKey"], {"ownerID": "usr_2"}))

    assert "spec.ownerID: fixed at creation; delete and create the resource to change it" == stalled.value.message


def test_a_route_follows_its_edge_when_that_was_made_anew() -> None:
    """What the user wrote is the same; the id behind it is not."""
    account, desired = settled(ROUTE)
    moved = type(desired)(**{**vars(desired), "path": {"edge_id": "edghts_new"}})

    todo = account.plan(moved)
    after = account.apply(moved, todo)

    assert Events.REPLACED == todo.event
    assert {"edge_id": "edghts_new"} == next(o.path for o in todo.operations if isinstance(o, Create))
    (previous,) = after.recorded.previous
    assert (account.recorded.id, {"edge_id": "edghts_example"}) == (previous.id, previous.path)
    assert previous.delete_after <= NOW
    last = after.reconciled(moved)
    assert [last.recorded.id] == [*last.objects]
    assert () == last.plan(moved).operations


def test_an_object_that_lost_the_whole_of_it_gets_it_back() -> None:
    account, desired = settled(ROUTE)
    bare = account
    for name in [f.wire for f in fields(ROUTE.spec) if f.module]:
        bare = drifting(bare, (name,), None)

    assert account.answer == bare.reconciled(desired).answer
