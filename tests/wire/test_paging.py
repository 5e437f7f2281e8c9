"""Lists page by page. The document does not show paging; what is asked for here is `Assumed: Paging`."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from wire import account, document
from wire.api import HEADERS, Api, serving
from wire.cited import cites

LISTS = [operation for operation in document.OPERATIONS if operation.items]


async def _backends(api: Api, count: int) -> list[str]:
    """Ids of new backends, newest first."""
    return [(await api.ok("POST", "/backends/failover", {"description": str(n)}))["id"] for n in range(count)][::-1]


@cites("Paging order", "Paging links", "Paging limit")
@pytest.mark.parametrize("limit", [1, 2, 3, 6, 7, 8, 100])
async def test_pages_of_any_size_show_everything_once_newest_first(limit: int) -> None:
    async with serving() as api:
        ids = await _backends(api, 7)
        found = await api.everything(f"/backends/failover?limit={limit}", "backends")
        assert ids == [item["id"] for item in found]


@cites("Paging links")
async def test_a_page_that_holds_the_last_item_has_no_next_page() -> None:
    async with serving() as api:
        ids = await _backends(api, 4)
        first = await api.ok("GET", "/backends/failover?limit=2")
        second = await api.ok("GET", first["next_page_uri"])
        assert [ids[:2], ids[2:]] == [[item["id"] for item in page["backends"]] for page in (first, second)]
        assert second["next_page_uri"] is None


@cites("Paging links")
async def test_a_page_links_to_its_own_collection_with_the_last_id_and_the_same_limit() -> None:
    async with serving() as api:
        ids = await _backends(api, 5)
        page = await api.ok("GET", "/backends/failover?limit=2")
        link = urlsplit(page["next_page_uri"])
        assert f"{api.base}/backends/failover" == f"{link.scheme}://{link.netloc}{link.path}"
        assert {"before_id": [ids[1]], "limit": ["2"]} == parse_qs(link.query)
        assert f"{api.base}/backends/failover" == page["uri"]


@cites("Paging links")
@pytest.mark.parametrize("host", ["api.example.com", "api.example.com:8443", "192.0.2.1:80", "[2001:db8::1]:8080"])
async def test_addresses_in_answers_are_on_the_host_that_the_caller_used(host: str) -> None:
    async with serving() as api:
        await _backends(api, 2)
        page = (await api.call("GET", "/backends/failover?limit=1", headers={"Host": host})).json()
        addresses = (page["uri"], page["next_page_uri"], page["backends"][0]["uri"])
        assert [True] * 3 == [address.startswith(f"http://{host}/") for address in addresses], addresses


@cites("Paging links")
async def test_what_a_proxy_says_of_the_host_changes_no_address() -> None:
    forwarded = {"X-Forwarded-Host": "evil.example.com", "X-Forwarded-Proto": "https", "X-Forwarded-Port": "444"}
    async with serving() as api:
        await _backends(api, 2)
        plain = await api.ok("GET", "/backends/failover?limit=1")
        headers = {**forwarded, "Forwarded": "host=evil.example.com;proto=https"}
        assert plain == await api.ok("GET", "/backends/failover?limit=1", headers=headers)


@cites("Paging links")
@pytest.mark.parametrize("host", ["evil.example.com/path", "a b", "user@host", "host:port", "http://host"])
async def test_a_host_header_that_is_no_host_is_refused(host: str) -> None:
    async with serving() as api:
        answer = await api.client.get("/api_keys", headers={**HEADERS, "Host": host})
        assert 400 == answer.status_code, answer.text


@cites("Paging order")
async def test_before_id_shows_what_is_older_even_when_that_id_is_gone() -> None:
    async with serving() as api:
        ids = await _backends(api, 5)
        await api.ok("DELETE", f"/backends/failover/{ids[1]}")
        page = await api.ok("GET", f"/backends/failover?before_id={ids[1]}")
        assert ids[2:] == [item["id"] for item in page["backends"]]


@cites("Paging order")
async def test_what_is_created_or_deleted_while_a_list_is_read_neither_hides_nor_repeats_the_rest() -> None:
    async with serving() as api:
        ids = await _backends(api, 6)
        first = await api.ok("GET", "/backends/failover?limit=2")
        await _backends(api, 3)
        await api.ok("DELETE", f"/backends/failover/{ids[0]}")
        await api.ok("DELETE", f"/backends/failover/{ids[3]}")
        rest = await api.everything(first["next_page_uri"].removeprefix(api.base), "backends")
        assert [ids[2], ids[4], ids[5]] == [item["id"] for item in rest]


@cites("Paging links")
async def test_a_collection_shows_nothing_of_another_one() -> None:
    async with serving(page_size=3) as api:
        for _ in range(4):
            await api.ok("POST", "/backends/failover", {})
            await api.ok("POST", "/backends/weighted", {})
        for kind, prefix in (("failover", "bkdfo_"), ("weighted", "bkdwd_")):
            found = await api.everything(f"/backends/{kind}", "backends")
            assert [prefix] * 4 == [item["id"][:6] for item in found]


@cites("Paging limit")
@pytest.mark.parametrize("operation", LISTS, ids=str)
async def test_every_list_is_paged(operation: document.Operation) -> None:
    """By a server with pages of three, whatever `limit` says."""
    async with serving(page_size=3) as api:
        created = await _four_of(api, operation)
        page = await api.ok("GET", operation.path)
        assert 3 == len(page[operation.items])
        assert page["next_page_uri"] is not None
        found = await api.everything(operation.path + "?limit=100", operation.items or "")
        assert created == [item["id"] for item in found][:4]


async def _four_of(api: Api, operation: document.Operation) -> list[str]:
    ids: dict[str, str] = {}
    if operation.answer in {"SSHHostCertificate", "SSHUserCertificate"}:
        ids["SSHCertificateAuthority"] = (await api.ok("POST", "/ssh_certificate_authorities", {}))["id"]
    path = "/_control/agents" if operation.answer == "TunnelSession" else operation.path
    found = []
    for _ in range(4):
        body = account.create_body(operation.answer or "", ids) if path == operation.path else {}
        found.append((await api.ok("POST", path, body))["id"])
    return found[::-1]


@cites("Ids")
async def test_ids_sort_by_time_and_never_repeat() -> None:
    async with serving() as api:
        ids = await _backends(api, 200)
        assert sorted(ids, reverse=True) == ids
        assert 200 == len(set(ids))


@cites("Paging links")
async def test_a_list_of_another_scheme_links_with_that_scheme() -> None:
    async with serving() as api:
        await _backends(api, 2)
        transport = api.client._transport
        async with httpx.AsyncClient(transport=transport, base_url="https://secure.example.com") as client:
            page = (await client.get("/backends/failover?limit=1", headers=HEADERS)).json()
        assert page["next_page_uri"].startswith("https://secure.example.com/backends/failover?")
