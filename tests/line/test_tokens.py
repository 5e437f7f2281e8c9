"""API keys and tunnel credentials: a token is shown once, so it is kept before all else, and never pretended."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from doubles.cluster import ID
from doubles.crashes import Scenario, foreign, judge
from doubles.effects import Fate
from doubles.hands import NAMESPACE
from doubles.rig import BASE, GRACE_SECONDS, Rig
from doubles.scenarios import effect_of
from edge_operator.api.client import Client
from edge_operator.api.errors import AuthenticationFailed
from edge_operator.declare import Token
from edge_operator.engine import marker
from edge_operator.kinds import KINDS

from .test_life import made, made_needs

TOKENS = [kind for kind in KINDS if isinstance(KINDS[kind].lifecycle, Token)]
KEY, CREDENTIAL = "APIKey", "TunnelCredential"
HOUR = 3600.0
ROTATING = {"rotation": {"interval": "100h", "overlap": "10h"}}
STEADY = Scenario("steady", None, None)  # type: ignore[arg-type]  # only what is judged of it
NULL = {"kind": "null", "members": ("token",), "method": "POST"}


def secret_of(kind: str) -> str:
    return f"example-{kind.lower()}"


def held(rig: Rig, kind: str) -> dict[str, str]:
    """What the Secret holds."""
    found = rig.published(secret_of(kind))
    assert found is not None
    data: dict[str, str] = found["data"]
    return data


def opened_by(rig: Rig, token: str) -> str | None:
    """The id of the key or credential that a token stands for."""
    with rig.app.store.read() as tx:
        return rig.app.keyring.holder(tx, token)


async def opens(rig: Rig, token: str) -> bool:
    """Whether the reference API answers a caller with this token."""
    client = Client(BASE, token, transport=httpx.ASGITransport(app=rig.app), profile=rig.profile)
    try:
        await client.of(KINDS[KEY].api).raw.get(rig.id(KEY))
    except AuthenticationFailed:
        return False
    finally:
        await client.close()
    return True


def ids(rig: Rig, kind: str) -> list[str]:
    return [doc["id"] for doc in rig.remote(kind)]


async def rotating(rig: Rig, kind: str, **rotation: str) -> str:
    """A token that rotates, in sync, with foreign objects beside it; its id."""
    rig.sample(kind, rotation={**ROTATING["rotation"], **rotation})
    await rig.settle()
    await foreign(rig, kind)
    rig.forget()
    return rig.id(kind)


def ours(rig: Rig, kind: str) -> list[str]:
    """Ids of the objects that carry our resource's marker."""
    uid, cluster = rig.get(kind)["metadata"]["uid"], rig.cluster.id
    found = [(doc["id"], marker.split(doc["metadata"])[1]) for doc in rig.remote(kind)]
    return [id_ for id_, who in found if who is not None and (who.uid, who.cluster) == (uid, cluster)]


# The first token ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TOKENS)
async def test_the_token_is_in_the_secret_before_the_status_says_anything(kind):
    async with Rig() as rig:
        await made_needs(rig, kind)
        done = len(rig.effects.log)
        rig.sample(kind)
        await rig.settle()
        words = [name.split(" for ")[0].split(",")[0] for name in rig.effects.log[done:]]
        assert words == [
            f"cluster PATCH {kind}/example finalizer",
            f"POST {KINDS[kind].api.path}",
            f"cluster POST Secret/{secret_of(kind)}",
            f"cluster PATCH {kind}/example status",
        ]


@pytest.mark.parametrize("kind", TOKENS)
async def test_the_secret_holds_token_and_id_as_they_are(kind):
    async with Rig() as rig:
        await made(rig, kind)
        data = held(rig, kind)
        assert data.keys() == {"token", "id"}
        assert data["token"] == data["token"].strip()
        assert opened_by(rig, data["token"]) == data["id"] == rig.id(kind)
        assert rig.status(kind)["secretName"] == secret_of(kind)


async def test_a_key_opens_the_service_and_a_deleted_one_does_not():
    async with Rig() as rig:
        await made(rig, KEY)
        token = held(rig, KEY)["token"]
        assert await opens(rig, token)
        await rig.outside.of(KINDS[KEY].api).raw.delete(rig.id(KEY))
        assert not await opens(rig, token)


