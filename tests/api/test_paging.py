from __future__ import annotations

from typing import Any

import httpx
import pytest

from edge_operator.api import access, errors, operations

from .doubles import BASE, Service, client_of, replies


def page(*ids: str, link: Any = None) -> httpx.Response:
    return replies(200, {"keys": [{"id": i} for i in ids], "uri": f"{BASE}/api_keys", "next_page_uri": link})


async def test_a_list_is_read_page_by_page_to_its_end() -> None:
    service = Service([
        page("ak_4", "ak_3", link=f"{BASE}/api_keys?before_id=ak_3&limit=2"),
        page("ak_2", link=f"{BASE}/api_keys?before_id=ak_2&limit=2"),
        page(),
    ])  # fmt: skip
    async with client_of(service) as client:
        found = [key async for key in client.api_keys.list(limit=2)]

    assert [key.id for key in found] == ["ak_4", "ak_3", "ak_2"]
    assert all(isinstance(key, access.APIKey) for key in found)
    assert service.sent == [
        "GET /api_keys?limit=2",
        "GET /api_keys?before_id=ak_3&limit=2",
        "GET /api_keys?before_id=ak_2&limit=2",
    ]


async def test_nothing_is_asked_for_that_the_document_does_not_show() -> None:
    """Assumed parameters are sent only where they are given."""
    service = Service([page("ak_1")])
    async with client_of(service) as client:
        assert [p async for p in client.api_keys.raw.pages()] == [({"id": "ak_1"},)]

    assert service.sent == ["GET /api_keys"]


async def test_pages_are_read_when_they_are_asked_for() -> None:
    service = Service([page("ak_2", link=f"{BASE}/api_keys?p=2"), page("ak_1")])
    async with client_of(service) as client:
        pages = client.api_keys.pages()
        assert service.sent == []
        assert [key.id for key in await anext(pages)] == ["ak_2"]
        assert len(service.sent) == 1


LAST = {"null": None, "absent": ..., "empty": ""}


@pytest.mark.parametrize("link", LAST.values(), ids=LAST.keys())
async def test_a_list_ends_where_there_is_no_link(link: Any) -> None:
    body = {"keys": [], "uri": "u"} | ({} if link is ... else {"next_page_uri": link})
    service = Service([replies(200, body)])
    async with client_of(service) as client:
        assert [key async for key in client.api_keys.list()] == []

    assert len(service.sent) == 1


FOREIGN = {
    "another host": "https://evil.example/api_keys",
    "a host that starts alike": "https://api.example.com.evil.example/api_keys",
    "our host as a user name": "https://api.example.com@evil.example/api_keys",
    "our host behind a backslash": "https://evil.example\\@api.example.com/api_keys",
    "another scheme": "http://api.example.com/api_keys",
    "another port": "https://api.example.com:8443/api_keys",
    "no scheme": "//evil.example/api_keys",
    "a subdomain": "https://eu.api.example.com/api_keys",
    "a user name at our host": "https://user:password@api.example.com/api_keys?p=2",
    "no web address": "file:///etc/passwd",
    "no address at all": "https://[",
    "a port that is none": "https://api.example.com:port/api_keys",
    "a way out of the path": "https://api.example.com/api_keys/%2e%2e/admin",
}


@pytest.mark.parametrize("link", FOREIGN.values(), ids=FOREIGN.keys())
@pytest.mark.fault("paging that leads to another origin")
async def test_a_link_elsewhere_is_not_followed(link: str) -> None:
    service = Service([page("ak_1", link=link), page("ak_2")])
    async with client_of(service) as client:
        keys = client.api_keys.list()
        assert (await anext(keys)).id == "ak_1"
        with pytest.raises(errors.ForeignAddress, match=r"^GET /api_keys: next_page_uri "):
            await anext(keys)

    assert service.sent == ["GET /api_keys"]


OURS = {
    "absolute": "https://api.example.com/api_keys?p=2",
    "with the port that is meant anyway": "https://api.example.com:443/api_keys?p=2",
    "in capitals": "HTTPS://API.EXAMPLE.COM/api_keys?p=2",
    "from the root": "/api_keys?p=2",
    "a query alone": "?p=2",
    "with a fragment, which no server sees": "https://api.example.com/api_keys?p=2#x",
}


