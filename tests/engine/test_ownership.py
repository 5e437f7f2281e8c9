"""Whose an object is and what becomes of it: observed, adopted, found again, superseded, vanished, deleted."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from edge_operator.declare import Kind, Managed
from edge_operator.engine import marker, plan
from edge_operator.engine.operations import Claim, Create, Delete, Disown, PutModule, Release, Stalled, Update
from edge_operator.engine.reasons import Events, Stalls
from edge_operator.engine.state import Previous, Recorded, Sight
from edge_operator.kinds import KINDS
from engine.account import NOW, Account, drifting, settled, wanted

every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
SECRETIVE = {"EventDestination", "HTTPSRoute"}
"""Their examples hold secrets that no service returns, so that adoption sends them once."""
MANAGED = [k for k in KINDS.values() if isinstance(k.lifecycle, Managed) and k.name not in SECRETIVE]
managed = pytest.mark.parametrize("kind", MANAGED, ids=lambda k: k.name)
OBSERVE = {"managementPolicy": "Observe", "deletionPolicy": "Retain"}


def theirs(kind: Kind[Any], metadata: str = "") -> tuple[Account, str]:
    """An account that holds what the example says, made by somebody else."""
    account, _ = settled(kind)
    id_ = account.recorded.id or ""
    account = drifting(account, ("metadata",), metadata)
    return Account(kind, objects=account.objects, published=account.published, made=1), id_


def adopting(kind: Kind[Any], id_: str, **change: Any) -> Any:
    return wanted(kind, {"externalID": id_, "deletionPolicy": "Retain", **change})


# Observe -------------------------------------------------------------------------------------


@every_kind
def test_what_is_observed_is_never_written_and_its_differences_are_named(kind: Kind[Any]) -> None:
    account, id_ = theirs(kind)
    same, other = adopting(kind, id_, **OBSERVE), adopting(kind, id_, **OBSERVE, description="wished")
    sight = Sight(answer=account.objects[id_], found=id_)

    assert plan.Plan() == plan.plan(same, Recorded(), sight, NOW, "n")
    assert plan.Plan(drift=("description",)) == plan.plan(other, Recorded(), sight, NOW, "n")


def test_what_is_observed_is_reported_though_it_could_not_be_changed() -> None:
    account, id_ = theirs(KINDS["AgentIngress"])
    desired = adopting(KINDS["AgentIngress"], id_, **OBSERVE, domain="other.example.com")

    assert ("domain",) == plan.plan(desired, Recorded(), Sight(account.objects[id_], id_), NOW, "n").drift


@every_kind
def test_an_observed_object_leaves_predecessors_and_duplicates_alone(kind: Kind[Any]) -> None:
    account, id_ = theirs(kind)
    recorded = Recorded(id=id_, previous=(Previous("old", None, NOW - timedelta(days=1), {}),))
    sight = Sight(answer=account.objects[id_], duplicates=(("twin", {}),))

    assert () == plan.plan(adopting(kind, id_, **OBSERVE), recorded, sight, NOW, "n").operations


# Adoption ------------------------------------------------------------------------------------


@managed
@pytest.mark.parametrize("own", ["", "theirs", '{"team": "a"}'])
def test_adoption_of_an_object_that_is_as_wished_sends_nothing(kind: Kind[Any], own: str) -> None:
    account, id_ = theirs(kind, own)

    todo = account.plan(adopting(kind, id_, metadata=own), Sight(account.objects[id_], id_))

    assert (Claim("nonce2"),) == todo.operations
    assert (Events.ADOPTED, ()) == (todo.event, todo.drift)


@managed
def test_an_adopted_object_stays_unmarked_until_something_is_written_and_then_says_whose_it_is(kind: Kind[Any]) -> None:
    account, id_ = theirs(kind, "theirs")
    same = adopting(kind, id_, metadata="theirs")
    account = account.apply(same, account.plan(same, Sight(account.objects[id_], id_)))
    account = replace(account, recorded=replace(account.recorded, id=id_, path=same.path))
    assert () == account.plan(same).operations

    edited = adopting(kind, id_, metadata="theirs", description="edited")
    todo = account.plan(edited)

    (update,) = todo.operations
    assert isinstance(update, Update)
    assert {"description", "metadata"} == update.body.keys()
    own, who = marker.split(update.body["metadata"])
    assert ("theirs", "default/example", account.recorded.nonce) == (own, who and who.place, who and who.nonce)
    assert () == account.apply(edited, todo).plan(edited).operations


def test_a_marker_goes_on_before_a_module_that_is_put_alone() -> None:
    """Were it the other way round, a crash in between would leave an object that is changed and says nobody's name."""
    kind = KINDS["HTTPSRoute"]
    account, id_ = theirs(kind)
    secretive = {"webhookVerification": None, "oauth": None, "oidc": None}
    desired = adopting(kind, id_, compression={"enabled": False}, **secretive)

    _, first, second = account.plan(desired, Sight(account.objects[id_], id_)).operations

    assert isinstance(first, Update)
    assert {"metadata"} == first.body.keys()
    assert isinstance(second, PutModule)