@pytest.mark.parametrize("kind", TOKENS)
async def test_no_status_event_or_annotation_shows_a_token(kind):
    """The doubles refuse a status or an event that shows a value; this looks again at all that is written."""
    async with Rig() as rig:
        first = await rotating(rig, kind)
        tokens = [held(rig, kind)["token"]]
        await rig.sleep(100 * HOUR)
        tokens.append(held(rig, kind)["token"])
        assert rig.id(kind) != first
        text = json.dumps([rig.get(kind), [str(e) for e in rig.events()], rig.writes, str(rig.outcomes)])
        assert [token for token in tokens if token in text] == []


# Rotation ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TOKENS)
async def test_a_token_rotates_at_its_age_and_both_are_good_during_the_overlap(kind):
    async with Rig() as rig:
        first = await rotating(rig, kind)
        old = held(rig, kind)["token"]
        await rig.sleep(99.9 * HOUR)
        assert (rig.id(kind), rig.calls) == (first, [])
        await rig.sleep(0.2 * HOUR)
        second, data = rig.id(kind), held(rig, kind)
        assert second != first
        assert data == {"token": data["token"], "id": second, "previous-token": old, "previous-id": first}
        assert (opened_by(rig, data["token"]), opened_by(rig, old)) == (second, first)
        assert [effect_of(call) for call in rig.calls] == ["POST"]
        assert [p["id"] for p in rig.status(kind)["previous"]] == [first]
        assert [e.reason for e in rig.events()] == ["TokenIssued"]
        await rig.sleep(9.8 * HOUR)
        assert ours(rig, kind) == [first, second]
        await rig.sleep(0.2 * HOUR)
        assert ours(rig, kind) == [second]
        assert held(rig, kind) == {"token": data["token"], "id": second}
        await judge(rig, kind, STEADY)


async def test_both_keys_call_the_service_during_the_overlap_and_the_old_one_not_after_it():
    async with Rig() as rig:
        await rotating(rig, KEY)
        await rig.sleep(100.1 * HOUR)
        data = held(rig, KEY)
        assert [await opens(rig, data[k]) for k in ("token", "previous-token")] == [True, True]
        await rig.sleep(10 * HOUR)
        assert [await opens(rig, data[k]) for k in ("token", "previous-token")] == [True, False]


@pytest.mark.parametrize("kind", TOKENS)
async def test_the_secret_never_shows_a_key_that_is_deleted(kind):
    """The previous token leaves the Secret before its key goes."""
    async with Rig() as rig:
        first = await rotating(rig, kind)
        await rig.sleep(100.1 * HOUR)
        done = len(rig.effects.log)
        await rig.sleep(10 * HOUR)
        end = [name.split(" for ")[0] for name in rig.effects.log[done:]]
        assert end == [
            f"cluster PUT Secret/{secret_of(kind)}",
            f"DELETE {KINDS[kind].api.path}/{first}",
            f"cluster PATCH {kind}/example status",
        ]


@pytest.mark.parametrize("kind", TOKENS)
async def test_rotations_follow_each_other_for_ever(kind):
    async with Rig() as rig:
        seen = {await rotating(rig, kind)}
        for _ in range(5):
            await rig.sleep(100.1 * HOUR)
            seen.add(rig.id(kind))
        assert len(seen) == 6
        await rig.sleep(20 * HOUR)
        await judge(rig, kind, STEADY)


@pytest.mark.parametrize("kind", TOKENS)
async def test_a_restart_during_the_overlap_ends_it_in_time(kind):
    async with Rig() as rig:
        first = await rotating(rig, kind)
        await rig.sleep(101 * HOUR)
        await rig.restart()
        rig.forget()
        await rig.settle()
        assert (rig.calls, rig.writes) == ([], [])
        assert first in ours(rig, kind)
        await rig.sleep(10 * HOUR)
        await judge(rig, kind, STEADY)


@pytest.mark.parametrize("kind", TOKENS)
async def test_a_predecessor_that_somebody_deleted_ends_like_any_other(kind):
    async with Rig() as rig:
        first = await rotating(rig, kind)
        await rig.sleep(101 * HOUR)
        await rig.outside.of(KINDS[kind].api).raw.delete(first)
        await rig.resync(kind)
        assert rig.ready(kind)
        await rig.sleep(10 * HOUR)
        await judge(rig, kind, STEADY)


