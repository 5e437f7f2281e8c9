"""Lists and their pages. Assumed: `limit` 1..100 and `before_id`, newest first."""

from __future__ import annotations

import pytest

from .account import Account, caller
from .conftest import Opener


async def _walk(account: Account, path: str, items: str) -> list[list[str]]:
    pages = []
    link: str | None = path
    while link:
        page = await account.ask("GET", link)
        pages.append([item["id"] for item in page[items]])
        link = page["next_page_uri"]
    return pages


async def test_pages_are_newest_first_and_complete(account: Account) -> None:
    made = [(await account.make("/backends/weighted"))["id"] for _ in range(7)]
    pages = await _walk(account, "/backends/weighted?limit=3", "backends")
    assert [len(page) for page in pages] == [3, 3, 1]
    assert made[::-1] == [identifier for page in pages for identifier in page]


async def test_a_last_page_that_is_full_has_no_next(account: Account) -> None:
    for _ in range(4):
        await account.make("/backends/weighted")
    assert [len(page) for page in await _walk(account, "/backends/weighted?limit=2", "backends")] == [2, 2]


async def test_pages_hold_when_items_come_and_go_in_between(account: Account) -> None:
    made = [(await account.make("/backends/weighted"))["id"] for _ in range(6)]
    first = await account.ask("GET", "/backends/weighted?limit=2")
    await account.make("/backends/weighted")
    await account.ask("DELETE", f"/backends/weighted/{made[4]}")
    rest = await _walk(account, first["next_page_uri"], "backends")
    assert made[3::-1] == [identifier for page in rest for identifier in page]


async def test_the_next_page_is_on_the_callers_host_and_the_list_address_is_bare(account: Account) -> None:
    for _ in range(2):
        await account.make("/backends/failover")
    client = caller(account.app, base="http://elsewhere.test:81")
    page = (await client.get("/backends/failover?limit=1")).json()
    assert page["uri"] == "http://elsewhere.test:81/backends/failover"
    assert page["next_page_uri"].startswith("http://elsewhere.test:81/backends/failover?before_id=bkdfo_")
    assert page["next_page_uri"].endswith("&limit=1")


async def test_a_page_holds_at_most_a_hundred_or_what_the_setting_says(account: Account, opened: Opener) -> None:
    small = opened(page_size=3)
    for _ in range(101):
        await account.make("/backends/weighted")
        await small.make("/backends/weighted")
    assert [len(page) for page in await _walk(account, "/backends/weighted", "backends")] == [100, 1]
    assert len((await small.ask("GET", "/backends/weighted?limit=50"))["backends"]) == 3


@pytest.mark.parametrize(
    "query",
    [
        "limit=0", "limit=101", "limit=x", "limit=", "limit=-1", "limit=1.0", "limit=%2B1", "limit=1&limit=2",
        "limit=9999999999999",
        "before_id=x", "before_id=", "before_id=bkdfo_3MPPdo8Arl5BSmTtSAIFmCDDwp7", "before_id=bkdwd_short",
        "page=1", "limit", "&", "limit=1;before_id=2", "limit=%FF", "%00=1",
    ],
)  # fmt: skip
async def test_a_malformed_parameter_is_refused(account: Account, query: str) -> None:
    await account.refused("GET", f"/backends/weighted?{query}")


async def test_routes_have_no_list_of_their_own(account: Account) -> None:
    edge = await account.make("/edges/https")
    assert (await account.client.get(f"/edges/https/{edge['id']}/routes")).status_code == 405
