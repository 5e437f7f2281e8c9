"""Repetition, the gate and the observer, as the client carries them out."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from edge_operator.api import caller, errors, exchange, retry

from .doubles import Rest, Service, client_of, refusal, replies

POLICY = retry.RetryPolicy(attempts=3, base_seconds=1, cap_seconds=8)
FOUND = replies(200, {"id": "ak_1"})


async def test_a_read_is_repeated_until_it_succeeds() -> None:
    rest = Rest()
    service = Service([httpx.ReadError("cut"), replies(503), FOUND])
    async with client_of(service, retry=POLICY, sleep=rest, jitter=lambda: 0.5) as client:
        assert (await client.api_keys.get("ak_1")).id == "ak_1"

    assert rest.seconds == [0.5, 1.0]
    assert service.sent == ["GET /api_keys/ak_1"] * 3


async def test_the_last_error_is_raised_when_attempts_end() -> None:
    service = Service([replies(503), httpx.ReadError("cut"), replies(500)])
    async with client_of(service, retry=POLICY, sleep=Rest()) as client:
        with pytest.raises(errors.ServerFault, match="500"):
            await client.api_keys.delete("ak_1")

    assert len(service.sent) == 3


@pytest.mark.parametrize(
    "answer", [httpx.ReadError("cut"), replies(500), replies(201, b"{"), replies(409), replies(408)]
)
async def test_a_post_is_sent_once_where_it_may_have_arrived(answer: httpx.Response | Exception) -> None:
    service = Service([answer])
    async with client_of(service, retry=POLICY, sleep=Rest()) as client:
        with pytest.raises(errors.APIError) as caught:
            await client.api_keys.create({})

    assert caught.value.created == "maybe"
    assert len(service.sent) == 1


async def test_a_command_is_sent_once_where_it_may_have_arrived() -> None:
    service = Service([httpx.ReadError("cut")])
    async with client_of(service, retry=POLICY, sleep=Rest()) as client:
        with pytest.raises(errors.OutcomeUnknown):
            await client.tunnel_sessions.command("ts_1", "update")

    assert len(service.sent) == 1


async def test_a_post_is_repeated_where_it_surely_made_nothing() -> None:
    rest = Rest()
    service = Service([httpx.ConnectError("refused"), refusal(429, retry_after="3"), replies(201, {"id": "ak_1"})])
    async with client_of(service, retry=POLICY, sleep=rest, jitter=lambda: 0.5) as client:
        await client.api_keys.create({})

    assert rest.seconds == [0.5, 4.0]
    assert len(service.sent) == 3


async def test_a_post_that_was_not_sent_and_then_lost_has_an_unknown_outcome() -> None:
    service = Service([httpx.ConnectError("refused"), httpx.ReadError("cut"), replies(201, {"id": "ak_1"})])
    async with client_of(service, retry=POLICY, sleep=Rest()) as client:
        with pytest.raises(errors.OutcomeUnknown):
            await client.api_keys.create({})

    assert len(service.sent) == 2


async def test_the_gate_is_awaited_before_every_attempt() -> None:
    passed: list[tuple[str, str, int]] = []
    service = Service([replies(503), replies(200, {"keys": [], "next_page_uri": "?p=2"}), replies(200, {"keys": []})])

    async def gate(method: str, path: str) -> None:
        passed.append((method, path, len(service.sent)))

    async with client_of(service, retry=POLICY, sleep=Rest(), gate=gate) as client:
        _ = [key async for key in client.api_keys.list()]

    assert passed == [("GET", "/api_keys", 0), ("GET", "/api_keys", 1), ("GET", "/api_keys", 2)]


async def test_what_the_gate_raises_ends_the_call_unchanged() -> None:
    class LeadershipLost(Exception):
        pass

    lost = LeadershipLost()
    service = Service([replies(503)])

    async def gate(method: str, path: str) -> None:
        if service.sent:
            raise lost

    async with client_of(service, retry=POLICY, sleep=Rest(), gate=gate) as client:
        with pytest.raises(LeadershipLost) as caught:
            await client.api_keys.get("ak_1")

    assert caught.value is lost
    assert len(service.sent) == 1


async def test_the_observer_is_told_of_every_attempt() -> None:
    seen: list[caller.Attempt] = []
    service = Service([replies(503), FOUND])
    async with client_of(service, retry=POLICY, sleep=Rest(), observer=seen.append) as client:
        await client.api_keys.get("ak_1")
        await client.request("GET", "/other")

    assert [(a.method, a.path, a.collection, a.number) for a in seen] == [
        ("GET", "/api_keys/ak_1", "api_keys", 1),
        ("GET", "/api_keys/ak_1", "api_keys", 2),
        ("GET", "/other", None, 1),
    ]
    assert [type(a.error) for a in seen] == [errors.ServerFault, type(None), type(None)]
    assert all(a.seconds >= 0 for a in seen)


async def test_an_attempt_that_takes_too_long_as_a_whole_is_unknown() -> None:
    async def slow(_: httpx.Request) -> httpx.Response:
        await asyncio.sleep(30)
        raise AssertionError

    quick = exchange.Timeouts(total_seconds=0.05)
    async with client_of(slow, timeout=quick) as client:  # type: ignore[arg-type] # MockTransport takes async handlers
        with pytest.raises(errors.OutcomeUnknown, match=r"^POST /api_keys: no complete answer in time$"):
            await client.api_keys.create({})


async def test_a_cancelled_call_is_cancelled() -> None:
    started = asyncio.Event()

    async def slow(_: httpx.Request) -> httpx.Response:
        started.set()
        await asyncio.sleep(30)
        raise AssertionError

    seen: list[caller.Attempt] = []
    async with client_of(slow, observer=seen.append, retry=POLICY) as client:  # type: ignore[arg-type] # as above
        task = asyncio.get_running_loop().create_task(client.api_keys.get("ak_1"))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert seen == []