@pytest.mark.parametrize("kind", TOKENS)
async def test_deleting_during_an_overlap_deletes_both(kind):
    async with Rig() as rig:
        await rotating(rig, kind)
        await rig.sleep(101 * HOUR)
        assert len(ours(rig, kind)) == 2
        rig.delete(kind)
        await rig.settle()
        await judge(rig, kind, Scenario("gone", None, None, gone=True))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", TOKENS)
async def test_a_rotation_that_is_asked_for_happens_once_for_each_value(kind):
    async with Rig() as rig:
        rig.sample(kind, rotation=None)
        await rig.settle()
        await foreign(rig, kind)
        seen = [rig.id(kind)]
        for value in ("2026-01-01T00:00:00Z", "again"):
            rig.annotate(kind, rotate_requested_at=value)
            await rig.settle()
            seen.append(rig.id(kind))
            assert rig.status(kind)["lastHandledRotateAt"] == value
            rig.forget()
            await rig.restart()
            await rig.settle()
            await rig.resync(kind)
            assert [effect_of(call) for call in rig.calls if not call.startswith("GET")] == []
        assert len(set(seen)) == 3
        await judge(rig, kind, STEADY)


@pytest.mark.parametrize("kind", TOKENS)
async def test_a_rotation_that_is_asked_for_keeps_the_overlap_that_the_spec_gives(kind):
    async with Rig() as rig:
        first = await rotating(rig, kind)
        old = held(rig, kind)["token"]
        rig.annotate(kind, rotate_requested_at="now")
        await rig.settle()
        data = held(rig, kind)
        assert (data["previous-token"], data["previous-id"]) == (old, first)
        assert set(ours(rig, kind)) == {first, rig.id(kind)}
        await rig.sleep(10.1 * HOUR)
        await judge(rig, kind, STEADY)


@pytest.mark.parametrize("kind", TOKENS)
async def test_a_second_rotation_during_an_overlap_shows_the_newest_predecessor(kind):
    async with Rig() as rig:
        first = await rotating(rig, kind)
        rig.annotate(kind, rotate_requested_at="1")
        await rig.settle()
        second = rig.id(kind)
        await rig.sleep(5 * HOUR)
        rig.annotate(kind, rotate_requested_at="2")
        await rig.settle()
        third = rig.id(kind)
        assert ours(rig, kind) == [first, second, third]
        assert held(rig, kind)["previous-id"] == second
        await rig.sleep(6 * HOUR)
        assert ours(rig, kind) == [second, third]
        assert held(rig, kind)["previous-id"] == second
        await rig.sleep(6 * HOUR)
        await judge(rig, kind, STEADY)


@pytest.mark.parametrize("kind", TOKENS)
async def test_a_request_that_is_there_from_the_start_makes_one_token(kind):
    async with Rig() as rig:
        await made_needs(rig, kind)
        rig.apply(kind, "example", rig.sample(kind)["spec"], rotate_requested_at="early")
        await rig.settle()
        assert len(rig.remote(kind)) == 1
        assert rig.status(kind)["lastHandledRotateAt"] == "early"


@pytest.mark.parametrize("kind", TOKENS)
async def test_an_interval_that_is_added_counts_from_the_tokens_birth(kind):
    async with Rig() as rig:
        rig.sample(kind, rotation=None)
        await rig.settle()
        first = rig.id(kind)
        await rig.sleep(60 * HOUR)
        rig.edit(kind, **ROTATING)
        await rig.settle()
        assert rig.id(kind) == first
        await rig.sleep(39 * HOUR)
        assert rig.id(kind) == first
        await rig.sleep(2 * HOUR)
        assert rig.id(kind) != first


