"""Plans as values: carried out they leave nothing to do, and whatever drifts is noticed and heals in one go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from doubles.imagined import Imagined, desired
from doubles.world import key_pair
from edge_operator.declare import Kind, Managed
from edge_operator.derive import samples
from edge_operator.engine import compare, project, state
from edge_operator.engine.operations import DeleteModule, PutModule, Update
from edge_operator.engine.reasons import Events
from edge_operator.engine.state import Desired
from edge_operator.kinds import KINDS

ALL = list(KINDS.values())
MANAGED = [kind for kind in ALL if isinstance(kind.lifecycle, Managed)]
every_kind = pytest.mark.parametrize("kind", ALL, ids=list(KINDS))


def made(want: Desired) -> Imagined:
    """The resource after its creation."""
    start = Imagined(want.kind)
    return start.after(want, start.plan(want, seen=False))


def sent_by(made_: Imagined) -> dict[str, Any]:
    return dict(made_.sent or {})


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of all values that are no objects or lists, and of empty ones."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from leaves(inner, (*path, index))
    else:
        yield path


def altered(value: Any, path: tuple[Any, ...]) -> Any:
    """A copy in which the value at that path is another one of its type."""
    if path:
        head, rest = path[0], path[1:]
        if isinstance(value, list):
            return [altered(v, rest) if i == head else v for i, v in enumerate(value)]
        return {k: altered(v, rest) if k == head else v for k, v in value.items()}
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return f"{value}-altered"
    return ["altered"]


def _drifting(kind: Kind[Any]) -> Iterator[tuple[Any, ...]]:
    """Where the object could be changed elsewhere, and we would see it."""
    want = desired(kind)
    seen = compare.held(kind, made(want).answer)
    marked = {f.wire: f for f in project.fields(kind.spec)}
    for path in leaves(want.plain):
        wire = path[0]
        if wire in marked and wire in seen and not marked[wire].reissues and not marked[wire].immutable:
            yield path


DRIFTS = [
    pytest.param(kind, path, id=f"{kind.name}: {'.'.join(map(str, path))}") for kind in ALL for path in _drifting(kind)
]


def test_there_is_something_to_drift_in_every_kind():
    assert {kind.name for kind, _ in (param.values for param in DRIFTS)} == set(KINDS)
    assert len(DRIFTS) > 80


@pytest.mark.parametrize(("kind", "path"), DRIFTS)
def test_a_single_value_that_drifted_is_noticed_and_heals_in_one_go(kind, path):
    want = desired(kind)
    before = made(want)
    drifted = replace(before, sent=altered(before.sent, path))
    todo = drifted.plan(want, seen=True)
    assert todo.event is Events.DRIFT_CORRECTED
    assert todo.operations != ()
    healed = drifted.after(want, todo)
    assert before.sent == healed.sent
    assert healed.plan(want, seen=True).operations == ()


@pytest.mark.parametrize(("kind", "path"), DRIFTS)
def test_a_heal_sends_nothing_but_the_field_or_module_that_drifted(kind, path):
    want = desired(kind)
    before = made(want)
    todo = replace(before, sent=altered(before.sent, path)).plan(want, seen=True)
    sent = [w for o in todo.operations for w in (o.body if isinstance(o, Update) else [o.segment])]
    assert [path[0]] == sent
    assert len(todo.drift) == 1
    alias = next(f.alias for f in project.fields(kind.spec) if f.wire == path[0])
    assert alias == todo.drift[0].partition(".")[0]


@pytest.mark.parametrize(("kind", "path"), DRIFTS)
def test_an_unseen_object_whose_spec_did_not_change_is_left_alone(kind, path):
    want = desired(kind)
    before = made(want)
    assert replace(before, sent=altered(before.sent, path)).plan(want, seen=False).operations == ()


@every_kind
def test_order_and_case_that_mean_nothing_are_no_difference(kind):
    want = desired(kind)
    object_ = made(want)
    assert replace(object_, sent=_rewritten(kind.spec, sent_by(object_))).plan(want, seen=True).operations == ()


def _rewritten(part: Any, sent: dict[str, Any]) -> dict[str, Any]:
    """The same object with everything changed that carries no meaning."""
    out = dict(sent)
    for field in project.fields(part):
        value = sent.get(field.wire)
        if field.part is not None and isinstance(value, dict) and not field.keyed:
            out[field.wire] = _rewritten(field.part, value)
        elif isinstance(value, list) and field.unordered:
            out[field.wire] = [v.upper() if field.caseless else v for v in reversed(value)]
        elif isinstance(value, dict) and field.caseless:
            out[field.wire] = {key.upper(): v for key, v in value.items()}
        elif isinstance(value, str) and field.caseless:
            out[field.wire] = value.upper()
    return out


# Two specs of one kind, each a part of the example -------------------------------------------


def _optional(part: Any, spec: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for field in project.fields(part):
        if field.alias not in spec or field.immutable or field.reissues:
            continue
        if not part.model_fields[field.name].is_required():
            yield (*path, field.alias)
        if field.part is not None and isinstance(spec[field.alias], dict):
            yield from _optional(field.part, spec[field.alias], (*path, field.alias))


def _without(spec: Mapping[str, Any], paths: list[tuple[str, ...]]) -> dict[str, Any]:
    return {
        key: _without(value, [p[1:] for p in paths if p[0] == key and len(p) > 1]) if isinstance(value, dict) else value
        for key, value in spec.items()
        if (key,) not in paths
    }


_THROUGH = {"terminateAt": "upstream"}


GUARDED = [kind for kind in MANAGED if any(f.module and f.module.protects for f in project.fields(kind.spec))]
TERMINATING = [kind for kind in MANAGED if "tls_termination" in kind.spec.model_fields]


@st.composite
def two_specs(draw: st.DrawFn, kinds: list[Kind[Any]]) -> tuple[Desired, Desired]:
    kind = draw(st.sampled_from(kinds))
    whole = samples.spec(kind)
    paths = sorted(set(_optional(kind.spec, whole)))
    out = []
    for _ in range(2):
        spec = _without(whole, draw(st.lists(st.sampled_from(paths), unique=True)))
        if "tlsTermination" in whole and draw(st.booleans()):
            spec = {k: v for k, v in spec.items() if k != "mutualTLS"} | {"tlsTermination": _THROUGH}
        try:
            out.append(desired(kind, spec))
        except ValidationError:
            out.append(desired(kind))
    return out[0], out[1]


@given(two_specs(MANAGED), st.booleans())
@settings(max_examples=200, deadline=None)
def test_from_any_part_of_a_spec_to_any_other_takes_one_plan(pair: tuple[Desired, Desired], seen: bool):
    first, second = pair
    begun = made(first)
    ended = begun.after(second, begun.plan(second, seen=seen))
    held = {wire: value for wire, value in sent_by(ended).items() if value not in (None, "")}
    assert {wire: value for wire, value in second.body("fresh").items() if value != ""} == held
    assert ended.plan(second, seen=True).operations == ()
    assert ended.plan(second, seen=False).operations == ()


@given(two_specs(GUARDED), st.booleans())
@settings(max_examples=150, deadline=None)
def test_what_protects_goes_on_first_and_comes_off_last(pair: tuple[Desired, Desired], seen: bool):
    """But for termination, which has to let the service see before it guards, and not see after."""
    first, second = pair
    todo = made(first).plan(second, seen=seen)
    guards = {f.wire for f in project.fields(first.kind.spec) if f.module and f.module.protects}

    def rank(operation: Any) -> int:
        match operation:
            case PutModule(segment=segment):
                return 0 if segment in guards else 2
            case Update():
                return 1
            case DeleteModule(segment=segment):
                return 4 if segment in guards else 3
        raise AssertionError(operation)

    ranks = [rank(o) for o in todo.operations if "tls_termination" not in _touched(o)]
    assert sorted(ranks) == ranks


@given(two_specs(TERMINATING), st.booleans())
@settings(max_examples=100, deadline=None)
def test_the_service_never_guards_what_it_cannot_see(pair: tuple[Desired, Desired], seen: bool):
    """At no moment is there mutual TLS with termination upstream: the service would refuse the step for good."""
    first, second = pair
    now = made(first)
    for operation in now.plan(second, seen=seen).operations:
        now = now._after(second, operation)
        sent = sent_by(now)
        upstream = (sent.get("tls_termination") or {}).get("terminate_at") == "upstream"
        assert not (upstream and sent.get("mutual_tls"))


def _touched(operation: Any) -> set[str]:
    return set(operation.body) if isinstance(operation, Update) else {operation.segment}


@given(two_specs(MANAGED))
@settings(max_examples=100, deadline=None)
def test_a_patch_has_only_what_differs(pair: tuple[Desired, Desired]):
    first, second = pair
    before = first.body("fresh")
    for operation in made(first).plan(second, seen=False).operations:
        if isinstance(operation, Update):
            assert all(before.get(wire) != value for wire, value in operation.body.items())


def test_what_cannot_be_changed_but_by_a_new_object_is_no_drift():
    """A service that writes a key or a time in its own way causes neither an event nor an operation."""
    kind = KINDS["SSHHostCertificate"]
    want = desired(kind)
    object_ = made(want)
    other = replace(object_, sent={**sent_by(object_), "principals": ["as the service writes it"]})
    todo = other.plan(want, seen=True)
    assert (todo.operations, todo.event, todo.drift) == ((), None, ())
    spec = {**samples.spec(kind), "managementPolicy": "Observe", "externalID": "shcrt_1", "deletionPolicy": "Retain"}
    assert ("principals",) == other.plan(desired(kind, spec), seen=True).drift, "but whoever observes is told"


@pytest.mark.parametrize(
    ("member", "sent", "held"),
    [
        ("validUntil", "2030-01-02T03:04:05Z", "2030-01-02T04:04:05+01:00"),
        ("validUntil", "2030-01-02T03:04:05Z", "2030-01-02t03:04:05.000z"),
        ("publicKey", f"{key_pair().public} root@web\n", key_pair().public),
    ],
)
def test_without_digests_another_spelling_issues_no_new_certificate(member, sent, held):
    kind = KINDS["SSHHostCertificate"]
    members = {"validFor": None, "privateKey": None, "publicKey": {"value": key_pair().public}}
    members[member] = {"value": sent} if member == "publicKey" else sent
    want = desired(kind, {k: v for k, v in {**samples.spec(kind), **members}.items() if v is not None})
    object_ = made(want)
    wire = next(f.wire for f in project.fields(kind.spec) if f.alias == member)
    forgotten = replace(object_.recorded, applied={})
    todo = replace(object_, sent={**sent_by(object_), wire: held}, recorded=forgotten).plan(want, seen=True)
    assert todo.operations == ()


def test_a_claim_of_another_resource_and_a_predecessor_that_is_current_do_not_count():
    """Annotations are copied along with resources, and a status can be edited."""
    meta = {"uid": "uid-2", "annotations": {state.CLAIM: "uid-1.nonce"}, "finalizers": [state.FINALIZER]}
    status = {"id": "bkdwd_2", "previous": [{"id": "bkdwd_2"}, {"id": "bkdwd_1", "deleteAfter": "when it suits"}]}
    recorded = state.recorded({"metadata": meta, "status": status}, b"key")
    assert (recorded.claim, recorded.id, recorded.previous) == (None, None, ())
    assert recorded.foreign == state.Foreign("uid-1", "nonce", "bkdwd_2", {})
    meta["annotations"] = {}
    recorded = state.recorded({"metadata": meta, "status": status}, b"key")
    assert [(p.id, p.delete_after) for p in recorded.previous] == [("bkdwd_1", state.OVERDUE)]
