"""A list and a watch of metadata, in virtual time: gaps, expiry, refusals, and what is told of them."""

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from edge_operator.kube import errors
from edge_operator.kube.watch import MetadataWatch, Pauses

from .doubles import MemoryAPI, now, run, settled

NAMESPACES = "/api/v1/namespaces"


def path(name: str, namespace: str = "shop") -> str:
    return f"{NAMESPACES}/{namespace}/secrets/{name}"


def put(api: MemoryAPI, name: str, namespace: str = "shop") -> None:
    api.put(path(name, namespace), {"metadata": {"name": name, "namespace": namespace}})


class Told:
    """What the listener heard, in short: +name for what is there, -name for what is gone."""

    def __init__(self) -> None:
        self.all: list[str] = []

    def __call__(self, namespace: str, name: str, metadata: Mapping[str, Any] | None) -> None:
        assert metadata is None or metadata["name"] == name
        self.all.append(f"{'-' if metadata is None else '+'}{namespace}/{name}")

    def news(self) -> list[str]:
        """What was heard since it was asked last."""
        out, self.all = self.all, []
        return sorted(out)


@contextlib.asynccontextmanager
async def watching(api: MemoryAPI, told: Any, *namespaces: str) -> AsyncIterator[MetadataWatch]:
    watch = MetadataWatch(
        api, told, namespaces=namespaces, monotonic=now, source=random.Random(2), pauses=Pauses()  # repeatable
    )  # fmt: skip
    task = asyncio.ensure_future(watch.run())
    await settled()
    try:
        yield watch
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def requests(api: MemoryAPI, verb: str) -> int:
    return len([line for line in api.log if line.startswith(verb)])


def test_everything_there_is_told_once_page_by_page_and_changes_follow() -> None:
    async def scenario() -> None:
        api, told = MemoryAPI(), Told()
        for name in "abcde":
            put(api, name)
        async with watching(api, told) as watch:
            await watch.synced()
            assert ["+shop/a", "+shop/b", "+shop/c", "+shop/d", "+shop/e"] == told.news()
            assert 2 == requests(api, "LIST")
            put(api, "f")
            put(api, "a")
            api.remove(path("b"))
            await settled()
            assert ["+shop/a", "+shop/f", "-shop/b"] == told.news()
            assert watch.known("shop", "b") is None
            assert watch.known("shop", "f") is not None

    run(scenario())


def test_only_named_namespaces_are_looked_at() -> None:
    async def scenario() -> None:
        api, told = MemoryAPI(), Told()
        for namespace in ("shop", "bank", "other"):
            put(api, "a", namespace)
        async with watching(api, told, "shop", "bank") as watch:
            await watch.synced()
            put(api, "b", "other")
            put(api, "b", "bank")
            await settled()
        assert ["+bank/a", "+bank/b", "+shop/a"] == told.news()
        assert {"LIST /api/v1/namespaces/shop/secrets", "LIST /api/v1/namespaces/bank/secrets"} <= set(api.log)
        assert "LIST /api/v1/secrets" not in api.log

    run(scenario())


def test_a_watch_that_ends_goes_on_where_it_was_without_a_list() -> None:
    async def scenario() -> None:
        api, told = MemoryAPI(), Told()
        put(api, "a")
        async with watching(api, told):
            await asyncio.sleep(290)
            told.news()
            api.end_watches()
            put(api, "b")
            await asyncio.sleep(1)
            assert ["+shop/b"] == told.news()
            assert 1 == requests(api, "LIST")

    run(scenario())


def test_a_bookmark_moves_the_place_to_go_on_from() -> None:
    async def scenario() -> None:
        api, told = MemoryAPI(), Told()
        put(api, "a")
        async with watching(api, told):
            for _ in range(5):
                api.bookmark()
            await settled()
            api.forgotten = 5
            api.end_watches()
            await asyncio.sleep(5)
            assert 1 == requests(api, "LIST")

    run(scenario())


@pytest.mark.fault("a watch of Secrets that expires (410)")
def test_after_an_expiry_only_differences_are_told_missed_deletions_included() -> None:
    async def scenario() -> None:
        api, told = MemoryAPI(), Told()
        for name in "abcdef":
            put(api, name)
        async with watching(api, told):
            told.news()
            away = True

            async def refuse(what: str) -> None:
                if away and what.startswith("WATCH"):
                    raise errors.Unreachable("cut", sent=True)

            api.fault = refuse
            api.end_watches()
            await asyncio.sleep(5)
            put(api, "b")
            api.remove(path("d"))
            put(api, "g")
            put(api, "h")
            api.remove(path("h"))
            api.forgotten, away = 100, False
            await asyncio.sleep(60)
            api.forgotten = 0
            await asyncio.sleep(60)
            assert ["+shop/b", "+shop/g", "-shop/d"] == told.news()

    run(scenario())