@pytest.mark.parametrize("kind", TOKENS)
@pytest.mark.parametrize("moment", ["the POST", "the Secret"])
async def test_a_crash_in_a_rotation_keeps_the_overlap(kind, moment):
    """Users of the old token have the time that they were promised, whenever the operator died."""
    async with Rig() as rig:
        first = await rotating(rig, kind)
        old = held(rig, kind)["token"]
        rig.effects.fates = {len(rig.effects.log) + {"the POST": 2, "the Secret": 3}[moment]: Fate.DIE_AFTER}
        await rig.sleep(100.1 * HOUR)
        assert rig.deaths == 1
        data = held(rig, kind)
        assert rig.ready(kind), rig.message(kind)
        assert data["id"] == rig.id(kind) != first
        assert (data["previous-token"], data["previous-id"]) == (old, first)
        assert ours(rig, kind) == [first, rig.id(kind)]
        assert opened_by(rig, old) == first
        await rig.sleep(9 * HOUR)
        assert opened_by(rig, old) == first
        await rig.sleep(1.5 * HOUR)
        await judge(rig, kind, STEADY)


@pytest.mark.parametrize("kind", TOKENS)
@pytest.mark.parametrize("effect", [1, 2, 3, 4])
async def test_a_crash_in_a_rotation_that_was_asked_for_ends_with_one_successor(kind, effect):
    async with Rig() as rig:
        first = await rotating(rig, kind)
        old = held(rig, kind)["token"]
        rig.effects.fates = {len(rig.effects.log) + effect: Fate.DIE_AFTER}
        rig.annotate(kind, rotate_requested_at=rig.world.now().isoformat())
        await rig.settle()
        assert rig.deaths == 1
        posts = [sent for sent in rig.sent if sent.method == "POST"]
        assert len(posts) == (2 if effect == 2 else 1), "what is in the Secret is a rotation that happened"
        data = held(rig, kind)
        assert (data["previous-token"], data["previous-id"]) == (old, first)
        assert opened_by(rig, data["token"]) == rig.id(kind)
        assert ours(rig, kind) == [first, rig.id(kind)]
        await rig.sleep(10.1 * HOUR)
        await judge(rig, kind, STEADY)


# Losses ------------------------------------------------------------------------------------------


def delete_secret(rig: Rig, kind: str) -> None:
    rig.api.delete(("Secret", NAMESPACE, secret_of(kind)))


def empty_secret(rig: Rig, kind: str) -> None:
    rig.api.apply(("Secret", NAMESPACE, secret_of(kind)), {"data": {}})


def take_the_token(rig: Rig, kind: str) -> None:
    rig.api.apply(("Secret", NAMESPACE, secret_of(kind)), {"data": {"id": held(rig, kind)["id"]}})


def empty_the_token(rig: Rig, kind: str) -> None:
    rig.api.apply(("Secret", NAMESPACE, secret_of(kind)), {"data": {**held(rig, kind), "token": ""}})


LOSSES = [delete_secret, empty_secret, take_the_token, empty_the_token]


@pytest.mark.parametrize("kind", TOKENS)
@pytest.mark.parametrize("lose", LOSSES)
async def test_a_lost_token_is_replaced_and_the_old_one_deleted(kind, lose):
    async with Rig() as rig:
        await made(rig, kind)
        await foreign(rig, kind)
        first, old = rig.id(kind), held(rig, kind)["token"]
        rig.forget()
        lose(rig, kind)
        await rig.settle()
        assert rig.id(kind) != first
        assert held(rig, kind)["token"] not in ("", old)
        assert [effect_of(call) for call in rig.calls] == ["POST", "DELETE"]
        await judge(rig, kind, STEADY)


@pytest.mark.parametrize("kind", TOKENS)
async def test_a_token_lost_during_an_overlap_leaves_one_in_the_end(kind):
    async with Rig() as rig:
        await rotating(rig, kind)
        await rig.sleep(101 * HOUR)
        delete_secret(rig, kind)
        await rig.settle()
        assert opened_by(rig, held(rig, kind)["token"]) == rig.id(kind)
        await rig.sleep(10.1 * HOUR)
        await judge(rig, kind, STEADY)


@pytest.mark.parametrize("kind", TOKENS)
async def test_an_id_that_went_from_the_secret_is_written_again_without_a_new_token(kind):
    async with Rig() as rig:
        await made(rig, kind)
        await foreign(rig, kind)
        before = held(rig, kind)
        rig.api.apply(("Secret", NAMESPACE, secret_of(kind)), {"data": {"token": before["token"]}})
        await rig.settle()
        assert held(rig, kind) == before
        await judge(rig, kind, STEADY)


