"""The faults that tests can switch on do what their names say, and nothing when they are off."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from wire.api import HEADERS, Api, process, serving
from wire.clock import Clock


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with serving() as api:
        yield api


async def _switch(api: Api, **fault: Any) -> None:
    await api.ok("PUT", "/_control/faults", {"faults": [fault]})


async def _count(api: Api) -> int:
    await api.ok("DELETE", "/_control/faults")
    return len((await api.ok("GET", "/backends/weighted"))["backends"])


async def test_latency_holds_every_answer_back(api: Api) -> None:
    await _switch(api, kind="latency", seconds=0.2)
    began = time.monotonic()
    await api.ok("GET", "/api_keys")
    assert time.monotonic() - began >= 0.2


@pytest.mark.parametrize(("when", "count"), [("before", 0), ("after", 1)])
@pytest.mark.parametrize("status", [429, 500, 502, 503])
async def test_a_status_comes_instead_of_the_answer_before_or_after_the_work(
    api: Api, status: int, when: str, count: int
) -> None:
    await _switch(api, kind="status", status=status, when=when, method="POST")
    assert status == (await api.call("POST", "/backends/weighted", {})).status_code
    assert 200 == (await api.call("GET", "/backends/weighted")).status_code
    assert count == await _count(api)


@pytest.mark.parametrize("value", [None, "7", "soon"])
async def test_a_429_comes_with_or_without_retry_after(api: Api, value: str | None) -> None:
    await _switch(api, kind="status", status=429, **({"retry_after": value} if value else {}))
    assert value == (await api.call("GET", "/api_keys")).headers.get("retry-after")


@pytest.mark.parametrize(("when", "count"), [("before", 0), ("after", 1)])
async def test_an_answer_is_lost_before_or_after_the_work(when: str, count: int, tmp_path: Path) -> None:
    """On a real socket: the connection ends."""
    async with process(tmp_path / "account.sqlite", "--control") as (api, _):
        await _switch(api, kind="cut", when=when, method="POST", count=1)
        with pytest.raises(httpx.TransportError):
            await api.client.post("/backends/weighted", json={}, headers=HEADERS)
        assert count == await _count(api)


async def test_a_fault_ends_after_so_many_requests(api: Api) -> None:
    await _switch(api, kind="status", status=500, count=2, skip=1)
    assert [200, 500, 500, 200] == [(await api.call("GET", "/api_keys")).status_code for _ in range(4)]


async def test_a_fault_acts_where_it_is_told_to(api: Api) -> None:
    await _switch(api, kind="status", status=500, path="^/edges/tcp$")
    assert [200, 500, 200] == [
        (await api.call("GET", path)).status_code for path in ("/edges/tls", "/edges/tcp", "/backends/weighted")
    ]


async def test_a_lagging_list_shows_what_is_new_only_later() -> None:
    clock = Clock()
    async with serving(clock.world()) as api:
        old = await api.ok("POST", "/backends/weighted", {})
        clock.advance(seconds=10)
        await _switch(api, kind="lag", seconds=5)
        new = await api.ok("POST", "/backends/weighted", {})
        assert new == await api.ok("GET", f"/backends/weighted/{new['id']}")
        assert [old] == (await api.ok("GET", "/backends/weighted"))["backends"]
        clock.advance(seconds=6)
        assert [new, old] == (await api.ok("GET", "/backends/weighted"))["backends"]


async def test_an_edge_shows_a_lagging_route_only_later() -> None:
    clock = Clock()
    async with serving(clock.world()) as api:
        edge = await api.ok("POST", "/edges/https", {})
        await _switch(api, kind="lag", seconds=5)
        path = f"/edges/https/{edge['id']}"
        route = await api.ok("POST", f"{path}/routes", {"match_type": "path_prefix", "match": "/"})
        clock.advance(seconds=1)
        assert [] == (await api.ok("GET", path))["routes"]
        clock.advance(seconds=5)
        assert [route] == (await api.ok("GET", path))["routes"]


async def test_pages_are_as_small_as_a_fault_makes_them(api: Api) -> None:
    for _ in range(5):
        await api.ok("POST", "/backends/weighted", {})
    await _switch(api, kind="page_size", size=2)
    assert 2 == len((await api.ok("GET", "/backends/weighted"))["backends"])
    assert 5 == len(await api.everything("/backends/weighted", "backends"))


async def test_without_faults_the_server_is_as_before(api: Api) -> None:
    await _switch(api, kind="status", status=503)
    assert 503 == (await api.call("GET", "/api_keys")).status_code
    await api.ok("DELETE", "/_control/faults")
    assert 200 == (await api.call("GET", "/api_keys")).status_code


async def test_the_request_log_tells_method_path_and_status_and_no_secret(api: Api) -> None:
    await api.ok("DELETE", "/_control/requests")
    await api.call("POST", "/backends/weighted", {"description": "private"})
    await api.call("GET", "/backends/weighted/unknown")
    text = (await api.call("GET", "/_control/requests")).text
    assert "private" not in text
    assert HEADERS["Authorization"].partition(" ")[2] not in text
    shown = [(r["method"], r["path"], r["status"]) for r in (await api.ok("GET", "/_control/requests"))["requests"]]
    assert [("POST", "/backends/weighted", 201), ("GET", "/backends/weighted/unknown", 404)] == shown
