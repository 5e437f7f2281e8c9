"""Agent commands that need a clock, and what an ingress shows of its domain."""

from __future__ import annotations

from typing import Any

from wire.api import Api, serving
from wire.cited import cites
from wire.clock import Clock


async def _only_session(api: Api) -> dict[str, Any]:
    session: dict[str, Any]
    (session,) = (await api.ok("GET", "/tunnel_sessions"))["tunnel_sessions"]
    return session


async def _updated(api: Api, **agent: Any) -> dict[str, Any]:
    """An agent that was told to update itself."""
    session: dict[str, Any] = await api.ok("POST", "/_control/agents", {"agent_version": "3.1.0", **agent})
    await api.ok("POST", f"/tunnel_sessions/{session['id']}/update", {})
    return session


@cites("Command 4", "Limits wait", "Command 3", "Version 2")
async def test_an_update_is_used_by_a_restart_ten_seconds_later() -> None:
    clock = Clock()
    async with serving(clock.world()) as api:
        session = await _updated(api, releases=["3.1.9", "3.10.0", "3.2.0", "4.0.0"])
        assert "3.1.0" == (await _only_session(api))["agent_version"]
        clock.advance(seconds=10)
        await api.ok("POST", f"/tunnel_sessions/{session['id']}/restart", {})
        after = await _only_session(api)
        assert "3.10.0" == after["agent_version"]
        assert session["id"] != after["id"]
        assert session["credential"] == after["credential"]


@cites("Command 4", "Limits wait")
async def test_a_restart_sooner_than_ten_seconds_after_an_update_runs_the_old_code() -> None:
    """Assumed: the document says that the caller should wait, and not what happens otherwise."""
    clock = Clock()
    async with serving(clock.world()) as api:
        session = await _updated(api, releases=["3.2.0"])
        clock.advance(seconds=9)
        await api.ok("POST", f"/tunnel_sessions/{session['id']}/restart", {})
        assert "3.1.0" == (await _only_session(api))["agent_version"]


@cites("Command 5 updated", "Command 5 no update")
async def test_after_update_and_restart_there_is_no_further_update() -> None:
    clock = Clock()
    async with serving(clock.world()) as api:
        session = await _updated(api, releases=["3.2.0"])
        clock.advance(seconds=11)
        await api.ok("POST", f"/tunnel_sessions/{session['id']}/restart", {})
        answer = await api.call("POST", f"/tunnel_sessions/{(await _only_session(api))['id']}/update", {})
        assert 400 == answer.status_code, answer.text


@cites("Command 3", "Command 5 no update")
async def test_an_agent_never_crosses_a_major_version() -> None:
    async with serving() as api:
        session = await api.ok("POST", "/_control/agents", {"agent_version": "3.2.0", "releases": ["4.0.0", "3.1.0"]})
        answer = await api.call("POST", f"/tunnel_sessions/{session['id']}/update", {})
        assert (400, "3.2.0") == (answer.status_code, (await _only_session(api))["agent_version"])


@cites("Command 1")
async def test_an_agent_that_refuses_to_restart_stays_online_under_its_id() -> None:
    async with serving() as api:
        for os in ("windows", "Windows Server"):
            session = await api.ok("POST", "/_control/agents", {"os": os})
            answer = await api.call("POST", f"/tunnel_sessions/{session['id']}/restart", {})
            assert 400 == answer.status_code
            assert session == await api.ok("GET", f"/tunnel_sessions/{session['id']}")


@cites("Command 2")
async def test_an_agent_that_is_stopped_does_not_come_back() -> None:
    clock = Clock()
    async with serving(clock.world()) as api:
        session = await api.ok("POST", "/_control/agents", {})
        await api.ok("POST", f"/tunnel_sessions/{session['id']}/stop", {})
        clock.advance(seconds=3600)
        assert [] == (await api.ok("GET", "/tunnel_sessions"))["tunnel_sessions"]


@cites("Command 5 updating")
async def test_while_an_update_takes_its_time_another_one_is_refused_differently_than_afterwards() -> None:
    clock = Clock()
    codes = set()
    async with serving(clock.world()) as api:
        session = await _updated(api, releases=["3.2.0"], update_seconds=30)
        for _ in range(2):
            answer = await api.call("POST", f"/tunnel_sessions/{session['id']}/update", {})
            assert 400 == answer.status_code
            codes.add(answer.json()["error_code"])
            clock.advance(seconds=31)
    assert 2 == len(codes)


@cites("Command 5 no update", "Command 5 disabled", "Command 5 updating", "Command 5 updated", "Command 1")
async def test_each_documented_failure_of_a_command_has_a_code_of_its_own() -> None:
    async with serving() as api:
        codes = []
        for command, agent in (
            ("update", {"releases": []}),
            ("update", {"update_checks": False}),
            ("update", {"updating": True}),
            ("restart", {"os": "windows"}),
        ):
            session = await api.ok("POST", "/_control/agents", agent)
            answer = await api.call("POST", f"/tunnel_sessions/{session['id']}/{command}", {})
            codes.append(answer.json()["error_code"])
        session = await _updated(api)
        codes.append((await api.call("POST", f"/tunnel_sessions/{session['id']}/update", {})).json()["error_code"])
    assert 5 == len(set(codes)), codes


@cites("Command 1", "Sessions online")
async def test_an_agent_in_a_restart_is_not_online_until_it_is_back() -> None:
    clock = Clock()
    async with serving(clock.world()) as api:
        session = await api.ok("POST", "/_control/agents", {"reconnect_seconds": 5})
        await api.ok("POST", f"/tunnel_sessions/{session['id']}/restart", {})
        assert [] == (await api.ok("GET", "/tunnel_sessions"))["tunnel_sessions"]
        clock.advance(seconds=6)
        assert session["id"] != (await _only_session(api))["id"]


@cites("Session fields", "Authentication 3")
async def test_an_agent_starts_a_session_with_the_token_of_a_credential() -> None:
    async with serving() as api:
        credential = await api.ok("POST", "/credentials", {})
        await api.ok("POST", "/_control/agents", {"token": credential["token"]})
        assert {"id": credential["id"], "uri": credential["uri"]} == (await _only_session(api))["credential"]
        key = await api.ok("POST", "/api_keys", {})
        refused = await api.call("POST", "/_control/agents", {"token": key["token"]})
        assert 401 == refused.status_code


@cites("Ingress domains")
async def test_regional_domains_are_below_the_ingress_domain_and_it_has_name_servers() -> None:
    async with serving() as api:
        ingress = await api.ok("POST", "/agent_ingresses", {"domain": "ingress.example.com"})
        assert ingress["ns_targets"]
        assert ingress["region_domains"]
        assert all(domain.endswith(".ingress.example.com") for domain in ingress["region_domains"])
        assert all(isinstance(target, str) and "." in target for target in ingress["ns_targets"])