def test_an_adopted_object_that_differs_in_a_fixed_field_is_left_alone_and_said() -> None:
    account, id_ = theirs(KINDS["AgentIngress"])
    desired = adopting(KINDS["AgentIngress"], id_, domain="other.example.com")

    with pytest.raises(Stalled, match=r"^spec\.domain: fixed at creation"):
        account.plan(desired, Sight(account.objects[id_], id_))


@pytest.mark.parametrize(
    ("kind", "change", "why"),
    [
        ("SSHHostCertificate", {"principals": ["other.example.com"]}, "principals changed"),
        ("SSHUserCertificate", {"extensions": {"permit-user-rc": ""}}, "extensions changed"),
        ("TLSCertificate", {"secretRef": {"name": "another"}}, "the Secret holds another certificate"),
    ],
)
def test_an_adopted_object_is_never_replaced(kind: str, change: dict[str, Any], why: str) -> None:
    account, id_ = theirs(KINDS[kind])

    with pytest.raises(Stalled) as stalled:
        account.plan(
            adopting(KINDS[kind], id_, **change), Sight(account.objects[id_], id_, published=account.published)
        )

    assert Stalls.INVALID_SPEC == stalled.value.reason
    assert stalled.value.message.startswith(f"spec.externalID: {why}, which takes a new object")


# Found again ---------------------------------------------------------------------------------


@every_kind
def test_an_object_whose_creation_was_interrupted_is_taken_up_and_nothing_is_made(kind: Kind[Any]) -> None:
    """With its Secret written already, where it has one."""
    account, desired = settled(kind)
    claimed = replace(account.recorded, id=None, nonce=None, applied={}, status={})
    lost = replace(account, recorded=claimed)

    todo = lost.plan(desired, Sight(account.answer, account.recorded.id, published=account.published))

    assert not [o for o in todo.operations if isinstance(o, Claim | Create | Delete)]
    assert Events.RECOVERED == todo.event
    assert () == todo.drift


@managed
def test_an_object_whose_claim_was_lost_too_keeps_the_marker_that_it_has(kind: Kind[Any]) -> None:
    account, desired = settled(kind)

    todo = plan.plan(desired, Recorded(), Sight(account.answer, account.recorded.id, nonce="nonce1"), NOW, "fresh")

    assert (Claim("nonce1"),) == todo.operations


@pytest.mark.parametrize("kind", ["APIKey", "TunnelCredential", "SSHHostCertificate", "SSHUserCertificate"])
def test_an_object_whose_secret_part_is_lost_gives_way_to_another(kind: str) -> None:
    account, desired = settled(KINDS[kind])
    lost = replace(account, recorded=replace(account.recorded, id=None, nonce=None, applied={}, status={}))

    claim, gone, create, _ = lost.plan(desired, Sight(account.answer, account.recorded.id)).operations

    assert Delete(account.recorded.id or "", {}) == gone
    assert Claim("nonce2") == claim
    assert isinstance(create, Create)


