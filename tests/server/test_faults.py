"""Faults, request log and their control, in the same process; `test_serve` cuts real connections."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from typing import Any

import httpx
import pytest

from edge_operator.server.front import ConnectionCut

from .account import Account, caller
from .conftest import Opener


@pytest.fixture
def account(opened: Opener) -> Account:
    return opened(control=True)


async def _arm(account: Account, *faults: dict[str, Any]) -> None:
    await account.ask("PUT", "/_control/faults", {"faults": list(faults)})


async def _ids(account: Account, path: str = "/backends/weighted", items: str = "backends") -> list[str]:
    return [item["id"] for item in (await account.ask("GET", path))[items]]


async def test_control_exists_only_where_it_is_switched_on(opened: Opener) -> None:
    plain = opened()
    for path in ("/_control/faults", "/_control/requests", "/_control/agents"):
        await plain.refused("GET", path, status=404)
    assert "_control" not in (await plain.client.get("/openapi.json")).text


async def test_control_needs_no_key_and_no_fault_acts_on_it(account: Account) -> None:
    await _arm(account, {"kind": "status", "status": 503})
    assert (await caller(account.app, key=None, version=None).get("/_control/faults")).status_code == 200
    await account.refused("GET", "/api_keys", status=503)
    await account.ask("DELETE", "/_control/faults")
    await account.ask("GET", "/api_keys")


@pytest.mark.parametrize(
    "fault",
    [
        {},
        {"kind": "other"},
        {"kind": "status"},
        {"kind": "status", "status": 200},
        {"kind": "latency"},
        {"kind": "lag"},
        {"kind": "lag", "lists": 1, "seconds": 1.0},
        {"kind": "cut", "path": "("},
        {"kind": "cut", "probability": 0.0},
        {"kind": "cut", "unknown": 1},
    ],
)
async def test_a_malformed_fault_is_refused(account: Account, fault: dict[str, Any]) -> None:
    assert "faults[0]" in await account.refused("PUT", "/_control/faults", {"faults": [fault]})


async def test_a_fault_acts_where_it_matches_and_as_often_as_it_says(account: Account) -> None:
    await _arm(account, {"kind": "status", "status": 500, "method": "GET", "path": "^/backends", "skip": 1, "count": 2})
    statuses = [(await account.client.get("/backends/weighted")).status_code for _ in range(5)]
    assert statuses == [200, 500, 500, 200, 200]
    await account.ask("GET", "/api_keys")
    await account.make("/backends/weighted")
    assert (await account.ask("GET", "/_control/faults"))["faults"][0]["acted"] == 2


async def test_a_fault_by_chance_makes_the_same_choices_for_the_same_seed(account: Account) -> None:
    runs = []
    for seed in (7, 7, 8):
        await _arm(account, {"kind": "status", "status": 500, "probability": 0.5, "seed": seed})
        runs.append([(await account.client.get("/api_keys")).status_code for _ in range(30)])
    assert runs[0] == runs[1] != runs[2]
    assert {200, 500} == set(runs[0])


async def test_latency_holds_an_answer_back(opened: Opener) -> None:
    account = opened(control=True, latency_seconds=0.05)
    await _arm(account, {"kind": "latency", "seconds": 1.5, "method": "POST"})
    await account.ask("GET", "/api_keys")
    await account.make("/backends/weighted")
    assert account.world.slept == [0.05, 1.55]


async def test_a_429_comes_with_any_retry_after_or_without(account: Account) -> None:
    await _arm(
        account,
        {"kind": "status", "status": 429, "count": 1},
        {"kind": "status", "status": 429, "retry_after": "soon", "skip": 1, "count": 1},
        {"kind": "status", "status": 429, "retry_after_date_seconds": 30.0, "skip": 2, "count": 1},
    )
    found = [await account.client.get("/api_keys") for _ in range(3)]
    assert [response.status_code for response in found] == [429] * 3
    assert "retry-after" not in found[0].headers
    assert found[1].headers["retry-after"] == "soon"
    moment = parsedate_to_datetime(found[2].headers["retry-after"])
    assert 29 <= (moment - account.world.moment).total_seconds() <= 30
    assert found[0].json()["error_code"] == "ERR_RATE_LIMITED"


@pytest.mark.parametrize("kind", ["cut", "status"])
@pytest.mark.parametrize(("when", "expected"), [("before", 0), ("after", 1)])
async def test_an_answer_is_lost_before_or_after_the_change_is_kept(
    account: Account, kind: str, when: str, expected: int
) -> None:
    status = {"status": 502} if kind == "status" else {}
    await _arm(account, {"kind": kind, "when": when, "method": "POST", "count": 1, **status})
    if kind == "cut":
        with pytest.raises(ConnectionCut):
            await account.client.post("/backends/weighted", json={})
    else:
        await account.refused("POST", "/backends/weighted", {}, status=502)
    assert expected == len(await _ids(account))


async def test_members_of_an_answer_can_be_null(account: Account) -> None:
    await _arm(account, {"kind": "null", "members": ["id", "token"], "method": "POST", "count": 1})
    made = await account.make("/api_keys")
    assert (made["id"], made["token"]) == (None, None)
    assert "null" not in str(made)
    assert len((await account.ask("GET", "/api_keys"))["keys"]) == 2


async def test_an_answer_can_be_broken_json(account: Account) -> None:
    await _arm(account, {"kind": "garbage", "count": 1})
    with pytest.raises(ValueError, match="Unterminated"):
        (await account.client.get("/api_keys")).json()


async def test_a_list_lags_by_seconds(account: Account) -> None:
    await account.make("/backends/weighted")
    account.world.pass_seconds(10)
    new = await account.make("/backends/weighted")
    await _arm(account, {"kind": "lag", "seconds": 5.0})
    assert len(await _ids(account)) == 1
    assert new == await account.ask("GET", f"/backends/weighted/{new['id']}")
    account.world.pass_seconds(5)
    assert len(await _ids(account)) == 2


async def test_a_list_lags_by_lists_and_pages_of_one_list_count_once(account: Account) -> None:
    for _ in range(3):
        await account.make("/backends/weighted")
    await _ids(account)
    await _ids(account)
    await _arm(account, {"kind": "lag", "lists": 2})
    new = await account.make("/backends/weighted")
    for expected in (3, 3, 4):
        found: list[str] = []
        link: str | None = "/backends/weighted?limit=2"
        while link:
            page = await account.ask("GET", link)
            found += [item["id"] for item in page["backends"]]
            link = page["next_page_uri"]
        assert expected == len(found)
        assert (expected == 4) == (new["id"] in found)


async def test_routes_lag_inside_their_edge(account: Account) -> None:
    edge = await account.make("/edges/https")
    path = f"/edges/https/{edge['id']}"
    await _arm(account, {"kind": "lag", "lists": 1})
    route = await account.make(f"{path}/routes", match="/")
    assert (await account.ask("GET", path))["routes"] == []
    assert [route["id"]] == [one["id"] for one in (await account.ask("GET", path))["routes"]]


async def test_pages_can_be_made_smaller(account: Account) -> None:
    for _ in range(3):
        await account.make("/backends/weighted")
    await _arm(account, {"kind": "page_size", "size": 2})
    page = await account.ask("GET", "/backends/weighted?limit=50")
    assert len(page["backends"]) == 2
    assert page["next_page_uri"] is not None


async def test_the_request_log_says_what_was_asked_and_how_it_ended(account: Account) -> None:
    await account.make("/backends/weighted", description="canary")
    await account.refused("GET", "/nothing", status=404)
    await caller(account.app, key=None).get("/api_keys?limit=3")
    await _arm(account, {"kind": "cut", "count": 1})
    with pytest.raises(ConnectionCut):
        await account.client.delete("/api_keys/ak_1")
    log = (await account.ask("GET", "/_control/requests"))["requests"]
    seeded = log[0]["key_id"]
    assert seeded.startswith("ak_")
    assert [
        (1, "POST", "/backends/weighted", 201, seeded, None),
        (2, "GET", "/nothing", 404, seeded, None),
        (3, "GET", "/api_keys", 401, None, None),
        (4, "DELETE", "/api_keys/ak_1", None, None, "cut"),
    ] == [tuple(entry.values()) for entry in log]
    await account.ask("DELETE", "/_control/requests")
    await account.ask("GET", "/api_keys")
    assert [entry["number"] for entry in (await account.ask("GET", "/_control/requests"))["requests"]] == [5]


async def test_what_control_does_not_know_is_refused(account: Account) -> None:
    await account.refused("GET", "/_control/nothing", status=404)
    await account.refused("POST", "/_control/faults", {}, status=405)
    await account.refused("PUT", "/_control/regions", {"regions": []})
    response: httpx.Response = await account.client.put("/_control/faults", content=b"junk")
    assert response.status_code == 400
