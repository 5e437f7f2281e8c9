"""A proxy named by the environment, as clusters behind one have it."""

from __future__ import annotations

import asyncio

import pytest

from edge_operator.api import errors, retry
from edge_operator.api.client import Client

from .doubles import KEY, QUICK, listening

FOUND = b'HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{"id":"ak_1"}'


def client_at(url: str) -> Client:
    return Client(url, KEY, timeout=QUICK, retry=retry.NEVER)


async def answers(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(FOUND)
    await writer.drain()


async def forbids(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
    await writer.drain()


async def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with listening(answers) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        async with client_at("http://api.invalid") as client:
            assert (await client.api_keys.get("ak_1")).id == "ak_1"

    assert proxy.received[0].startswith(b"GET http://api.invalid/api_keys/ak_1 HTTP/1.1")


async def test_a_host_that_is_excepted_is_reached_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async with listening(answers) as proxy, listening(answers) as server:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        async with client_at(server.url) as client:
            await client.api_keys.get("ak_1")

    assert proxy.received == []


async def test_a_tunnel_that_the_proxy_refuses_was_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    async with listening(forbids) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        async with client_at("https://api.invalid") as client:
            with pytest.raises(errors.NotSent):
                await client.api_keys.create({})

    assert proxy.received[0].startswith(b"CONNECT api.invalid:443 ")
    assert KEY.encode() not in proxy.received[0]


async def test_a_proxy_that_hangs_up_leaves_the_outcome_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hangs_up(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        pass

    async with listening(hangs_up) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        async with client_at("http://api.invalid") as client:
            with pytest.raises(errors.OutcomeUnknown):
                await client.api_keys.create({})
