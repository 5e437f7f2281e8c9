"""A key by which a connection calls the service outlives its rotation until the connection has switched."""

from __future__ import annotations

import pytest

from doubles.crashes import STEADY, judge
from doubles.rig import Rig

from .test_tokens import KEY, TOKENS, held, opens, ours, rotating


@pytest.mark.fault("a key is rotated without overlap while a connection uses it")
async def test_a_key_that_a_connection_uses_stays_until_the_connection_has_switched():
    async with Rig() as rig:
        first = await rotating(rig, KEY, overlap="0s")
        old = held(rig, KEY)["token"]
        rig.cluster.calling = {old}
        rig.annotate(KEY, rotate_requested_at="now")
        await rig.settle(30)
        second, data = rig.id(KEY), held(rig, KEY)
        assert data == {"token": data["token"], "id": second, "previous-token": old, "previous-id": first}
        await rig.sleep(120)
        assert f"{first} stays too, because a connection still uses its token" in rig.message(KEY)
        assert rig.ready(KEY)

        rig.forget()
        await rig.sleep(600)
        await rig.restart()
        await rig.sleep(600)
        assert (rig.calls, rig.writes) == ([], []), "nobody is told twice"
        assert ours(rig, KEY) == [first, second]
        assert [await opens(rig, token) for token in (old, data["token"])] == [True, True]

        rig.cluster.calling = {data["token"]}
        await rig.sleep(120)
        assert ours(rig, KEY) == [second]
        assert held(rig, KEY) == {"token": data["token"], "id": second}
        assert rig.message(KEY) == "the remote object is as the spec says"
        await judge(rig, KEY, STEADY)


@pytest.mark.parametrize("kind", TOKENS)
async def test_what_no_connection_uses_goes_at_once_where_no_overlap_is_wanted(kind):
    async with Rig() as rig:
        first = await rotating(rig, kind, overlap="0s")
        rig.cluster.calling = {"some-other-key"}
        rig.annotate(kind, rotate_requested_at="now")
        await rig.settle(30)
        assert first not in ours(rig, kind)
        assert "previous-token" not in held(rig, kind)


async def test_deleting_the_resource_deletes_what_was_kept():
    """Whoever deletes it means it."""
    async with Rig() as rig:
        await rotating(rig, KEY, overlap="0s")
        rig.cluster.calling = {held(rig, KEY)["token"]}
        rig.annotate(KEY, rotate_requested_at="now")
        await rig.sleep(300)
        kept = ours(rig, KEY)
        assert len(kept) == 2
        rig.delete(KEY)
        await rig.settle()
        assert [doc["id"] for doc in rig.remote(KEY) if doc["id"] in kept] == []
