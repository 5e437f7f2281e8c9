"""Whatever somebody else changes of what the spec says is noticed, named by its path, and undone in one pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from edge_operator.api.wire import Ref, SentAs, Wire
from edge_operator.declare import Kind
from edge_operator.engine.operations import DeleteModule, PutModule, Stalled, Update, Waiting
from edge_operator.engine.project import Field, fields
from edge_operator.engine.reasons import Events, Stalls
from edge_operator.kinds import KINDS
from engine.account import Account, drifting, settled, wanted


@dataclass(frozen=True)
class Change:
    """One member of an answer that somebody changed: where, to what, and the path of it in the spec."""

    kind: Kind[Any]
    place: tuple[str, ...]
    value: Any
    path: str

    def __str__(self) -> str:
        return f"{self.kind.name}-{'.'.join(self.place)}={str(self.value)[:20]}"


def changes(kind: Kind[Any]) -> Iterator[Change]:
    """Every member of the example's object that the service returns, each wrong in several ways."""
    account, desired = settled(kind)
    members = [f for f in fields(kind.spec) if not f.reissues and not f.immutable and not f.in_path and not f.local]
    for place, value, path in _members(kind.api.read, members, desired.plain, account.answer, (), ""):
        yield Change(kind, place, value, path)


def _members(
    shape: type[Wire],
    known: list[Field],
    sent: Mapping[str, Any],
    answer: Mapping[str, Any],
    at: tuple[str, ...],
    path: str,
) -> Iterator[tuple[tuple[str, ...], Any, str]]:
    names = {next((m.name for m in i.metadata if isinstance(m, SentAs)), n): n for n, i in shape.model_fields.items()}
    for field in known:
        name = names.get(field.wire)
        if name is None or name not in answer or field.wire not in sent:
            continue
        value, inner = answer[name], _wire(shape.model_fields[name].annotation)
        place, said = (*at, name), f"{path}{field.alias}"
        nested = inner is not None and inner is not Ref and isinstance(value, Mapping)
        for wrong in [None] if nested else _wrong(value):
            if wrong is not None or shape.model_fields[name].default != value:
                yield place, wrong, said
        if inner is not None and inner is not Ref and field.part is not None and isinstance(value, Mapping):
            yield from _members(inner, list(fields(field.part)), sent[field.wire], value, place, f"{said}.")


def _wrong(value: Any) -> list[Any]:
    """Other values than this one, of the same type, and nothing at all."""
    match value:
        case bool():
            return [not value]
        case int() | float():
            return [value / 2, value + 1] if isinstance(value, float) else [value + 1, None]
        case str():
            return [f"{value}x", None] if value else ["x"]
        case {"id": str(), "uri": str()}:
            return [{"id": "other_1", "uri": ""}]
        case [{"id": str()}, *_]:
            return [[], [*value, {"id": "other_1", "uri": ""}]]
        case list():
            return [["other"], *([[]] if value else []), [*value, "other"]]
        case dict() if all(isinstance(v, int) for v in value.values()):
            first, *rest = value
            return [{first: value[first]}, {**value, first: 1}, {**value, "bkdhr_other": 1}] if rest else [{}]
        case _:
            return [{}, {**value, "other": "x"}]


def _wire(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, Wire):
        return annotation
    return next((w for a in getattr(annotation, "__args__", ()) if (w := _wire(a))), None)


EVERY = [change for kind in KINDS.values() for change in changes(kind)]


@pytest.mark.parametrize("change", EVERY, ids=str)
def test_a_changed_member_is_noticed_named_and_healed_in_one_pass(change: Change) -> None:
    account, desired = settled(change.kind)
    drifted = drifting(account, change.place, change.value)

    todo = drifted.plan(desired)
    healed = drifted.apply(desired, todo)

    assert todo.drift
    assert all(f"{path}.".startswith(f"{change.path}.") for path in todo.drift)
    assert Events.DRIFT_CORRECTED == todo.event
    assert account.answer == healed.answer
    assert () == healed.plan(desired).operations


@pytest.mark.parametrize("change", EVERY, ids=str)
def test_healing_sends_the_field_that_differs_whole_and_no_other(change: Change) -> None:
    account, desired = settled(change.kind)
    drifted = drifting(account, change.place, change.value)

    (operation,) = drifted.plan(desired).operations

    top = next(f for f in fields(change.kind.spec) if f.alias == change.path.split(".")[0])
    whole = desired.body(account.recorded.nonce or "")[top.wire]
    if top.module and top.module.own_path:
        assert isinstance(operation, PutModule)
        assert (top.wire, whole) == (operation.segment, operation.body)
    else:
        assert isinstance(operation, Update)
        assert {top.wire: whole} == operation.body


def test_the_changes_cover_every_member_that_an_example_sends() -> None:
    """Among those that the service returns: so that no field escapes the tests above unnoticed."""
    found = {(change.kind.name, change.path) for change in EVERY}

    assert ("HTTPSRoute", "oauth.provider.codeHostA.organizations") in found
    assert ("HTTPSRoute", "saml.idpMetadata") in found
    assert ("EventDestination", "target.monitoring.tags") in found
    assert ("WeightedBackend", "backends") in found
    assert all((name, "metadata") in found and (name, "description") in found for name in KINDS)
    missing = {
        (kind.name, field.alias)
        for kind in KINDS.values()
        for field in fields(kind.spec)
        if field.wire in wanted(kind).plain and not field.immutable and not field.reissues
    } - found
    assert set() == missing


