"""Which API keys that resources made connections call with: told by what output Secrets show, and shown to nobody."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from edge_operator.engine.references import DEFAULT_CONNECTION
from edge_operator.kinds import KINDS
from edge_operator.kube import keys
from edge_operator.kube.cluster import KubeCluster
from edge_operator.kube.keys import KeysInUse

from .connected import scene
from .test_output_secrets import OneNamespace

TOKEN, NEXT = "canary-token-3fKq", "canary-token-9xZw"
KEY = {
    "apiVersion": "edge-operator.dev/v1alpha1",
    "kind": "APIKey",
    "metadata": {"name": "own", "namespace": "a", "uid": "1"},
}


def test_a_key_is_in_use_while_a_connection_calls_with_its_token() -> None:
    calling = [TOKEN]
    found = KeysInUse(lambda: calling)
    found.note({"ak_1": f"{TOKEN}\n", "ak_2": NEXT})
    assert found.ids() == {"ak_1"}
    calling[:] = [NEXT]
    assert found.ids() == {"ak_2"}
    assert TOKEN not in repr(vars(found))


def test_no_more_keys_are_remembered_than_are_of_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "REMEMBERED", 2)
    found = KeysInUse(lambda: ["t1", "t2", "t3"])
    for number in (1, 2, 3):
        found.note({f"ak_{number}": f"t{number}"})
    assert found.ids() == {"ak_2", "ak_3"}


async def test_the_output_secret_tells_which_object_a_token_is_of_even_after_it_is_lost() -> None:
    api, calling = OneNamespace(), [TOKEN]
    cluster = KubeCluster(
        api,  # type: ignore[arg-type]  # what is asked of it
        SimpleNamespace(),  # type: ignore[arg-type]  # likewise
        cluster_id="c",
        digest_key=b"k",
        may_write=lambda: None,
        tell=lambda *_: None,
        wake=lambda _: None,
        calling=lambda: calling,
    )
    held = {"token": NEXT, "id": "ak_2", "previous-token": TOKEN, "previous-id": "ak_1"}
    await cluster.publish(KINDS["APIKey"], KEY, "own-apikey", "ak_2", held, None)
    assert cluster.in_use() == frozenset(), "nothing was looked at yet"

    await cluster.published(KINDS["APIKey"], KEY, "own-apikey")
    assert cluster.in_use() == {"ak_1"}
    del api.secrets["own-apikey"]
    await cluster.published(KINDS["APIKey"], KEY, "own-apikey")
    assert cluster.in_use() == {"ak_1"}


@pytest.mark.fault("a connection is about to switch to another key")
async def test_a_connection_uses_its_key_until_it_has_switched_and_its_calls_have_ended() -> None:
    async with scene() as found:
        found.service.accounts["key-c"] = []
        assert found.connections.tokens() == {"key-a"}
        found.secret(key="key-c")
        assert found.connections.tokens() == {"key-a"}, "it was not told yet"
        found.connections.secret("a", "account")
        await found.work()
        assert found.key_in_use() == "key-c"
        assert found.connections.tokens() == {"key-a", "key-c"}, "calls may be under way"
        account = found.connections._accounts["Connection", "a", "main"]
        for task in list(account._closing):
            task.cancel()
        await asyncio.gather(*account._closing, return_exceptions=True)
        assert found.connections.tokens() == {"key-c"}


async def test_the_key_of_the_flags_is_in_use_before_it_was_ever_sent() -> None:
    async with scene(connected=False) as found:
        found.connections.use_flags(found.terms("key-b"))
        assert found.connections.tokens() == {"key-b"}
        await found.work(DEFAULT_CONNECTION)
        found.connections.use_flags(found.terms("key-a"))
        assert found.connections.tokens() == {"key-a", "key-b"}, "the old one until its successor is in use"
