"""What was answered is there afterwards: over a restart, and over `kill -9` in the middle of writes. Real processes."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from wire import account, document
from wire.api import TOKEN, Api, process, serving
from wire.cited import cites

COLLECTIONS = [operation for operation in document.OPERATIONS if operation.items]


async def _everything(api: Api) -> dict[str, Any]:
    """Every list, without the addresses, which have the port of the process in them."""
    lists = {operation.path: await api.everything(operation.path, operation.items or "") for operation in COLLECTIONS}
    found: dict[str, Any] = _without_base(lists, api.base)
    return found


def _without_base(value: Any, base: str) -> Any:
    match value:
        case dict():
            return {name: _without_base(item, base) for name, item in value.items()}
        case list():
            return [_without_base(item, base) for item in value]
        case str():
            return value.replace(base, "")
        case _:
            return value


@cites("Authentication 2", "Tokens")
async def test_after_a_restart_everything_is_there_and_keys_still_open_the_api(tmp_path: Path) -> None:
    database = tmp_path / "account.sqlite"
    async with process(database, "--control") as (api, server):
        await account.one_of_each(api)
        key = await api.ok("POST", "/api_keys", {"description": "kept"})
        revoked = await api.ok("POST", "/api_keys", {})
        await api.ok("DELETE", f"/api_keys/{revoked['id']}")
        before = await _everything(api)
        assert 0 == server.stop()
    async with process(database, "--control") as (api, _):
        assert before == await _everything(api)
        bearer = {"Authorization": f"Bearer {key['token']}"}
        assert "kept" == (await api.ok("GET", f"/api_keys/{key['id']}", headers=bearer))["description"]
        for token in (revoked["token"], "unknown"):
            answer = await api.call("GET", "/api_keys", headers={"Authorization": f"Bearer {token}"})
            assert 401 == answer.status_code
        newer = await api.ok("POST", "/api_keys", {})
        assert newer["id"] > max(item["id"] for item in before["/api_keys"])


async def test_another_seeded_key_joins_those_that_are_there(tmp_path: Path) -> None:
    database = tmp_path / "account.sqlite"
    async with serving(database=database) as api:
        first = await api.ok("GET", "/api_keys")
    async with serving(database=database, seed_api_key="another0token0that0is0long0enough") as api:
        both = await api.ok("GET", "/api_keys")
        assert 2 == len(both["keys"])
        assert 1 == len({item["owner_id"] for item in both["keys"]})
        assert first["keys"][0]["id"] in {item["id"] for item in both["keys"]}


@cites("Tokens")
async def test_tokens_are_stored_as_hashes(tmp_path: Path) -> None:
    database = tmp_path / "account.sqlite"
    async with serving(database=database) as api:
        key, credential = await api.ok("POST", "/api_keys", {}), await api.ok("POST", "/credentials", {})
        stored = _bytes_in(tmp_path)
    stored += _bytes_in(tmp_path)
    assert len(stored) > 1000
    for token in (TOKEN, key["token"], credential["token"]):
        found = [part for part in (token, *token.split("_")) if part.encode() in stored]
        assert [] == found


def _bytes_in(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


async def _until(question: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while not await question():
            await asyncio.sleep(0.01)


class _Writers:
    """Write until the server dies, and remember what it confirmed."""

    def __init__(self, api: Api, seed: int) -> None:
        self.api, self._dice = api, random.Random(seed)
        self.confirmed: dict[str, int] = {}
        self.created: dict[str, str] = {}
        self.deleted: set[str] = set()
        self.asked: set[str] = set()
        self.began: dict[str, int] = {}

    async def busy(self) -> bool:
        """Whether there is enough that could be lost."""
        return len(self.confirmed) == 3 and min(self.confirmed.values()) > 5 and len(self.created) > 5

    async def change(self, path: str) -> None:
        """Two members and a module that always say the same number."""
        for number in range(1, 1_000_000):
            self.began[path] = number
            module = {"backend_id": f"bkdhr_{number}"}
            body = {"description": str(number), "metadata": str(number), "backend": module}
            await self.api.ok("PATCH", path, body)
            self.confirmed[path] = number

    async def create(self, name: str) -> None:
        for number in range(1_000_000):
            hostport = f"{name}-{number}.example.com:443"
            self.asked.add(hostport)
            edge = await self.api.ok("POST", "/edges/tls", {"hostports": [hostport], "description": hostport})
            self.created[edge["id"]] = hostport
            if self._dice.random() < 0.3:
                self.created.pop(edge["id"])
                self.asked.discard(hostport)
                await self.api.ok("DELETE", f"/edges/tls/{edge['id']}")
                self.deleted.add(edge["id"])


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_after_kill_9_every_confirmed_write_is_there_and_none_is_half(seed: int, tmp_path: Path) -> None:
    database = tmp_path / "account.sqlite"
    async with process(database) as (api, server):
        paths = [f"/edges/tcp/{(await api.ok('POST', '/edges/tcp', {}))['id']}" for _ in range(3)]
        writers = _Writers(api, seed)
        tasks = [asyncio.create_task(writers.change(path)) for path in paths]
        tasks += [asyncio.create_task(writers.create(f"w{number}")) for number in range(3)]
        await _until(writers.busy)
        await asyncio.sleep(0.07 * seed)
        server.kill()
        for task in tasks:
            with contextlib.suppress(httpx.TransportError):
                await task
    with contextlib.closing(sqlite3.connect(database)) as connection:
        assert [("ok",)] == connection.execute("PRAGMA integrity_check").fetchall()
    async with process(database) as (api, _):
        for path in paths:
            edge = await api.ok("GET", path)
            number = int(edge["description"])
            assert writers.confirmed[path] <= number <= writers.began[path]
            assert (str(number), f"bkdhr_{number}") == (edge["metadata"], edge["backend"]["backend"]["id"])
        await _judge_edges(api, writers)


async def _judge_edges(api: Api, writers: _Writers) -> None:
    found = {edge["id"]: edge for edge in await api.everything("/edges/tls", "tls_edges")}
    assert writers.created.keys() <= found.keys()
    assert set() == writers.deleted & found.keys()
    for edge in found.values():
        assert [edge["description"]] == edge["hostports"]
    # A hostport is taken exactly where an edge has it: nothing of an unfinished write is left behind.
    having = {edge["hostports"][0]: edge["id"] for edge in found.values()}
    for hostport in sorted(writers.asked):
        answer = await api.call("POST", "/edges/tls", {"hostports": [hostport]})
        if hostport in having:
            assert (409, True) == (answer.status_code, having[hostport] in answer.json()["msg"])
        else:
            assert 201 == answer.status_code, answer.text


async def test_a_server_that_is_told_to_stop_finishes_the_requests_that_it_has(tmp_path: Path) -> None:
    async with process(tmp_path / "account.sqlite", "--control", "--latency", "1s") as (api, server):
        under_way = asyncio.create_task(api.ok("POST", "/backends/weighted", {}))

        async def arrived() -> bool:
            return bool((await api.ok("GET", "/_control/requests"))["requests"])

        await _until(arrived)
        code = await asyncio.to_thread(server.stop)
        created = await under_way
    assert 0 == code
    async with process(tmp_path / "account.sqlite") as (api, _):
        assert created["id"] == (await api.ok("GET", f"/backends/weighted/{created['id']}"))["id"]
