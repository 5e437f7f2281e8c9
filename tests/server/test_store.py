"""What is kept: across restarts, a kill in the middle of writes, and many writers at once."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from edge_operator.server.app import create_app
from edge_operator.server.ids import Ids
from edge_operator.server.store import Claim, Store, Stored, StoreError, Transaction

from .account import KEY, Account, StillWorld, caller, settings
from .conftest import Opener

SERVER = """
import asyncio, sys
from pathlib import Path
from edge_operator.server.serve import serve
from edge_operator.server.settings import ServerSettings
sys.exit(asyncio.run(serve(ServerSettings(port=0, database=Path(sys.argv[1]), seed_api_key=sys.argv[2]))))
"""
HEADERS = {"Authorization": f"Bearer {KEY}", "Service-Version": "2"}


@contextlib.contextmanager
def _served(file: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(file), KEY], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().split(" at ")[1].split()[0]
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


async def test_everything_survives_a_restart(opened: Opener, tmp_path: Path) -> None:
    file = tmp_path / "api.db"
    first = opened(database=file)
    backend = await first.make("/backends/weighted", backends={"bkdhr_1": 1})
    edge = await first.make("/edges/https", hostports=["a:1"])
    route = await first.make(f"/edges/https/{edge['id']}/routes", match="/", backend={"backend_id": backend["id"]})
    key = await first.make("/api_keys")
    authority = await first.make("/ssh_certificate_authorities")
    first.app.close()
    second = opened(database=file)
    assert backend == await second.ask("GET", f"/backends/weighted/{backend['id']}")
    assert [route] == (await second.ask("GET", f"/edges/https/{edge['id']}"))["routes"]
    assert edge["id"] in await second.refused("POST", "/edges/tcp", {"hostports": ["a:1"]}, status=409)
    assert route["id"] in await second.refused("DELETE", f"/backends/weighted/{backend['id']}", status=409)
    assert (await caller(second.app, key=key["token"]).get("/api_keys")).status_code == 200
    assert len((await second.ask("GET", "/api_keys"))["keys"]) == 2
    body = {"ssh_certificate_authority_id": authority["id"], "public_key": authority["public_key"]}
    await second.make("/ssh_user_certificates", **body)


async def test_another_seed_is_another_key_of_the_same_admin(opened: Opener, tmp_path: Path) -> None:
    opened(database=tmp_path / "api.db")
    second = opened(database=tmp_path / "api.db", seed_api_key="second")
    keys = (await caller(second.app, key="second").get("/api_keys")).json()["keys"]
    assert len(keys) == 2
    assert len({key["owner_id"] for key in keys}) == 1


async def test_tokens_and_seeds_are_stored_as_hashes_and_the_file_is_private(opened: Opener, tmp_path: Path) -> None:
    file = tmp_path / "api.db"
    account = opened(database=file)
    tokens = [(await account.make(path))["token"] for path in ("/api_keys", "/credentials")]
    account.app.close()
    content = file.read_bytes()
    assert not [token for token in (*tokens, KEY) if token.encode() in content]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_a_file_that_is_no_database_is_said_to_be_none(tmp_path: Path) -> None:
    file = tmp_path / "api.db"
    file.write_text("not a database, certainly not one of SQLite's" * 50)
    with pytest.raises(StoreError, match=r"api\.db"):
        create_app(settings(database=file))
    with pytest.raises(StoreError, match="No such file"):
        create_app(settings(database=tmp_path / "missing" / "api.db"))
    newer = tmp_path / "newer.db"
    connection = sqlite3.connect(newer)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match="schema version 99"):
        Store(newer)


@pytest.mark.parametrize("in_memory", [True, False])
async def test_no_update_of_many_writers_is_lost(opened: Opener, tmp_path: Path, in_memory: bool) -> None:
    account = opened(database=None if in_memory else tmp_path / "api.db")
    route = "/edges/https/{}/routes".format((await account.make("/edges/https"))["id"])
    path = f"{route}/{(await account.make(route, match='/'))['id']}"
    modules = (
        "compression",
        "websocket_tcp_converter",
        "request_headers",
        "response_headers",
        "circuit_breaker",
        "oidc",
    )
    for _ in range(5):
        await asyncio.gather(
            *(account.ask("PUT", f"{path}/{name}", {"enabled": False}) for name in modules),
            account.ask("PATCH", path, {"description": "d"}),
            account.ask("PATCH", path, {"metadata": "m"}),
        )
        found = await account.ask("GET", path)
        assert (found["description"], found["metadata"]) == ("d", "m")
        assert [False] * len(modules) == [found[name]["enabled"] for name in modules]
        await asyncio.gather(*(account.ask("DELETE", f"{path}/{name}") for name in modules))
        found = await account.ask("GET", path)
        assert [None] * len(modules) == [found[name] for name in modules]


async def test_of_many_that_want_one_hostport_one_gets_it(opened: Opener, tmp_path: Path) -> None:
    account = opened(database=tmp_path / "api.db")
    responses = await asyncio.gather(
        *(
            account.client.post(f"/edges/{kind}", json={"hostports": ["a:1"]})
            for kind in ("tcp", "tls", "https")
            for _ in range(5)
        )
    )
    assert sorted(response.status_code for response in responses) == [201] + [409] * 14


async def test_two_processes_may_share_a_file(opened: Opener, tmp_path: Path) -> None:
    one, two = opened(database=tmp_path / "api.db"), opened(database=tmp_path / "api.db")
    await asyncio.gather(*(account.make("/backends/weighted") for account in (one, two) for _ in range(20)))
    found = await two.ask("GET", "/backends/weighted")
    assert len({item["id"] for item in found["backends"]}) == 40
    path = f"/backends/weighted/{found['backends'][0]['id']}"
    for number in range(20):
        changes = ({"description": f"{number}"}, {"metadata": f"{number}"})
        await asyncio.gather(*(a.ask("PATCH", path, change) for a, change in zip((one, two), changes, strict=True)))
        item = await one.ask("GET", path)
        assert (item["description"], item["metadata"]) == (f"{number}", f"{number}")


async def test_a_refused_request_leaves_nothing_behind(account: Account) -> None:
    await account.make("/edges/tcp", hostports=["a:1"])
    await account.refused("POST", "/edges/tcp", {"hostports": ["b:1", "a:1"]}, status=409)
    await account.make("/edges/tcp", hostports=["b:1"])
    assert len((await account.ask("GET", "/edges/tcp"))["tcp_edges"]) == 2


def test_what_a_transaction_raises_undoes_all_that_it_did() -> None:
    store = Store(None)

    def work(tx: Transaction) -> None:
        tx.insert(Stored("x_1", "x", {}), [Claim("scope", "value")])
        tx.set_fact("name", 1)
        raise LookupError

    with pytest.raises(LookupError):
        store.write_now(work)
    with store.read() as tx:
        assert (tx.get("x", "x_1"), tx.fact("name"), tx.claimed_by(Claim("scope", "value"))) == (None, None, None)
    store.close()


async def test_a_kill_loses_nothing_that_was_answered_and_leaves_nothing_half(tmp_path: Path) -> None:
    file = tmp_path / "api.db"
    answered: set[str] = set()
    for round_number in range(3):
        with _served(file) as (process, address):
            async with httpx.AsyncClient(base_url=address, headers=HEADERS, timeout=10) as client:

                async def write(number: int, client: httpx.AsyncClient = client, at: int = round_number) -> None:
                    with contextlib.suppress(httpx.HTTPError):
                        while True:
                            made = await client.post("/api_keys", json={"description": f"{at}.{number}"})
                            answered.add(made.json()["token"])

                writers = [asyncio.create_task(write(number)) for number in range(8)]
                await asyncio.sleep(0.5)
                process.send_signal(signal.SIGKILL)
                await asyncio.gather(*writers)
    assert len(answered) > 20
    connection = sqlite3.connect(file)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    (keys,) = connection.execute("SELECT count(*) FROM objects").fetchone()
    (tokens,) = connection.execute("SELECT count(*) FROM tokens").fetchone()
    connection.close()
    assert keys == tokens >= len(answered)
    app = create_app(settings(database=file))
    for token in answered:
        assert (await caller(app, key=token).get("/api_keys?limit=1")).status_code == 200
    app.close()


def test_ids_grow_also_when_the_clock_steps_back_or_the_server_starts_again() -> None:
    world = StillWorld()
    ids = Ids(world.value())
    made = [ids.new("x_") for _ in range(100)]
    world.pass_seconds(-3600)
    made += [ids.new("x_") for _ in range(100)]
    again = Ids(world.value(), made[-1].removeprefix("x_"))
    made += [again.new("x_") for _ in range(100)]
    world.pass_seconds(86_400)
    made += [again.new("x_") for _ in range(100)]
    assert sorted(set(made)) == made
    assert {29} == {len(identifier) for identifier in made}


def test_the_same_world_makes_the_same_account() -> None:
    def tokens() -> list[str]:
        ids = Ids(StillWorld().value())
        return [ids.token() for _ in range(3)]

    assert tokens() == tokens()
