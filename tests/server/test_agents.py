"""Simulated agents and agent ingresses. Source: API document, TunnelSession, Agent command rules, AgentIngress."""

from __future__ import annotations

from typing import Any

import pytest

from .account import Account
from .conftest import Opener


@pytest.fixture
def account(opened: Opener) -> Account:
    return opened(control=True)


async def _online(account: Account, **agent: Any) -> dict[str, Any]:
    made: dict[str, Any] = await account.ask("POST", "/_control/agents", agent)
    return made


async def _sessions(account: Account) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await account.ask("GET", "/tunnel_sessions"))["tunnel_sessions"]
    return found


async def _command(account: Account, session: dict[str, Any], command: str, status: int = 204) -> Any:
    return await account.ask("POST", f"/tunnel_sessions/{session['id']}/{command}", {}, status)


async def test_an_agent_that_comes_online_is_a_session(account: Account) -> None:
    credential = await account.make("/credentials")
    made = await _online(account, token=credential["token"], os="darwin", metadata="m", ip="192.0.2.7", region="eu")
    assert {
        "id": made["id"],
        "uri": f"http://api.test/tunnel_sessions/{made['id']}",
        "agent_version": "3.1.0",
        "credential": {"id": credential["id"], "uri": credential["uri"]},
        "ip": "192.0.2.7",
        "metadata": "m",
        "os": "darwin",
        "region": "eu",
        "started_at": "2026-01-02T03:04:05Z",
        "transport": "service/v2",
    } == made
    assert made == await account.ask("GET", f"/tunnel_sessions/{made['id']}")
    assert [made] == await _sessions(account)


async def test_a_wrong_credential_starts_no_session(account: Account) -> None:
    key = await account.make("/api_keys")
    await account.refused("POST", "/_control/agents", {"token": key["token"]}, status=401)
    await account.refused("POST", "/_control/agents", {"credential_id": "cr_1"}, status=404)
    assert await _sessions(account) == []


async def test_stop_ends_the_session(account: Account) -> None:
    session = await _online(account)
    await _command(account, session, "stop")
    assert await _sessions(account) == []
    for command in ("stop", "restart", "update"):
        await _command(account, session, command, 404)


async def test_restart_gives_the_agent_a_new_session(account: Account) -> None:
    session = await _online(account)
    account.world.pass_seconds(5)
    await _command(account, session, "restart")
    (after,) = await _sessions(account)
    assert session["id"] != after["id"]
    ignored = ("id", "uri", "started_at")
    assert {k: v for k, v in session.items() if k not in ignored} == {
        k: v for k, v in after.items() if k not in ignored
    }
    assert after["started_at"] == "2026-01-02T03:04:10Z"


async def test_an_agent_in_a_restart_is_away_for_a_while(account: Account) -> None:
    session = await _online(account, reconnect_seconds=3)
    await _command(account, session, "restart")
    assert await _sessions(account) == []
    account.world.pass_seconds(3)
    assert session["id"] != (await _sessions(account))[0]["id"]


@pytest.mark.parametrize("name", ["windows", "Windows Server 2022"])
async def test_restart_is_refused_where_the_system_is_not_a_unix(account: Account, name: str) -> None:
    session = await _online(account, os=name)
    assert (await _command(account, session, "restart", 400))["error_code"] == "ERR_RESTART_UNSUPPORTED"
    assert [session] == await _sessions(account)
    await _command(account, session, "update")


async def test_update_takes_the_latest_of_the_same_major_version_after_ten_seconds_and_a_restart(
    account: Account,
) -> None:
    session = await _online(account, agent_version="3.1.0", releases=["3.9.1", "3.10.0", "4.0.0"])
    await _command(account, session, "update")
    assert (await _sessions(account))[0]["agent_version"] == "3.1.0"
    account.world.pass_seconds(10)
    await _command(account, session, "restart")
    (after,) = await _sessions(account)
    assert after["agent_version"] == "3.10.0"
    assert (await _command(account, after, "update", 400))["error_code"] == "ERR_UPDATE_UNAVAILABLE"


async def test_a_restart_too_soon_after_an_update_starts_the_old_version(account: Account) -> None:
    session = await _online(account)
    await _command(account, session, "update")
    account.world.pass_seconds(9.9)
    await _command(account, session, "restart")
    assert (await _sessions(account))[0]["agent_version"] == "3.1.0"


@pytest.mark.parametrize(
    ("agent", "code"),
    [
        ({"releases": ["4.0.0", "3.1.0", "3.0.9"]}, "ERR_UPDATE_UNAVAILABLE"),
        ({"update_checks": False}, "ERR_UPDATE_DISABLED"),
        ({"updating": True}, "ERR_UPDATE_IN_PROGRESS"),
    ],
)
async def test_update_fails_as_documented(account: Account, agent: dict[str, Any], code: str) -> None:
    session = await _online(account, **agent)
    error = await _command(account, session, "update", 400)
    assert code == error["error_code"]
    assert session["id"] in error["msg"]


async def test_a_second_update_is_in_progress_and_then_waits_for_the_restart(account: Account) -> None:
    session = await _online(account, update_seconds=5)
    await _command(account, session, "update")
    assert (await _command(account, session, "update", 400))["error_code"] == "ERR_UPDATE_IN_PROGRESS"
    account.world.pass_seconds(5)
    assert (await _command(account, session, "update", 400))["error_code"] == "ERR_UPDATE_PENDING_RESTART"


async def test_what_an_agent_does_next_can_be_changed(account: Account) -> None:
    session = await _online(account, updating=True)
    await account.ask("PATCH", f"/_control/agents/{session['id']}", {"updating": False})
    await _command(account, session, "update")
    await account.ask("DELETE", f"/_control/agents/{session['id']}")
    assert await _sessions(account) == []


async def test_commands_tolerate_an_empty_object_or_nothing(account: Account) -> None:
    session = await _online(account)
    path = f"/tunnel_sessions/{session['id']}/update"
    await account.refused("POST", path, {"x": 1})
    assert (await account.client.post(path)).status_code == 204


async def test_an_ingress_names_its_servers_and_regions_which_may_grow(account: Account) -> None:
    made = await account.make("/agent_ingresses", domain="connect.example.com", description="d")
    assert len(made["ns_targets"]) == 4
    assert [f"tunnel.{region}.connect.example.com" for region in ("us", "eu", "ap")] == made["region_domains"]
    await account.ask("PUT", "/_control/regions", {"regions": ["us", "eu", "ap", "sa"]})
    grown = await account.ask("GET", f"/agent_ingresses/{made['id']}")
    assert [*made["region_domains"], "tunnel.sa.connect.example.com"] == grown["region_domains"]
    assert [grown] == (await account.ask("GET", "/agent_ingresses"))["ingresses"]


@pytest.mark.parametrize(
    "domain",
    ["", "example", "*.example.com", "-a.example.com", "a b.com", "a..com", "x" * 64 + ".com", "a.com:1", None],
)
async def test_a_domain_that_is_none_is_refused(account: Account, domain: str | None) -> None:
    assert (await account.refused("POST", "/agent_ingresses", {"domain": domain})).startswith("domain: ")


async def test_a_domain_is_taken_once(account: Account) -> None:
    owner = await account.make("/agent_ingresses", domain="a.example.com")
    assert owner["id"] in await account.refused("POST", "/agent_ingresses", {"domain": "A.example.com"}, status=409)
    assert "domain: is not a member" in await account.refused(
        "PATCH", f"/agent_ingresses/{owner['id']}", {"domain": "b.com"}
    )
