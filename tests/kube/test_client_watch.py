"""Watches through the client: events in any size and split, silence, errors, and leaving one."""

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest
from aiohttp import web

from edge_operator.kube import errors
from edge_operator.kube.client import Options
from edge_operator.kube.transport import Call

from .apiserver import replies, status
from .talking import EDGES, QUICK, event, stream, talking, watched


async def test_a_watch_counts_as_one(tmp_path: Path) -> None:
    calls: list[Call] = []
    async with talking(tmp_path, stream(event("BOOKMARK")), on_call=calls.append) as (api, _):
        await watched(api)
    assert [("WATCH", "httpsedges", 200)] == [(call.method, call.about, call.status) for call in calls]


async def test_a_watch_gives_events_whatever_their_size_and_however_they_are_split(tmp_path: Path) -> None:
    large = event("ADDED", a="x" * 3_000_000)
    small = event("BOOKMARK", metadata={"resourceVersion": "9"})
    answer = stream(large[:1000], large[1000:] + small[:7], small[7:-1], b"\n\n" + event("DELETED", a=2))
    async with talking(tmp_path, answer) as (api, server):
        events = await watched(api)
    assert ["ADDED", "BOOKMARK", "DELETED"] == [type_ for type_, _ in events]
    assert 3_000_000 == len(events[0][1]["a"])
    ((_, path, headers, _),) = server.requests
    assert "watch=true&allowWatchBookmarks=true&resourceVersion=5&timeoutSeconds=290" in path
    assert "as=PartialObjectMetadata;" in headers["Accept"]


async def test_a_watch_that_falls_silent_is_ended(tmp_path: Path) -> None:
    async with talking(tmp_path, stream(event("ADDED", a=1), end=False), QUICK) as (api, _):
        assert 1 == len(await watched(api))


async def test_a_watch_lasts_longer_than_a_call_may(tmp_path: Path) -> None:
    """Seven bookmarks, each within the silence allowed, all together longer than the time-out of a call."""

    async def slowly(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        for _ in range(7):
            await asyncio.sleep(0.05)
            await answer.write(event("BOOKMARK"))
        return answer

    async with talking(tmp_path, slowly, QUICK) as (api, _):
        assert 7 == len(await watched(api))


@pytest.mark.parametrize(("code", "kind"), [(410, errors.Gone), (500, errors.Unavailable), (403, errors.Forbidden)])
async def test_an_error_within_a_watch_is_the_error_that_it_names(
    tmp_path: Path, code: int, kind: type[errors.KubeError]
) -> None:
    async with talking(tmp_path, stream(event("ERROR", code=code, reason="Expired", message="too old"))) as (api, _):
        with pytest.raises(kind, match="too old"):
            await watched(api)


async def test_a_watch_is_refused_like_any_request(tmp_path: Path) -> None:
    async with talking(tmp_path, replies(status(410, "Expired"))) as (api, _):
        with pytest.raises(errors.Gone):
            await watched(api)


@pytest.mark.parametrize("line", [b"garbage\n", b"[]\n", b"{}\n", b'{"type": "ERROR"}\n', b"\xff\n"])
async def test_an_event_that_is_none_is_an_error_of_ours(tmp_path: Path, line: bytes) -> None:
    async with talking(tmp_path, stream(line)) as (api, _):
        with pytest.raises(errors.KubeError):
            await watched(api)


async def test_leaving_a_watch_closes_its_connection(tmp_path: Path) -> None:
    closed = asyncio.Event()

    async def endless(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        try:
            while True:
                await answer.write(event("BOOKMARK"))
                await asyncio.sleep(0.01)
        finally:
            closed.set()

    async with talking(tmp_path, endless, Options(max_connections=1)) as (api, _):
        for _ in range(2):  # with one connection, the second would wait for the first
            async with aclosing(api.watch(EDGES, resource_version="1")) as events:
                async for _event in events:
                    break
        task = asyncio.ensure_future(watched(api))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(closed.wait(), 2)
