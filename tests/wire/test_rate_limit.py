"""Assumed: a limit of requests in any 60 seconds for the account, off by default, with Retry-After by setting."""

from __future__ import annotations

from wire.api import serving
from wire.cited import cites
from wire.clock import Clock


@cites("Status 429")
async def test_the_request_over_the_limit_is_a_429_that_says_when_to_come_back() -> None:
    clock = Clock()
    async with serving(clock.world(), rate_limit=5) as api:
        for _ in range(5):
            await api.ok("GET", "/api_keys")
        clock.advance(seconds=10)
        refused = await api.call("GET", "/api_keys")
        assert 429 == refused.status_code
        assert 50 <= int(refused.headers["retry-after"]) <= 51


@cites("Status 429")
async def test_after_the_time_that_retry_after_says_the_request_passes() -> None:
    clock = Clock()
    async with serving(clock.world(), rate_limit=5) as api:
        for _ in range(5):
            await api.ok("GET", "/api_keys")
            clock.advance(seconds=1)
        wait = int((await api.call("GET", "/api_keys")).headers["retry-after"])
        clock.advance(seconds=wait - 2)
        assert 429 == (await api.call("GET", "/api_keys")).status_code
        clock.advance(seconds=2)
        assert 200 == (await api.call("GET", "/api_keys")).status_code


@cites("Status 429")
async def test_the_limit_is_of_any_60_seconds_and_not_of_each_minute() -> None:
    clock = Clock()
    passed = []
    async with serving(clock.world(), rate_limit=10) as api:
        for second in range(300):
            if (await api.call("GET", "/api_keys")).status_code == 200:
                passed.append(second)
            clock.advance(seconds=1)
    assert all(len([at for at in passed if start <= at < start + 60]) <= 10 for start in range(300))
    assert len(passed) >= 50


@cites("Status 429")
async def test_the_limit_is_the_accounts_and_not_each_keys() -> None:
    async with serving(Clock().world(), rate_limit=5) as api:
        other = await api.ok("POST", "/api_keys", {})
        for _ in range(2):
            await api.ok("GET", "/api_keys")
            await api.ok("GET", "/api_keys", headers={"Authorization": f"Bearer {other['token']}"})
        assert 429 == (await api.call("GET", "/api_keys")).status_code


@cites("Status 429")
async def test_a_refused_request_changes_nothing() -> None:
    clock = Clock()
    async with serving(clock.world(), rate_limit=2) as api:
        kept = await api.ok("POST", "/backends/weighted", {})
        await api.ok("GET", "/backends/weighted")
        assert 429 == (await api.call("DELETE", f"/backends/weighted/{kept['id']}")).status_code
        assert 429 == (await api.call("POST", "/backends/weighted", {})).status_code
        clock.advance(seconds=61)
        assert [kept["id"]] == [item["id"] for item in (await api.ok("GET", "/backends/weighted"))["backends"]]


@cites("Status 429")
async def test_by_setting_a_429_does_not_say_when_to_come_back() -> None:
    async with serving(Clock().world(), rate_limit=1, retry_after=False) as api:
        await api.ok("GET", "/api_keys")
        refused = await api.call("GET", "/api_keys")
        assert (429, False) == (refused.status_code, "retry-after" in refused.headers)


@cites("Status 429")
async def test_there_is_no_limit_by_default() -> None:
    async with serving(Clock().world()) as api:
        for _ in range(300):
            assert 200 == (await api.call("GET", "/api_keys")).status_code
