"""The process: its one line, its exit codes, its answers on a real socket."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from edge_operator.server.serve import running

from .account import KEY, settings

SERVER = """
import asyncio, sys
from edge_operator.server.serve import serve
from edge_operator.server.settings import ServerSettings
sys.exit(asyncio.run(serve(ServerSettings.model_validate_json(sys.argv[1]))))
"""
ASKER = """
import json, sys, httpx
print(httpx.post(sys.argv[1] + "/backends/weighted", headers=json.loads(sys.argv[2]), json={}).status_code)
"""
HEADERS = {"Authorization": f"Bearer {KEY}", "Service-Version": "2"}


def _start(**values: object) -> subprocess.Popen[str]:
    text = json.dumps({"port": 0, "seed_api_key": KEY, **values})
    return subprocess.Popen(
        [sys.executable, "-c", SERVER, text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("reference API ready at http://127.0.0.1:")
    return line.split(" at ")[1].split()[0]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_one_line_and_ends_well_when_told_to(number: signal.Signals) -> None:
    process = _start()
    address = _address(process)
    assert httpx.get(f"{address}/api_keys", headers=HEADERS).status_code == 200
    assert httpx.get(f"{address}/openapi.json").status_code == 200
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert (out, err, process.returncode) == ("", "", 0)


def test_a_request_under_way_is_finished_before_it_ends() -> None:
    process = _start(latency_seconds=1)
    address = _address(process)
    asker = subprocess.Popen(
        [sys.executable, "-c", ASKER, address, json.dumps(HEADERS)],
        stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    while not _connected(address):
        time.sleep(0.02)
    time.sleep(0.3)
    process.terminate()
    assert asker.communicate(timeout=20)[0].strip() == "201"
    process.communicate(timeout=20)
    assert process.returncode == 0


def _client(address: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=address, headers=HEADERS)


def _connected(address: str) -> bool:
    port = f"{int(address.rpartition(':')[2]):04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(row[1].endswith(f":{port}") and row[3] == "01" for row in rows)


def test_an_address_in_use_is_exit_code_one_and_a_line_that_says_so() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        process = _start(port=taken.getsockname()[1])
        out, err = process.communicate(timeout=20)
    assert (out, process.returncode) == ("", 1)
    assert "cannot start on 127.0.0.1:" in err
    assert "in use" in err
    assert err.count("\n") == 1


def test_an_unusable_database_or_profile_is_exit_code_one(tmp_path: Path) -> None:
    for values in ({"database": str(tmp_path)}, {"profile": "nobody"}):
        process = _start(**values)
        out, err = process.communicate(timeout=20)
        assert (out, process.returncode) == ("", 1)
        assert "cannot start" in err


async def test_a_connection_is_really_cut_before_or_after_the_change_is_kept() -> None:
    async with running(settings(port=0, control=True)) as (address, _), _client(address) as client:
        for when, expected in (("before", 0), ("after", 1)):
            fault = {"kind": "cut", "when": when, "method": "POST", "count": 1}
            await client.put("/_control/faults", json={"faults": [fault]})
            with pytest.raises(httpx.TransportError):
                await client.post("/backends/weighted", json={})
            assert expected == len((await client.get("/backends/weighted")).json()["backends"])


async def test_latency_holds_no_other_request_up() -> None:
    async with running(settings(port=0, latency_seconds=0.3)) as (address, _), _client(address) as client:
        begin = time.monotonic()
        await asyncio.gather(*(client.get("/api_keys") for _ in range(20)))
        assert 0.3 <= time.monotonic() - begin < 3


async def test_each_request_is_a_line_in_the_log_file(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    async with running(settings(port=0, request_log=log)) as (address, _), _client(address) as client:
        await client.post("/api_keys", json={"description": "canary"})
        await client.get("/nothing")
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(entry["number"], entry["method"], entry["path"], entry["status"]) for entry in entries] == [
        (1, "POST", "/api_keys", 201),
        (2, "GET", "/nothing", 404),
    ]
    assert not [word for word in ("canary", KEY) if word in log.read_text()]


async def test_a_request_that_breaks_off_is_not_carried_out() -> None:
    async with running(settings(port=0)) as (address, _):
        host, port = address.removeprefix("http://").split(":")
        _, writer = await asyncio.open_connection(host, int(port))
        head = "POST /backends/weighted HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 50\r\n"
        lines = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
        writer.write((head + lines + "\r\n{}").encode())
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        async with httpx.AsyncClient(base_url=address, headers=HEADERS) as client:
            assert (await client.get("/backends/weighted")).json()["backends"] == []
