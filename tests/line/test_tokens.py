"""API keys and tunnel credentials: a token is shown once, so it is kept before all else, and never pretended."""

from __future__ import annotations

import json

import httpx
import pytest

from doubles.cluster import ID
from doubles.crashes import STEADY, judge
from doubles.effects import Fate
from doubles.foreign import foreign
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
