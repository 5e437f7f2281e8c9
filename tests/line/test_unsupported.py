"""What the service does not offer: a creation that may have happened all the same, and lists that cannot be had."""

from __future__ import annotations

import pytest

from doubles.rig import Rig
from doubles.scenarios import effect_of
from edge_operator.engine.operations import Missing

from .test_answers import KIND, needs_only, status
from .test_drift import vanish

LISTED = {"WeightedBackend": "/backends/weighted", "APIKey": "/api_keys", "HTTPSRoute": "/edges/https"}
"""Kinds, and where what was made of them is searched for."""


@pytest.mark.fault("501 to every creation")
async def test_a_creation_that_stays_unsupported_is_searched_for_once_and_then_said():
    async with Rig() as rig:
        await needs_only(rig)
        rig.faults(status(501, method="POST"))
        rig.sample(KIND)
        began = rig.world.elapsed
        await rig.sleep(3600)
        assert [effect_of(call).split("?")[0] for call in rig.calls] == ["POST", "GET", "POST"]
        assert rig.world.elapsed - began > 40
        assert (rig.reason(KIND), rig.remote(KIND)) == ("OperationUnsupported", [])
        assert "POST /edges/tls" in rig.message(KIND)
        rig.forget()
        for _ in range(3):
            await rig.resync(KIND)
            await rig.sleep(600)
        assert [call.split()[0] for call in rig.calls].count("POST") == 3, "one try with each resync"
        assert [said for said in rig.writes if said.endswith("status")] == []
        rig.faults()
        await rig.resync(KIND)
        await rig.settle()
        assert rig.ready(KIND)
        assert [doc["id"] for doc in rig.remote(KIND)] == [rig.id(KIND)]


async def test_what_was_made_although_it_was_called_unsupported_goes_with_its_resource():
    async with Rig() as rig:
        await needs_only(rig, "WeightedBackend")
        rig.faults(status(501, method="POST", when="after"), {"kind": "lag", "seconds": 200})
        rig.sample("WeightedBackend")
        await rig.settle()
        assert rig.reason("WeightedBackend") == "OperationUnsupported"
        assert len(rig.remote("WeightedBackend")) == 2, "a list that lags for longer than the grace"
        rig.faults()
        rig.world.elapsed += 300
        rig.delete("WeightedBackend")
        await rig.settle()
        assert not rig.exists("WeightedBackend")
        assert rig.remote("WeightedBackend") == []


@pytest.mark.fault("404, 405 or 501 to the list that a creation is searched in")
@pytest.mark.parametrize("code", [404, 405, 501])
@pytest.mark.parametrize("kind", LISTED)
async def test_a_list_that_is_not_offered_is_named_and_nothing_is_made_twice(kind, code):
    async with Rig() as rig:
        await needs_only(rig, kind)
        rig.faults(
            {"kind": "cut", "when": "after", "method": "POST", "count": 1},
            status(code, method="GET", path=f"^{LISTED[kind]}$"),
        )
        rig.sample(kind)
        await rig.settle()
        assert rig.reason(kind) == "OperationUnsupported"
        assert f"GET {LISTED[kind]}" in rig.message(kind)
        assert len(rig.calls) < 10
        assert len(rig.remote(kind)) == 1
        writes = len(rig.writes)
        rig.wake_all()
        await rig.settle()
        assert len(rig.writes) == writes
        rig.faults()
        rig.wake_all()
        await rig.settle()
        assert rig.ready(kind), rig.message(kind)
        assert [doc["id"] for doc in rig.remote(kind)] == [rig.id(kind)]


@pytest.mark.fault("404, 405 or 501 to the list that a deletion needs")
@pytest.mark.parametrize("code", [404, 405, 501])
@pytest.mark.parametrize("kind", LISTED)
async def test_a_deletion_that_needs_a_list_which_is_not_offered_says_so_and_waits(kind, code):
    async with Rig() as rig:
        await needs_only(rig, kind)
        rig.faults(
            {"kind": "cut", "when": "after", "method": "POST", "count": 1},
            status(code, method="GET", path=f"^{LISTED[kind]}$"),
        )
        rig.sample(kind)
        await rig.settle(1)
        rig.delete(kind)
        await rig.settle()
        assert rig.exists(kind)
        assert rig.reason(kind) == "OperationUnsupported"
        assert f"GET {LISTED[kind]}" in rig.message(kind)
        rig.faults()
        rig.wake_all()
        await rig.settle()
        assert not rig.exists(kind)
        assert rig.remote(kind) == []


@pytest.mark.fault("a route whose edge is gone, with a creation that is searched for")
@pytest.mark.parametrize("deleted", [False, True])
async def test_routes_of_an_edge_that_is_gone_are_gone_and_not_unsupported(deleted):
    async with Rig() as rig:
        await needs_only(rig, "HTTPSRoute")
        rig.faults({"kind": "cut", "when": "after", "method": "POST", "count": 1})
        rig.sample("HTTPSRoute")
        await rig.settle(1)
        assert rig.reason("HTTPSRoute") == "Recovering"
        rig.faults()
        await vanish(rig, "HTTPSEdge")
        if deleted:
            rig.delete("HTTPSRoute")
        await rig.settle()
        if deleted:
            assert not rig.exists("HTTPSRoute")
            return
        assert rig.reason("HTTPSRoute") == "ReferenceNotReady"
        await rig.resync("HTTPSEdge")
        await rig.settle()
        assert rig.ready("HTTPSRoute"), rig.message("HTTPSRoute")
        assert [doc["id"] for doc in rig.remote("HTTPSRoute")] == [rig.id("HTTPSRoute")]


async def test_what_is_denied_twice_is_waited_on_and_not_asked_about_at_once_again(monkeypatch):
    """Whatever raises it, and wherever."""
    async with Rig() as rig:
        await needs_only(rig)
        rig.faults({"kind": "cut", "when": "before", "method": "POST", "count": 1})
        rig.sample(KIND)
        await rig.settle(1)
        asked = []

        async def owned(*_: object) -> None:
            asked.append("list")
            raise Missing("of all things")

        monkeypatch.setattr(rig.process.remote, "owned", owned)
        await rig.sleep(120)
        assert 2 <= len(asked) < 20
        assert rig.reason(KIND) == "ServiceUnavailable"
        monkeypatch.undo()
        await rig.sleep(120)
        assert rig.ready(KIND)
