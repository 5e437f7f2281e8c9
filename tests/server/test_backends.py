"""Weighted and failover backends. Source: API document, WeightedBackend, FailoverBackend."""

from __future__ import annotations

import pytest

from .account import Account
from .conftest import Opener


async def test_a_weighted_backend_lives_through_its_operations(account: Account) -> None:
    made = await account.make("/backends/weighted", backends={"bkdhr_1": 0, "bkdtg_2": 10_000}, metadata="m")
    assert {
        "id": made["id"],
        "uri": f"http://api.test/backends/weighted/{made['id']}",
        "created_at": "2026-01-02T03:04:05Z",
        "description": "",
        "metadata": "m",
        "backends": {"bkdhr_1": 0, "bkdtg_2": 10_000},
    } == made
    path = f"/backends/weighted/{made['id']}"
    assert made == await account.ask("GET", path)
    assert {**made, "description": "d"} == await account.ask("PATCH", path, {"description": "d"})
    assert (await account.ask("PATCH", path, {"backends": {}}))["backends"] == {}
    await account.ask("DELETE", path)
    await account.refused("GET", path, status=404)
    await account.refused("DELETE", path, status=404)
    await account.refused("PATCH", path, {}, status=404)


async def test_the_order_of_a_failover_backend_is_kept(account: Account) -> None:
    children = ["bkdtg_3", "bkdhr_1", "bkdtg_2"]
    made = await account.make("/backends/failover", backends=children)
    assert children == made["backends"]
    assert (
        children[::-1]
        == (await account.ask("PATCH", f"/backends/failover/{made['id']}", {"backends": children[::-1]}))["backends"]
    )


@pytest.mark.parametrize(
    ("kind", "backends", "expected"),
    [
        ("weighted", {"bkdhr_1": 10_001}, "backends.bkdhr_1: 10001 is not in 0..10000"),
        ("weighted", {"bkdhr_1": -1}, "backends.bkdhr_1: -1 is not in 0..10000"),
        ("weighted", {"ipp_1": 1}, "backends.ipp_1: 'ipp_1' is not an id that starts with bkdhr_ or bkdtg_"),
        ("weighted", {"bkdhr_": 1}, "backends.bkdhr_: 'bkdhr_' is not an id"),
        ("weighted", {"bkdwd_1": 1}, "backends.bkdwd_1: 'bkdwd_1' does not exist"),
        ("failover", ["bkdhr_1", "edgtcp_1"], "backends[1]: 'edgtcp_1' is not an id"),
        ("failover", ["bkdhr_1", "bkdhr_1"], "backends[1]: 'bkdhr_1' is given twice"),
        ("failover", ["bkdhr_1", 5], "backends[1]: is a number; a string is expected"),
        ("failover", {"bkdhr_1": 1}, "backends: is an object; a list is expected"),
    ],
)
async def test_a_wrong_child_is_named(account: Account, kind: str, backends: object, expected: str) -> None:
    assert (await account.refused("POST", f"/backends/{kind}", {"backends": backends})).startswith(expected)


async def test_a_backend_inside_another_cannot_be_deleted_and_the_other_is_named(account: Account) -> None:
    inner = await account.make("/backends/weighted")
    outer = await account.make("/backends/failover", backends=[inner["id"]])
    assert outer["id"] in await account.refused("DELETE", f"/backends/weighted/{inner['id']}", status=409)
    await account.ask("PATCH", f"/backends/failover/{outer['id']}", {"backends": []})
    await account.ask("DELETE", f"/backends/weighted/{inner['id']}")


async def test_a_backend_of_an_edge_or_a_route_cannot_be_deleted(account: Account) -> None:
    backend = await account.make("/backends/weighted")
    edge = await account.make("/edges/tcp", backend={"backend_id": backend["id"]})
    assert edge["id"] in await account.refused("DELETE", f"/backends/weighted/{backend['id']}", status=409)
    await account.ask("DELETE", f"/edges/tcp/{edge['id']}/backend")
    https = await account.make("/edges/https")
    route = await account.make(f"/edges/https/{https['id']}/routes", match="/", backend={"backend_id": backend["id"]})
    assert route["id"] in await account.refused("DELETE", f"/backends/weighted/{backend['id']}", status=409)
    await account.ask("DELETE", f"/edges/https/{https['id']}")
    await account.ask("DELETE", f"/backends/weighted/{backend['id']}")


async def test_a_backend_cannot_contain_itself_at_any_depth(account: Account) -> None:
    one = await account.make("/backends/weighted")
    two = await account.make("/backends/failover", backends=[one["id"]])
    three = await account.make("/backends/weighted", backends={two["id"]: 1})
    path = f"/backends/weighted/{one['id']}"
    for child in (one["id"], two["id"], three["id"]):
        assert "contains this backend" in await account.refused("PATCH", path, {"backends": {"bkdhr_1": 1, child: 1}})
    assert "backends[0]: " in await account.refused(
        "PATCH", f"/backends/failover/{two['id']}", {"backends": [three["id"]]}
    )


async def test_ids_can_be_limited_to_registered_ones(opened: Opener) -> None:
    account = opened(registered_ids=frozenset({"bkdhr_1"}))
    await account.make("/backends/failover", backends=["bkdhr_1"])
    assert "does not exist" in await account.refused("POST", "/backends/failover", {"backends": ["bkdhr_2"]})
    await account.make("/api_keys")
