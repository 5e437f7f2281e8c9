"""`edge-operator serve-api` as a user starts it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from edge_operator.__main__ import cli
from edge_operator.server.settings import ServerSettings
from wire.api import HEADERS, process
from wire.cited import cites

COMMAND = Path(sys.executable).with_name("edge-operator")


def _run(*options: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A start that ends by itself."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("EDGE_OPERATOR_")}
    command = [str(COMMAND), "serve-api", *(str(option) for option in options)]
    return subprocess.run(command, env={**clean, **variables}, capture_output=True, text=True, timeout=60, check=False)


@cites("Profile", "Status 429", "Paging limit")
async def test_every_option_acts(tmp_path: Path) -> None:
    options = ("--page-size", "2", "--rate-limit", "6", "--latency", "50ms", "--profile", "ngrok")
    async with process(tmp_path / "account.sqlite", *options) as (api, _):
        headers = {"Service-Version": "", "Ngrok-Version": "2"}
        for _ in range(3):
            await api.ok("POST", "/backends/weighted", {}, headers)
        began = time.monotonic()
        page = await api.ok("GET", "/backends/weighted", headers=headers)
        assert time.monotonic() - began >= 0.05
        assert 2 == len(page["backends"])
        assert page["next_page_uri"].startswith(api.base)
        statuses = [(await api.call("GET", "/api_keys", headers=headers)).status_code for _ in range(3)]
        assert [200, 200, 429] == statuses


@cites("Secrets echoed", "Registered", "Status 401", "Status 429")
async def test_what_the_assumptions_call_settings_are_options(tmp_path: Path) -> None:
    options = (
        "--echo-secrets",
        "false",
        "--unauthenticated-status",
        "403",
        "--retry-after",
        "false",
        "--rate-limit",
        "3",
    )
    registered = ("--registered-id", "bkdhr_known", "--registered-id", "ipp_known")
    async with process(tmp_path / "account.sqlite", *options, *registered) as (api, _):
        assert 403 == (await api.call("GET", "/api_keys", headers={"Authorization": "Bearer wrong"})).status_code
        target = {"monitoring": {"api_key": "k"}}
        destination = await api.ok("POST", "/event_destinations", {"target": target})
        assert destination["target"]["monitoring"]["api_key"] is None
        known = {"backend": {"backend_id": "bkdhr_known"}, "ip_restriction": {"ip_policy_ids": ["ipp_known"]}}
        await api.ok("POST", "/edges/tcp", known)
        refused = await api.call("POST", "/edges/tcp", {"backend": {"backend_id": "bkdhr_other"}})
        assert (400, True) == (refused.status_code, "bkdhr_other" in refused.json()["msg"])
        limited = await api.call("GET", "/api_keys")
        assert (429, False) == (limited.status_code, "retry-after" in limited.headers)


def test_every_setting_of_the_server_is_an_option() -> None:
    """Host and port are one: --listen."""
    fields = {option.name for option in cli.commands["serve-api"].params} - {"listen"} | {"host", "port"}
    assert fields == set(ServerSettings.model_fields)


async def test_control_is_off_unless_it_is_asked_for(tmp_path: Path) -> None:
    async with process(tmp_path / "account.sqlite") as (api, _):
        assert 404 == (await api.call("GET", "/_control/requests")).status_code


async def test_the_openapi_document_is_at_its_address(tmp_path: Path) -> None:
    async with process(tmp_path / "account.sqlite") as (api, _):
        assert "/edges/tls/{id}" in (await api.client.get("/openapi.json")).json()["paths"]


@cites("Paging links")
async def test_one_connection_serves_many_requests(tmp_path: Path) -> None:
    async with process(tmp_path / "account.sqlite") as (api, _):
        for _ in range(20):
            answer = await api.client.get("/api_keys", headers=HEADERS)
            assert (200, "HTTP/1.1") == (answer.status_code, answer.http_version)
            assert "close" != answer.headers.get("connection")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--page-size", "0"), "--page-size"),
        (("--page-size", "101"), "--page-size"),
        (("--page-size", "ten"), "--page-size"),
        (("--rate-limit", "0"), "--rate-limit"),
        (("--retry-after", "soon"), "--retry-after"),
        (("--echo-secrets", "perhaps"), "--echo-secrets"),
        (("--unauthenticated-status", "404"), "--unauthenticated-status"),
        (("--latency", "soon"), "--latency"),
        (("--listen", "nowhere"), "--listen"),
        (("--colour", "blue"), "--colour"),
    ],
)
def test_a_wrong_option_is_exit_code_2_and_named(options: tuple[str, ...], word: str) -> None:
    ended = _run(*options)
    assert (2, True) == (ended.returncode, word in ended.stderr), ended.stderr


def test_a_wrong_environment_variable_is_exit_code_2_and_named() -> None:
    ended = _run(EDGE_OPERATOR_PAGE_SIZE="0")
    assert (2, True) == (ended.returncode, "page-size" in ended.stderr), ended.stderr


@pytest.mark.parametrize("what", ["database", "profile", "address"])
async def test_what_cannot_be_used_is_exit_code_1_with_one_line(what: str, tmp_path: Path) -> None:
    (tmp_path / "no.sqlite").write_text("this is no database, and long enough to be seen as none" * 100)
    async with process(tmp_path / "account.sqlite") as (api, _):
        options: dict[str, tuple[str | Path, ...]] = {
            "database": ("--listen", "127.0.0.1:0", "--database", tmp_path / "no.sqlite"),
            "profile": ("--listen", "127.0.0.1:0", "--profile", "unheard-of"),
            "address": ("--listen", api.base.removeprefix("http://")),
        }
        ended = _run(*options[what])
    assert (1, "") == (ended.returncode, ended.stdout), ended.stderr
    assert 1 == len(ended.stderr.strip().splitlines()), ended.stderr


async def test_the_seeded_key_is_never_printed(tmp_path: Path) -> None:
    ended = _run("--page-size", "0", EDGE_OPERATOR_SEED_API_KEY="CANARY0seed0CANARY")
    assert "CANARY" not in ended.stdout + ended.stderr
