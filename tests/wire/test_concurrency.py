"""Many callers at once, over real sockets: no update is lost, and no rule is broken between two requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from wire.api import Api, process
from wire.cited import cites

ROUNDS = 25


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    async with process(tmp_path / "account.sqlite") as (api, _):
        yield api


async def test_writers_of_different_members_do_not_undo_each_other(api: Api) -> None:
    path = f"/edges/tls/{(await api.ok('POST', '/edges/tls', {}))['id']}"
    for number in range(ROUNDS):
        await asyncio.gather(
            api.ok("PATCH", path, {"description": f"d{number}"}),
            api.ok("PATCH", path, {"metadata": f"m{number}"}),
            api.ok("PATCH", path, {"hostports": [f"h{number}.example.com:443"]}),
            api.ok("PUT", f"{path}/backend", {"backend_id": f"bkdhr_{number}"}),
            api.ok("PUT", f"{path}/ip_restriction", {"ip_policy_ids": [f"ipp_{number}"]}),
            api.ok("PATCH", path, {"mutual_tls": {"certificate_authority_ids": [f"ca_{number}"]}}),
        )
        edge = await api.ok("GET", path)
        assert (f"d{number}", f"m{number}", [f"h{number}.example.com:443"]) == (
            edge["description"],
            edge["metadata"],
            edge["hostports"],
        )
        assert f"bkdhr_{number}" == edge["backend"]["backend"]["id"]
        assert [f"ipp_{number}"] == [ref["id"] for ref in edge["ip_restriction"]["ip_policies"]]
        assert [f"ca_{number}"] == [ref["id"] for ref in edge["mutual_tls"]["certificate_authorities"]]


async def test_writers_of_different_modules_of_a_route_do_not_undo_each_other(api: Api) -> None:
    edge = await api.ok("POST", "/edges/https", {})
    body = {"match_type": "path_prefix", "match": "/"}
    path = (await api.ok("POST", f"/edges/https/{edge['id']}/routes", body))["uri"]
    for number in range(ROUNDS):
        await asyncio.gather(
            api.ok("PUT", f"{path}/request_headers", {"add": {"x-n": str(number)}}),
            api.ok("PUT", f"{path}/response_headers", {"remove": [f"x-{number}"]}),
            api.ok("PUT", f"{path}/circuit_breaker", {"rolling_window": number}),
            api.ok("PATCH", path, {"match": f"/{number}"}),
            api.ok("DELETE" if number % 2 else "PUT", f"{path}/compression", {}),
        )
        route = await api.ok("GET", path)
        assert (f"/{number}", {"x-n": str(number)}) == (route["match"], route["request_headers"]["add"])
        assert [f"x-{number}"] == route["response_headers"]["remove"]
        assert number == route["circuit_breaker"]["rolling_window"]
        assert bool(number % 2) == (route["compression"] is None)


async def test_of_many_who_ask_for_the_same_hostport_one_gets_it(api: Api) -> None:
    for number in range(ROUNDS):
        body = {"hostports": [f"h{number}.example.com:443"]}
        paths = ("/edges/tls", "/edges/tcp", "/edges/https") * 3
        answers = await asyncio.gather(*(api.call("POST", path, body) for path in paths))
        assert [201, *[409] * 8] == sorted(answer.status_code for answer in answers)
        owner = next(answer.json()["id"] for answer in answers if answer.status_code == 201)
        assert [True] * 8 == [owner in answer.json()["msg"] for answer in answers if answer.status_code == 409]


@cites("In use")
async def test_a_backend_is_either_deleted_or_used_by_another_one(api: Api) -> None:
    outcomes = set()
    for number in range(ROUNDS):
        inner = (await api.ok("POST", "/backends/weighted", {}))["id"]
        calls = [
            api.call("DELETE", f"/backends/weighted/{inner}"),
            api.call("POST", "/backends/failover", {"backends": [inner]}),
        ]
        answers = await asyncio.gather(*(calls if number % 2 else calls[::-1]))
        outcomes.add(tuple(answer.status_code for answer in (answers if number % 2 else answers[::-1])))
    assert outcomes <= {(204, 400), (409, 201)}


async def test_what_many_create_at_once_is_all_there_under_ids_of_its_own(api: Api) -> None:
    created = await asyncio.gather(*(api.ok("POST", "/backends/failover", {"description": str(n)}) for n in range(100)))
    listed = await api.everything("/backends/failover?limit=7", "backends")
    assert sorted(item["id"] for item in created) == sorted(item["id"] for item in listed)
    assert [item["id"] for item in listed] == sorted((item["id"] for item in listed), reverse=True)
    assert {str(n) for n in range(100)} == {item["description"] for item in listed}


async def test_of_many_deletes_one_deletes(api: Api) -> None:
    path = f"/backends/weighted/{(await api.ok('POST', '/backends/weighted', {}))['id']}"
    answers = await asyncio.gather(*(api.call("DELETE", path) for _ in range(10)))
    assert [204, *[404] * 9] == sorted(answer.status_code for answer in answers)


async def test_signing_many_keys_at_once_signs_each(api: Api) -> None:
    """RSA work is slow; it must neither block other callers nor mix up results."""
    kinds = [{"private_key_type": "rsa"}, {"private_key_type": "ed25519"}, {"private_key_type": "ecdsa"}] * 3
    answers = await asyncio.gather(*(api.ok("POST", "/ssh_certificate_authorities", kind) for kind in kinds))
    assert [kind["private_key_type"] for kind in kinds] == [answer["key_type"] for answer in answers]
    assert 9 == len({answer["public_key"] for answer in answers})