@pytest.mark.parametrize("kind", TOKENS)
async def test_an_answer_without_a_token_is_never_published_and_leaves_nothing_behind(kind):
    async with Rig() as rig:
        await made_needs(rig, kind)
        rig.faults(NULL)
        rig.sample(kind)
        await rig.settle(0)
        for _ in range(5):
            await rig.sleep(20)
            assert rig.published(secret_of(kind)) is None
            assert rig.remote(kind) == []
        assert rig.reason(kind) == "ServiceUnavailable"
        assert "no token" in rig.message(kind)
        assert "id" not in rig.status(kind)
        rig.faults()
        await rig.sleep(120)
        await foreign(rig, kind)
        await judge(rig, kind, STEADY)


@pytest.mark.parametrize("kind", TOKENS)
async def test_a_rotation_without_a_token_keeps_the_old_one_good(kind):
    async with Rig() as rig:
        first = await rotating(rig, kind)
        before = held(rig, kind)
        rig.faults(NULL)
        await rig.sleep(101 * HOUR)
        assert (rig.id(kind), held(rig, kind), ours(rig, kind)) == (first, before, [first])
        assert "previous" not in rig.status(kind)
        rig.faults()
        await rig.sleep(120)
        assert rig.id(kind) != first
        assert held(rig, kind)["previous-id"] == first
        await rig.sleep(11 * HOUR)
        await judge(rig, kind, STEADY)


@pytest.mark.parametrize("kind", TOKENS)
@pytest.mark.parametrize("fate", [Fate.DIE_AFTER, Fate.CUT_AFTER, Fate.GARBAGE_AFTER, Fate.FAULT_AFTER])
async def test_a_key_whose_token_nobody_got_is_deleted(kind, fate):
    async with Rig() as rig:
        await made_needs(rig, kind)
        rig.effects.fates = {len(rig.effects.log) + 2: fate}
        rig.sample(kind)
        await rig.settle()
        await rig.sleep(2 * GRACE_SECONDS)
        assert [name.split()[0] for name in rig.effects.log if name.startswith(("POST", "DELETE"))][-3:] == [
            "POST",
            "DELETE",
            "POST",
        ]
        assert ids(rig, kind) == [rig.id(kind)]
        await foreign(rig, kind)
        await judge(rig, kind, STEADY)


@pytest.mark.parametrize("kind", TOKENS)
async def test_a_key_that_vanished_stalls_because_another_is_not_the_same(kind):
    async with Rig() as rig:
        await made(rig, kind)
        first = rig.id(kind)
        await rig.outside.of(KINDS[kind].api).raw.delete(first)
        await rig.resync(kind)
        assert rig.reason(kind) == "RemoteMissing"
        assert first in rig.message(kind)
        assert rig.remote(kind) == []
        rig.edit(kind, onRemoteMissing="Recreate")
        await rig.settle()
        await foreign(rig, kind)
        await judge(rig, kind, STEADY)


@pytest.mark.parametrize("kind", TOKENS)
async def test_retain_keeps_the_key_and_its_secret_without_an_owner(kind):
    async with Rig() as rig:
        await made(rig, kind)
        first, before = rig.id(kind), held(rig, kind)
        rig.edit(kind, deletionPolicy="Retain")
        await rig.settle()
        rig.delete(kind)
        await rig.settle()
        assert not rig.exists(kind)
        secret = rig.published(secret_of(kind))
        assert secret is not None
        assert secret["data"] == before
        assert not secret["metadata"].get("ownerReferences")
        assert secret["metadata"]["annotations"][ID] == first
        assert ids(rig, kind) == [first]


@pytest.mark.parametrize("kind", TOKENS)
async def test_a_secret_of_somebody_else_is_found_before_a_key_is_made(kind):
    async with Rig() as rig:
        await made_needs(rig, kind)
        rig.secret(secret_of(kind), {"token": "somebody else's"})
        rig.sample(kind)
        await rig.settle()
        assert rig.reason(kind) == "SecretConflict"
        assert rig.remote(kind) == []
        assert held(rig, kind) == {"token": "somebody else's"}