@pytest.mark.parametrize("link", OURS.values(), ids=OURS.keys())
async def test_a_link_on_our_origin_is_followed(link: str) -> None:
    service = Service([page("ak_2", link=link), page("ak_1")])
    async with client_of(service) as client:
        assert [key.id async for key in client.api_keys.list()] == ["ak_2", "ak_1"]

    assert str(service.last.url) == f"{BASE}/api_keys?p=2"


@pytest.mark.parametrize("link", [f"{BASE}/v1/api_keys?p=2", f"{BASE}/api_keys?p=2", "/v1/api_keys?p=2"])
async def test_a_link_never_leads_out_of_the_base_url(link: str) -> None:
    """A gateway that takes the prefix off leaves links without it."""
    service = Service([page("ak_2", link=link), page("ak_1")])
    async with client_of(service, base_url=f"{BASE}/v1") as client:
        assert [key.id async for key in client.api_keys.list()] == ["ak_2", "ak_1"]

    assert str(service.last.url) == f"{BASE}/v1/api_keys?p=2"


async def test_a_page_that_links_to_itself_is_a_loop() -> None:
    service = Service([page("ak_1", link=f"{BASE}/api_keys")])
    async with client_of(service) as client:
        with pytest.raises(errors.PagingLoop, match="leads back to a page that was read"):
            [key async for key in client.api_keys.list()]

    assert len(service.sent) == 1


@pytest.mark.fault("paging that goes round")
async def test_pages_that_link_in_a_ring_are_a_loop() -> None:
    service = Service([
        page("ak_3", link=f"{BASE}/api_keys?p=2"),
        page("ak_2", link=f"{BASE}/api_keys?p=3"),
        page("ak_1", link=f"{BASE}/api_keys?p=2"),
    ])  # fmt: skip
    async with client_of(service) as client:
        with pytest.raises(errors.PagingLoop):
            [key async for key in client.api_keys.list()]

    assert len(service.sent) == 3


@pytest.mark.fault("paging without an end")
async def test_a_list_without_an_end_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "PAGES_LIMIT", 20)

    def always_another(request: httpx.Request) -> httpx.Response:
        number = int(request.url.params.get("p", "0")) + 1
        return page(f"ak_{number}", link=f"{BASE}/api_keys?p={number}")

    async with client_of(always_another) as client:
        with pytest.raises(errors.PagingLoop, match="more than 20 pages"):
            [key async for key in client.api_keys.list()]


INCOMPLETE = {
    "no array": {"uri": "u", "next_page_uri": None},
    "null for the array": {"keys": None, "next_page_uri": None},
    "another type": {"keys": {}, "next_page_uri": None},
    "another collection's array": {"credentials": [], "next_page_uri": None},
    "an item without an id": {"keys": [{"id": "ak_1"}, {"uri": "u"}], "next_page_uri": None},
    "an item that is no object": {"keys": ["ak_1"], "next_page_uri": None},
    "a link that is no string": {"keys": [], "next_page_uri": 7},
    "a bare array": [],
    "nothing": b"",
}


@pytest.mark.parametrize("body", INCOMPLETE.values(), ids=INCOMPLETE.keys())
@pytest.mark.parametrize("raw", [False, True], ids=["typed", "raw"])
async def test_an_incomplete_list_is_never_taken_for_a_short_one(body: Any, raw: bool) -> None:
    """Who recovers from a lost answer creates again what a list does not show."""
    async with client_of(Service([replies(200, body)])) as client:
        collection: Any = client.api_keys.raw if raw else client.api_keys
        with pytest.raises(errors.OutcomeUnknown):
            [key async for key in collection.list()]


async def test_an_error_on_a_later_page_ends_the_list() -> None:
    service = Service([page("ak_2", link=f"{BASE}/api_keys?p=2"), replies(503)])
    async with client_of(service) as client:
        with pytest.raises(errors.ServerFault):
            [key async for key in client.api_keys.list()]