@every_kind
def test_duplicates_are_deleted_first_and_predecessors_that_are_due_last(kind: Kind[Any]) -> None:
    account, desired = settled(kind)
    past, future = NOW - timedelta(seconds=1), NOW + timedelta(hours=2)
    previous = (Previous("due", "n", past, {"edge_id": "e"}), Previous("pending", "n", future, {}))
    account = replace(account, recorded=replace(account.recorded, previous=previous))

    todo = account.plan(desired, account.sight(duplicates=(("twin", {}),)))

    assert (Claim(account.recorded.claim or ""), Delete("twin", {})) == todo.operations[:2]
    assert Delete("due", {"edge_id": "e"}) == todo.operations[-1]
    assert not [o for o in todo.operations if isinstance(o, Delete) and o.id == "pending"]
    assert None is not todo.due
    assert todo.due <= future


@pytest.mark.parametrize(("claim", "nonce", "held"), [("taken", "n1", "taken"), (None, "n1", "n1")])
def test_the_guard_of_a_clean_up_is_the_claim_or_what_it_was(claim: str | None, nonce: str, held: str) -> None:
    account, desired = settled(KINDS["FailoverBackend"])
    account = replace(account, recorded=replace(account.recorded, claim=claim, nonce=nonce))
    todo = account.plan(desired, account.sight(duplicates=(("twin", {}),)))
    assert todo.operations[:2] == (Claim(held), Delete("twin", {}))


def test_an_overlap_ends_at_its_end_and_not_after() -> None:
    account, desired = settled(KINDS["APIKey"])
    account = replace(account, recorded=replace(account.recorded, previous=(Previous("old", None, NOW, {}),)))

    assert Delete("old", {}) in account.plan(desired).operations


# Vanished ------------------------------------------------------------------------------------


@every_kind
@pytest.mark.parametrize("said", [None, "Recreate", "Stall"])
def test_an_object_that_vanished_is_made_anew_or_said_as_kind_and_spec_say(kind: Kind[Any], said: str | None) -> None:
    account, desired = settled(kind, {"onRemoteMissing": said})
    id_ = account.recorded.id
    gone = replace(account, objects={})

    if (said or kind.on_remote_missing) == "Stall":
        with pytest.raises(Stalled) as stalled:
            gone.plan(desired)
        assert Stalls.REMOTE_MISSING == stalled.value.reason
        assert (
            f"{id_} does not exist any more; a new {kind.name} would not be the same thing: "
            "delete this resource, or set onRemoteMissing: Recreate"
        ) == stalled.value.message
    else:
        after = gone.reconciled(desired)
        assert id_ not in after.objects
        assert [after.recorded.id] == [*after.objects]
        assert () == after.plan(desired).operations


def test_the_kinds_of_which_a_new_one_is_not_the_same_thing_stall() -> None:
    assert {"APIKey", "TunnelCredential", "SSHCertificateAuthority", "AgentIngress"} == {
        k.name for k in KINDS.values() if k.on_remote_missing == "Stall"
    }


@every_kind
def test_an_adopted_object_that_vanished_is_never_made_anew(kind: Kind[Any]) -> None:
    account, id_ = theirs(kind)
    desired = adopting(kind, id_, onRemoteMissing="Recreate")

    with pytest.raises(Stalled, match=r"^spec\.externalID: .* does not exist any more; delete this resource"):
        plan.plan(desired, replace(account.recorded, id=id_), Sight(missing=True), NOW, "n")


# Deleted -------------------------------------------------------------------------------------

OVERLAPPING = Recorded(id="new", previous=(Previous("old", None, NOW, {"edge_id": "e"}),), path={"edge_id": "f"})


def test_deletion_takes_every_object_once_and_the_finalizer_last() -> None:
    found = (("new", {"edge_id": "f"}), ("found", {}))

    assert (
        Delete("new", {"edge_id": "f"}),
        Delete("old", {"edge_id": "e"}),
        Delete("found", {}),
        Release(),
    ) == plan.farewell(OVERLAPPING, found, retain=False, secret="s")


def test_what_is_retained_keeps_its_objects_and_its_secret() -> None:
    assert (Disown("s"), Release()) == plan.farewell(OVERLAPPING, (), retain=True, secret="s")
    assert (Release(),) == plan.farewell(OVERLAPPING, (), retain=True, secret=None)


def test_a_resource_that_never_had_an_object_goes_at_once() -> None:
    assert (Release(),) == plan.farewell(Recorded(finalizer=True), (), retain=False, secret="s")