@pytest.mark.parametrize(
    ("kind", "place", "value", "reason"),
    [
        ("HTTPSRoute", ("request_headers", "add"), {"X-Env": "production"}, "names of headers have no case"),
        ("HTTPSRoute", ("request_headers", "remove"), ["X-DEBUG"], "names of headers have no case"),
        ("HTTPSRoute", ("webhook_verification", "provider"), "GitHub", "providers have no case"),
        ("TunnelCredential", ("acl",), ["bind:env=production", "bind:*.example.com"], "rules have no order"),
        ("HTTPSRoute", ("backend", "backend", "uri"), "https://elsewhere.example.com", "an address is not asked for"),
        ("HTTPSRoute", ("oidc", "client_secret"), None, "a secret that is not returned is not compared"),
        ("HTTPSRoute", ("circuit_breaker", "error_threshold_percentage"), 0.25, "the same number"),
        ("WeightedBackend", ("backends",), {"bkdtg_2yrt9ZkAqlNPxGdGEsGS0fYYjNj": 10, "bkdfo_example": 90}, "a map"),
        ("TLSEdge", ("created_at",), "2020-01-01T00:00:00Z", "the service's own"),
    ],
)
def test_what_carries_no_meaning_is_no_drift(kind: str, place: tuple[str, ...], value: Any, reason: str) -> None:
    account, desired = settled(KINDS[kind])

    assert () == drifting(account, place, value).plan(desired).operations, reason


def test_the_order_of_a_failover_is_its_meaning() -> None:
    account, desired = settled(KINDS["FailoverBackend"])
    turned = drifting(account, ("backends",), account.answer["backends"][::-1])

    assert ("backends",) == turned.plan(desired).drift


def test_a_secret_that_is_returned_is_compared() -> None:
    account, desired = settled(KINDS["HTTPSRoute"])
    same = drifting(account, ("oidc", "client_secret"), "oidc-client-secret")
    other = drifting(account, ("oidc", "client_secret"), "somebody else's")

    assert () == same.plan(desired).operations
    assert ("oidc.clientSecret",) == other.plan(desired).drift


def test_several_fields_are_healed_in_one_pass() -> None:
    account, desired = settled(KINDS["HTTPSRoute"])
    drifted = drifting(drifting(account, ("match",), "/x"), ("oidc",), None)
    drifted = drifting(drifted, ("compression", "enabled"), value=False)

    todo = drifted.plan(desired)

    assert ("match", "compression.enabled", "oidc") == todo.drift
    assert account.answer == drifted.apply(desired, todo).answer


def test_a_module_that_the_user_never_mentioned_is_left_alone() -> None:
    account, desired = settled(KINDS["HTTPSRoute"], {"ipRestriction": None})
    theirs = drifting(account, ("ip_restriction",), {"enabled": True, "ip_policies": [{"id": "ipp_1", "uri": ""}]})

    assert () == theirs.plan(desired).operations


def test_an_edit_by_the_user_is_not_called_drift() -> None:
    account, _ = settled(KINDS["TLSEdge"])
    todo = account.plan(wanted(KINDS["TLSEdge"], {"description": "new words"}))

    assert (Events.UPDATED, ()) == (todo.event, todo.drift)
    assert "description" == todo.why


def test_an_edit_beside_a_drift_is_healed_together_and_both_are_told_apart() -> None:
    account, _ = settled(KINDS["TLSEdge"])
    drifted = drifting(account, ("hostports",), ["other:443"])
    desired = wanted(KINDS["TLSEdge"], {"description": "new words"})

    todo = drifted.plan(desired)

    (update,) = todo.operations
    assert isinstance(update, Update)
    assert {"description", "hostports"} == update.body.keys()
    assert (Events.DRIFT_CORRECTED, ("hostports",)) == (todo.event, todo.drift)


def test_a_fixed_field_that_the_service_holds_otherwise_cannot_be_healed_and_is_said() -> None:
    account, desired = settled(KINDS["AgentIngress"])

    with pytest.raises(Stalled) as stalled:
        drifting(account, ("domain",), "other.example.com").plan(desired)

    assert Stalls.IMMUTABLE_FIELD_CHANGED == stalled.value.reason
    assert "spec.domain: fixed at creation; delete and create the resource to change it" == stalled.value.message


def test_an_object_that_cannot_be_read_is_not_taken_for_one_that_differs() -> None:
    account, desired = settled(KINDS["TLSEdge"])

    with pytest.raises(Waiting) as waiting:
        drifting(account, ("backend", "backend"), "not an object").plan(desired)

    assert "the service returned an object that cannot be read, at backend.backend" == waiting.value.message


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_nothing_is_ever_deleted_because_the_service_holds_more(kind: Kind[Any]) -> None:
    account, desired = settled(kind, generous=True)
    less = Account(kind, account.recorded, account.objects, account.published, account.made)

    assert not [o for o in less.plan(desired).operations if isinstance(o, DeleteModule)]
