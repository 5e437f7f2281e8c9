"""What mutants of the engine once did unnoticed."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pydantic import Field

from edge_operator.api.wire import Entity
from edge_operator.declare import Kind, Module
from edge_operator.engine import (
    brownfield,
    digests,
    issue,
    marker,
    operations,
    order,
    plan,
    references,
    reported,
    standing,
    state,
    token,
    verdict,
)
from edge_operator.engine.conditions import Verdict
from edge_operator.engine.operations import Delete, PutModule, Stalled, Update
from edge_operator.engine.project import Bindings
from edge_operator.engine.reasons import Ready
from edge_operator.engine.state import Previous, Published, Recorded, Sight, stamp
from edge_operator.kinds import KINDS
from edge_operator.policies import Described
from engine.account import IDENTITY, NOW, settled, wanted

DAY = timedelta(days=1)


def test_an_imported_object_is_said_without_what_is_empty_and_without_what_its_kind_lacks() -> None:
    answer = {"id": "bkdwd_1", "description": "", "metadata": "", "backends": {"bkdhr_1": 1}}

    found = brownfield.manifest(KINDS["WeightedBackend"], answer, "default")

    assert found is not None
    assert found.obstacle == ""
    assert found.document["spec"] == {
        "externalID": "bkdwd_1",
        "deletionPolicy": "Retain",
        "backends": [{"ref": {"id": "bkdhr_1"}, "weight": 1}],
    }


def test_without_markers_a_body_is_what_the_user_wrote() -> None:
    desired = wanted(KINDS["TLSEdge"])
    plain = replace(desired, identity=replace(desired.identity, marked=False))

    assert plain.body("nonce1") == desired.plain != desired.body("nonce1")


def test_the_life_of_a_certificate_begins_when_it_was_made_also_where_only_the_status_says_so() -> None:
    desired = wanted(KINDS["SSHHostCertificate"])
    status = {"validAfter": stamp(NOW - 100 * DAY), "createdAt": stamp(NOW), "validUntil": stamp(NOW + 99 * DAY)}

    due = issue.due(desired, Recorded(status=status), Sight())

    assert due is not None
    assert NOW + 60 * DAY < due <= NOW + 66 * DAY


@pytest.mark.parametrize(
    ("for_", "keys", "hours"),
    [
        ("found", {"token", "previous-token"}, 24),
        ("found", {"token"}, 0),
        ("other", {"token", "previous-token"}, 0),
        ("recorded", {"token"}, 24),
    ],
    ids=["published with its predecessor", "published alone", "of another object", "not published yet"],
)
def test_who_is_found_stays_beside_its_predecessor_only_where_the_secret_says_so(
    for_: str, keys: set[str], hours: int
) -> None:
    desired = wanted(KINDS["APIKey"], {"rotation": {"interval": "720h", "overlap": "24h"}})
    published = Published(ours=True, id=for_, keys=frozenset(keys), token="t")

    span = token.leave(desired, Recorded(id="recorded"), Sight(found="found", published=published))

    assert timedelta(hours=hours) == span


def test_a_field_that_the_service_holds_nothing_of_did_change() -> None:
    desired = wanted(KINDS["SSHHostCertificate"], {"validFor": None, "validUntil": "2030-01-01T00:00:00Z"})
    account, _ = settled(KINDS["SSHHostCertificate"])
    answer = {**(account.answer or {}), "valid_until": None}

    assert "validUntil" in verdict.changed(desired, Recorded(id="shcrt_1"), Sight(answer=answer))


@pytest.mark.parametrize(("key", "same"), [("AAAA", True), ("BBBB", False)])
def test_a_key_is_the_same_whatever_its_comment(key: str, same: bool) -> None:
    change = {"privateKey": None, "publicKey": {"value": "ssh-ed25519 AAAA me@home"}}
    desired = wanted(KINDS["SSHHostCertificate"], change)
    account, _ = settled(KINDS["SSHHostCertificate"])
    answer = {**account.answer, "public_key": f"ssh-ed25519 {key} me@work"}

    assert ("publicKey" in verdict.changed(desired, Recorded(id="shcrt_1"), Sight(answer=answer))) is not same


def test_a_text_that_only_begins_like_an_object_is_no_object() -> None:
    who = marker.owner("cluster-1", "uid-1", "nonce1", "default", "example")

    marked = marker.attach("{broken", who)

    assert marked.splitlines()[0] == "{broken"
    assert marker.split(marked) == ("{broken", who)


def test_a_marker_that_goes_with_a_change_leaves_the_steps_around_it() -> None:
    change, module = Update("edghts_1", {"description": "b"}, {}), PutModule("edghts_1", "oidc", {}, {})

    found = plan._with_marker([module, change, module, module], "edghts_1", {}, "marked")

    assert found == [module, Update("edghts_1", {"description": "b", "metadata": "marked"}, {}), module, module]


def test_an_end_that_is_now_has_passed() -> None:
    desired = wanted(KINDS["SSHHostCertificate"])
    spec = desired.spec.model_copy(update={"valid_until": stamp(NOW), "valid_for": None})

    with pytest.raises(Stalled, match="has passed"):
        issue.body(replace(desired, spec=spec), NOW)
    assert issue.body(replace(desired, spec=spec), NOW - timedelta(seconds=1)) == {}


@pytest.mark.parametrize(
    ("ref", "key"),
    [
        (None, references.DEFAULT_CONNECTION),
        ({"name": "main"}, ("Connection", "team-a", "main")),
        ({"kind": "Connection", "name": "main"}, ("Connection", "team-a", "main")),
        ({"kind": "ClusterConnection", "name": "main"}, ("ClusterConnection", "", "main")),
        ({"kind": "ClusterConnection"}, references.DEFAULT_CONNECTION),
        ("main", references.DEFAULT_CONNECTION),
    ],
)
def test_a_connection_is_of_the_namespace_or_of_the_cluster(ref: object, key: tuple[str, str, str]) -> None:
    assert key == references.connection("team-a", {"connectionRef": ref})


def test_a_place_is_shortened_only_where_the_marker_would_be_too_long() -> None:
    def made(extra: int) -> marker.Owner:
        return marker.owner("cluster-1", "uid-1", "nonce1", "default", "x" * extra)

    longest = next(n for n in range(1, 254) if made(n + 1).place.startswith("sha256:"))

    bytes_added = len(marker.attach('{"a":1}', made(longest)).encode()) - len(b'{"a":1}')
    assert bytes_added == marker.LIMIT_BYTES


def test_what_protects_goes_on_first_also_where_it_does_not_say_that_it_is_on() -> None:
    guard = Module(protects=True)

    ranks = [order._rank_on("mutual_tls", guard, value) for value in ({}, {"enabled": True}, {"enabled": False})]

    assert ranks == [order._Rank.GUARDS_ON, order._Rank.GUARDS_ON, order._Rank.GUARDS_DISABLED]


def test_a_change_goes_to_where_the_object_is_recorded() -> None:
    desired = wanted(KINDS["HTTPSRoute"])
    recorded = Recorded(id="edghtsrt_1", nonce="nonce1", path={"edge_id": "edghts_old"}, applied={"description": "-"})

    found = plan.change(desired, recorded, Sight(answer={"id": "edghtsrt_1", "metadata": "x"}), "edghtsrt_1", "nonce2")

    paths = [step.path for step in found.operations if isinstance(step, Update | PutModule)]
    assert paths
    assert {path["edge_id"] for path in paths} == {"edghts_old"}


def test_a_digest_knows_neither_the_order_of_members_nor_how_letters_are_written() -> None:
    made = [digests.digest(b"key", "uid", "oidc", value) for value in ({"a": "ä", "b": 1}, {"b": 1, "a": "ä"})]

    assert made[0] == made[1] == digests.digest(b"key", "uid", "oidc", json.loads('{"a": "\\u00e4", "b": 1}'))
    assert made[0] == "ANzr3P9UfBWQSn83"


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_member_of_a_status_says_what_it_is(kind: Kind[Any]) -> None:
    def silent(tree: reported.Tree) -> list[str]:
        return [m.name for m in tree if not m.description] + [name for m in tree for name in silent(m.inside or ())]

    assert silent(reported.fields(kind)) == []


def test_a_connection_without_a_generation_is_of_its_first() -> None:
    status = standing.status({}, Verdict(Ready.CONNECTED, "yes"), {}, (), NOW)

    assert status["observedGeneration"] == 1


def _token(**more: Any) -> verdict.Verdict:
    desired = wanted(KINDS["TunnelCredential"])
    held = Published(ours=True, id="cr_1", keys=frozenset({"token"}), token="t")
    given = {"recorded": Recorded(id="cr_1"), "sight": Sight(published=held), **more}
    return token.verdict(desired, given["recorded"], given["sight"], NOW)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"recorded": Recorded()}, "first token"),
        ({"sight": Sight(missing=True)}, "it vanished from the service"),
        ({"sight": Sight()}, "its token is not in the Secret"),
        (
            {"sight": Sight(rotate=True, published=Published(True, "cr_1", frozenset({"token"}), token="t"))},
            "rotation was asked for",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_cause_of_another_token_leads_to_one(given: dict[str, Any], why: str) -> None:
    found = _token(**given)

    assert (found.replace, found.why) == (True, why)
    assert not _token().replace


def test_a_predecessor_that_goes_now_is_not_looked_for_again() -> None:
    desired = wanted(KINDS["TunnelCredential"])
    held = Published(ours=True, id="cr_2", keys=frozenset({"token", "id"}), token="t")
    recorded = Recorded(
        id="cr_2",
        nonce="n",
        claim="n",
        finalizer=True,
        applied=desired.applied,
        previous=(Previous("cr_1", None, NOW, {}),),
    )

    todo = plan.plan(desired, recorded, Sight(published=held), NOW, "fresh")

    assert Delete("cr_1", {}) in todo.operations
    assert todo.due != NOW


@pytest.mark.parametrize(("age", "stalls"), [(None, False), (3, True), (4, True), (10, False)])
def test_what_lasts_for_seconds_is_replaced_and_what_was_due_at_its_birth_is_not(age: int | None, stalls: bool) -> None:
    """It was due four seconds ago."""
    sight = Sight(newborn=None if age is None else timedelta(seconds=age))
    end = NOW - timedelta(seconds=4)

    if stalls:
        with pytest.raises(Stalled, match="due for replacement already"):
            verdict.overdue(end, sight, NOW)
    else:
        assert verdict.overdue(end, sight, NOW)
    assert not verdict.overdue(NOW + timedelta(seconds=1), sight, NOW)


@pytest.mark.parametrize(
    ("text", "shown"),
    [("x" * 9, "x" * 9), ("x" * 10, "x" * 10), ("x" * 11, "x" * 9 + "…"), ("a\n b", "a b")],
)
def test_foreign_text_is_cut_where_it_is_too_long(text: str, shown: str) -> None:
    assert operations.shown(text, 10) == shown


class _Tags(Entity):
    tags: list[str] = Field(default_factory=list)


class _Tagged(Described):
    tags: list[str] | None = None


def test_a_plain_field_that_leaves_the_spec_becomes_what_the_service_takes_for_nothing() -> None:
    api = replace(KINDS["AgentIngress"].api, read=_Tags)
    desired = state.desired(
        Kind(name="Tagged", spec=_Tagged, example="", short=(), api=api), _Tagged(), IDENTITY, Bindings({}, {})
    )
    recorded = Recorded(id="x_1", nonce="n", claim="n", finalizer=True, applied={**desired.applied, "tags": "digest"})

    assert plan.plan(desired, recorded, Sight(), NOW, "fresh").operations == (Update("x_1", {"tags": []}, {}),)


def test_what_the_service_says_inside_a_module_is_shown_and_an_address_is_not() -> None:
    answer = {"id": "edghtsrt_1", "saml": {"entity_id": "sp"}, "backend": {"backend": {"id": "bkdwd_1", "uri": "u"}}}

    assert reported.values(KINDS["HTTPSRoute"], answer) == {"id": "edghtsrt_1", "saml": {"entityID": "sp"}}


@pytest.mark.parametrize(
    ("claim", "through", "key"),
    [
        ("uid-1.n", "Connection/main", ("Connection", "team-a", "main")),
        ("uid-1.n", "ClusterConnection/main", ("ClusterConnection", "", "main")),
        ("uid-2.n", "Connection/main", None),
        ("uid-1.n", "Connection/", None),
        ("uid-1.n", "Secret/main", None),
    ],
    ids=["its own", "of the cluster", "of another resource", "without a name", "of no connection"],
)
def test_a_claim_keeps_the_connection_that_it_was_made_for(claim: str, through: str, key: object) -> None:
    meta = {"uid": "uid-1", "namespace": "team-a", "annotations": {state.CLAIM: claim, state.THROUGH: through}}

    assert state.through({"metadata": meta}) == key


def test_a_first_claim_is_made_for_the_connection_in_the_spec() -> None:
    resource = {"metadata": {"uid": "uid-1", "namespace": "team-a"}, "spec": {"connectionRef": {"name": "main"}}}

    assert state.claim(resource, "n") == {state.CLAIM: "uid-1.n", state.THROUGH: "Connection/main"}