def test_a_broken_connection_is_opened_again_slower_and_slower() -> None:
    async def scenario() -> None:
        api, told = MemoryAPI(), Told()

        async def refuse(what: str) -> None:
            raise errors.Unreachable("refused", sent=False)

        api.fault = refuse
        async with watching(api, told):
            await asyncio.sleep(3600)
            assert 120 <= len(api.log) <= 260
            api.fault = no_fault
            put(api, "a")
            await asyncio.sleep(31)
            assert ["+shop/a"] == told.news()

    run(scenario())


@pytest.mark.parametrize("event", [True, False], ids=["after an event", "after a long quiet watch"])
def test_after_a_recovery_pauses_are_short_again(event: bool) -> None:
    async def scenario() -> None:
        api, told = MemoryAPI(), Told()
        away = True

        async def refuse(what: str) -> None:
            if away:
                raise errors.Unreachable("refused", sent=False)

        api.fault = refuse
        async with watching(api, told):
            await asyncio.sleep(200)
            assert 0 == requests(api, "WATCH")
            away = False
            if event:
                for _ in range(600):
                    await asyncio.sleep(0 if requests(api, "WATCH") else 0.1)
                put(api, "a")
                await settled()
            else:
                await asyncio.sleep(60)
            away = True
            api.end_watches()
            await settled()
            away = False
            put(api, "b")
            await asyncio.sleep(0.6)
            assert "+shop/b" in told.news()

    run(scenario())


def test_a_watch_that_ends_at_once_again_and_again_is_no_busy_loop() -> None:
    async def scenario() -> None:
        api, told = MemoryAPI(), Told()
        put(api, "a")

        async def ended(what: str) -> None:
            if what.startswith("WATCH"):
                asyncio.get_running_loop().call_soon(api.end_watches)

        api.fault = ended
        async with watching(api, told):
            await asyncio.sleep(3600)
            assert requests(api, "WATCH") < 300

    run(scenario())


def test_a_forbidden_namespace_is_reported_once_and_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        api, told = MemoryAPI(), Told()
        put(api, "a", "shop")
        put(api, "a", "bank")
        allowed = False

        async def refuse(what: str) -> None:
            if "bank" in what and not allowed:
                raise errors.Forbidden("secrets is forbidden", status=403)

        api.fault = refuse
        async with watching(api, told, "shop", "bank") as watch:
            await watch.synced()
            assert ["+shop/a"] == told.news()
            await asyncio.sleep(3600)
            assert 30 <= len([line for line in api.log if "bank" in line]) <= 65
            assert 1 == caplog.text.count("cannot be watched in namespace bank")
            allowed = True
            await asyncio.sleep(100)
            assert ["+bank/a"] == told.news()
            assert "can be watched in namespace bank now" in caplog.text

    with caplog.at_level(logging.INFO):
        run(scenario())


def test_rights_taken_away_are_no_deletion(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        api, told = MemoryAPI(), Told()
        put(api, "a")
        put(api, "b")
        allowed = True

        async def refuse(what: str) -> None:
            if not allowed:
                raise errors.Forbidden("no", status=403)

        api.fault = refuse
        async with watching(api, told) as watch:
            told.news()
            allowed = False
            api.end_watches()
            await asyncio.sleep(10)
            assert [] == told.news()
            assert watch.known("shop", "a") is not None
            api.remove(path("a"))
            allowed = True
            await asyncio.sleep(100)
            assert ["-shop/a"] == told.news()

    with caplog.at_level(logging.INFO):
        run(scenario())
    assert 1 == caplog.text.count("cannot be watched in the whole cluster")
    assert 1 == caplog.text.count("can be watched in the whole cluster now")


def test_a_listener_that_raises_misses_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        api, told = MemoryAPI(), Told()

        def listener(namespace: str, name: str, metadata: Mapping[str, Any] | None) -> None:
            if name == "bad":
                raise KeyError(f"canary-{5000 + 512}")
            told(namespace, name, metadata)

        for name in ("a", "bad", "z"):
            put(api, name)
        async with watching(api, listener):
            put(api, "bad")
            put(api, "b")
            await settled()
        assert ["+shop/a", "+shop/b", "+shop/z"] == told.news()

    run(scenario())
    assert "KeyError" in caplog.text
    assert "canary-5512" not in caplog.text


def test_a_long_outage_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        api = MemoryAPI()

        async def refuse(what: str) -> None:
            raise errors.Unreachable("connection refused", sent=False)

        api.fault = refuse
        async with watching(api, Told()):
            await asyncio.sleep(600)

    with caplog.at_level(logging.INFO):
        run(scenario())
    assert 1 == caplog.text.count("connection refused")


async def no_fault(what: str) -> None:
    """Nothing is wrong."""
