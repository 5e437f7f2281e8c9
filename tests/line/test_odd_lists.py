"""Lists that lack what a search relies on: they are waited on, because what they leave out may be what was made."""

from __future__ import annotations

from typing import Any

import pytest

from doubles.odd import ODD, answering, named, with_member
from doubles.rig import Rig
from edge_operator.kinds import KINDS

from .test_answers import needs_only
from .test_life import made

ROUTE = "HTTPSRoute"
odd = pytest.mark.parametrize("value", ODD, ids=named)


async def searched_in(rig: Rig, kind: str, change: Any) -> None:
    """A creation whose answer is lost is searched for in lists that `change` makes odd: waited for, and found later."""
    await needs_only(rig, kind)
    rig.faults({"kind": "cut", "when": "after", "method": "POST", "count": 1})
    rig.sample(kind)
    await rig.settle(1)
    whole = "/edges/https" if kind == ROUTE else KINDS[kind].api.path
    with answering(rig, lambda call, answer: change(answer) if call == f"GET {whole}" else answer):
        await rig.settle(200)
        assert rig.reason(kind) == "ServiceUnavailable", rig.message(kind)
        assert "cannot be read" in rig.message(kind)
        assert whole in rig.message(kind)
        assert {call.split()[0] for call in rig.calls} == {"GET"}
        assert len(rig.calls) < 30
    await rig.sleep(200)
    assert rig.ready(kind), rig.message(kind)
    assert [doc["id"] for doc in rig.remote(kind)] == [rig.id(kind)]


def in_items(kind: str, name: str, value: Any) -> Any:
    """A change of a member of each item of a list."""
    items = KINDS[kind].api.items
    return lambda answer: {**answer, items: [with_member(item, name, value) for item in answer[items]]}


def in_routes(name: str, value: Any) -> Any:
    """A change of a member of each route in a list of edges."""

    def change(answer: dict[str, Any]) -> dict[str, Any]:
        items = KINDS["HTTPSEdge"].api.items
        edges = [{**e, "routes": [with_member(r, name, value) for r in e["routes"]]} for e in answer[items]]
        return {**answer, items: edges}

    return change


@pytest.mark.fault("a list without its array, or with something else there")
@odd
async def test_a_list_without_its_items_is_no_empty_one(value):
    if value == ["x"]:
        value = "x"
    items = KINDS["WeightedBackend"].api.items
    async with Rig() as rig:
        await searched_in(rig, "WeightedBackend", lambda answer: with_member(answer, items, value))


@pytest.mark.fault("items of a list that are no objects")
@pytest.mark.parametrize("value", [None, 7, "x", []])
async def test_an_item_that_is_no_object_is_not_skipped(value):
    items = KINDS["WeightedBackend"].api.items
    async with Rig() as rig:
        await searched_in(rig, "WeightedBackend", lambda answer: {**answer, items: [*answer[items], value]})


@pytest.mark.fault("items of a list without an id")
@odd
async def test_an_item_without_an_id_is_not_skipped(value):
    async with Rig() as rig:
        await searched_in(rig, "WeightedBackend", in_items("WeightedBackend", "id", value))


@pytest.mark.fault("metadata that is no text, where the owner is looked for")
@pytest.mark.parametrize("value", [7, ["x"], {"x": 1}, False])
@pytest.mark.parametrize("kind", ["WeightedBackend", ROUTE])
async def test_metadata_that_is_no_text_is_not_taken_for_that_of_others(kind, value):
    change = in_routes if kind == ROUTE else lambda *given: in_items(kind, *given)
    async with Rig() as rig:
        await searched_in(rig, kind, change("metadata", value))


@pytest.mark.fault("next_page_uri that is no text")
@pytest.mark.parametrize("value", [7, ["x"], {"x": 1}, False])
async def test_a_paging_link_that_is_no_text_is_not_the_end(value):
    async with Rig() as rig:
        await searched_in(rig, "WeightedBackend", lambda answer: {**answer, "next_page_uri": value})


@pytest.mark.fault("routes of an edge without an id or an edge_id")
@pytest.mark.parametrize("name", ["id", "edge_id"])
@odd
async def test_a_route_without_an_id_or_its_edges_is_not_skipped(name, value):
    async with Rig() as rig:
        await searched_in(rig, ROUTE, in_routes(name, value))


@pytest.mark.fault("routes of an edge that are no array")
@pytest.mark.parametrize("value", [7, "x", {"x": 1}, [None], ["x"], [7]])
async def test_routes_that_are_no_array_of_objects_are_not_none(value):
    async with Rig() as rig:
        await searched_in(rig, ROUTE, in_items("HTTPSEdge", "routes", value))


@pytest.mark.fault("pages that overlap")
async def test_an_object_that_two_pages_show_is_no_duplicate_of_itself():
    async with Rig() as rig:
        await made(rig, "WeightedBackend")
        items = KINDS["WeightedBackend"].api.items
        with answering(rig, lambda _, a: {**a, items: a[items] * 2} if "next_page_uri" in a else a):
            await rig.resync("WeightedBackend")
            rig.apply("WeightedBackend", "example", None, claim=rig.get("WeightedBackend")["metadata"]["uid"] + ".new")
            await rig.settle()
        assert [call for call in rig.calls if call.startswith("DELETE")] == []
        assert rig.ready("WeightedBackend")
        assert [doc["id"] for doc in rig.remote("WeightedBackend")] == [rig.id("WeightedBackend")]