# Fields ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TOKENS)
async def test_the_owner_is_the_caller_unless_the_spec_names_another(kind):
    async with Rig() as rig:
        await made(rig, kind)
        admin = rig.remote(kind)[0]["owner_id"]
        assert rig.status(kind).get("ownerID") in (None, admin)
        rig.sample(kind, "other", ownerID="usr_2yrt9bq0U3H2dBBOxrYmAkFMnvJ")
        await rig.settle()
        assert rig.ready(kind, "other"), rig.message(kind, "other")
        assert rig.remote(kind)[-1]["owner_id"] == "usr_2yrt9bq0U3H2dBBOxrYmAkFMnvJ" != admin
        rig.forget()
        await rig.resync(kind)
        assert {call.split()[0] for call in rig.calls} == {"GET"}


async def acl_of(rig: Rig) -> list[str]:
    found: list[str] = rig.remote(CREDENTIAL)[0]["acl"]
    return found


async def with_acl(rig: Rig, acl: Any) -> None:
    rig.sample(CREDENTIAL, acl=acl)
    await rig.settle()
    assert rig.ready(CREDENTIAL), rig.message(CREDENTIAL)
    rig.forget()


async def test_the_order_of_acl_rules_means_nothing():
    async with Rig() as rig:
        await with_acl(rig, ["bind:b.example.com", "bind:env=*", "bind:*=*"])
        rig.edit(CREDENTIAL, acl=["bind:*=*", "bind:b.example.com", "bind:env=*"])
        await rig.settle()
        assert rig.calls == []
        await rig.outside.of(KINDS[CREDENTIAL].api).raw.update(
            rig.id(CREDENTIAL), {"acl": ["bind:env=*", "bind:*=*", "bind:b.example.com"]}
        )
        await rig.resync(CREDENTIAL)
        assert {call.split()[0] for call in rig.calls} == {"GET"}


@pytest.mark.parametrize(("before", "after"), [(None, ["*"]), (["*"], None), (["*"], [])])
async def test_a_lone_star_equals_no_rule(before, after):
    async with Rig() as rig:
        await with_acl(rig, before)
        rig.edit(CREDENTIAL, acl=after)
        await rig.settle()
        assert rig.calls == []
        assert await acl_of(rig) in ([], ["*"])


@pytest.mark.parametrize("acl", [None, ["*"]])
async def test_a_lone_star_that_the_service_holds_is_no_difference(acl):
    async with Rig() as rig:
        await with_acl(rig, acl)
        await rig.outside.of(KINDS[CREDENTIAL].api).raw.update(rig.id(CREDENTIAL), {"acl": ["*"]})
        await rig.resync(CREDENTIAL)
        assert {call.split()[0] for call in rig.calls} == {"GET"}


async def test_removed_rules_go_back_to_none_and_a_rule_added_elsewhere_is_undone():
    async with Rig() as rig:
        await with_acl(rig, ["bind:*.example.com"])
        rig.edit(CREDENTIAL, acl=None)
        await rig.settle()
        assert [(sent.method, sent.body) for sent in rig.sent] == [("PATCH", {"acl": []})]
        assert await acl_of(rig) == []
        await rig.outside.of(KINDS[CREDENTIAL].api).raw.update(rig.id(CREDENTIAL), {"acl": ["bind:evil.example.com"]})
        await rig.resync(CREDENTIAL)
        assert await acl_of(rig) == []
        assert rig.events()[-1].reason == "DriftCorrected"


async def test_a_rule_is_sent_as_it_is_written():
    rules = ["bind:*.example.com", "bind:env=*", "bind:*=blue", "bind:tcp.example.com:5672"]
    async with Rig() as rig:
        await with_acl(rig, rules)
        assert await acl_of(rig) == rules


@pytest.mark.parametrize("acl", [["connect:a.example.com"], ["bind:"], ["*", "bind:a.example.com"], ["*", "*"]])
async def test_a_rule_of_another_form_is_refused_before_anything_is_made(acl):
    async with Rig() as rig:
        rig.sample(CREDENTIAL, acl=acl)
        await rig.settle()
        assert rig.reason(CREDENTIAL) == "InvalidSpec"
        assert "acl" in rig.message(CREDENTIAL)
        assert rig.remote(CREDENTIAL) == []
