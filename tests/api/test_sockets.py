"""Failures on real sockets, with the engine that the client uses and with httpx's own: both must mean the same.

What decides is whether a POST may have arrived. Here it is known: the socket says what it received.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import time
from collections.abc import Callable
from typing import TypeAlias

import httpx
import pytest

from edge_operator.api import client, errors, exchange, retry

from .doubles import KEY, QUICK, Conduct, Rest, listening

Reader: TypeAlias = asyncio.StreamReader
Writer: TypeAlias = asyncio.StreamWriter
BODY = json.dumps({"id": "ak_1", "description": "x" * 2000}).encode()
WHOLE = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY

ENGINES: dict[str, Callable[[], httpx.AsyncBaseTransport | None]] = {
    "aiohttp": lambda: None,
    "httpx": lambda: httpx.AsyncHTTPTransport(),  # noqa: PLW0108 - made inside the test's loop
}
pytestmark = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES.keys())
Engine = Callable[[], httpx.AsyncBaseTransport | None]


def client_at(url: str, engine: Engine, **options: object) -> client.Client:
    options = {"timeout": QUICK, "retry": retry.NEVER, **options}
    return client.Client(url, KEY, transport=engine(), **options)  # type: ignore[arg-type] # a table of options


def says(*pieces: bytes, then_wait: float = 0) -> Conduct:
    async def conduct(_: Reader, writer: Writer) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.01)
        await asyncio.sleep(then_wait)

    return conduct


async def resets(_: Reader, writer: Writer) -> None:
    """Ends the connection with a reset instead of a farewell."""
    sock: socket.socket = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    writer.transport.abort()


async def trickles(_: Reader, writer: Writer) -> None:
    """Never silent for long, never done."""
    writer.write(WHOLE[:200])
    for _tick in range(100):
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.05)


LOST: dict[str, Conduct] = {
    "hangs up before the answer": says(),
    "resets before the answer": resets,
    "hangs up in the status line": says(b"HTTP/1.1 2"),
    "hangs up between headers": says(WHOLE[:40]),
    "hangs up after the headers": says(WHOLE[: -len(BODY)]),
    "hangs up in the body": says(WHOLE[:-10]),
    "hangs up in a chunk": says(
        b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n", b"%x\r\n" % len(BODY) + BODY[:50]
    ),
    "hangs up before the last chunk": says(
        b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n", b"%x\r\n" % len(BODY) + BODY + b"\r\n"
    ),
    "hangs up where the body has no length": says(b"HTTP/1.1 201 Created\r\n\r\n" + BODY[:50]),
    "is silent before the answer": says(then_wait=5),
    "is silent in the body": says(WHOLE[:-10], then_wait=5),
    "trickles without an end": trickles,
    "speaks another protocol": says(b"SSH-2.0-OpenSSH_9.9\r\n"),
    "answers with a header that is none": says(b"HTTP/1.1 201 Created\r\nno header\r\n\r\n"),
    "answers with two lengths": says(
        b"HTTP/1.1 201 Created\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\n{}", then_wait=5
    ),
    "answers with broken compression": says(
        b"HTTP/1.1 201 Created\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\n\r\nnot gzip!"
    ),
    "answers with half of a compressed body": says(
        b"HTTP/1.1 201 Created\r\nContent-Encoding: gzip\r\nContent-Length: 30\r\n\r\n" + gzip.compress(BODY)[:30]
    ),
}


@pytest.mark.parametrize("conduct", LOST.values(), ids=LOST.keys())
async def test_an_answer_that_is_lost_after_sending_is_unknown(conduct: Conduct, engine: Engine) -> None:
    started = time.monotonic()
    async with listening(conduct) as server, client_at(server.url, engine) as api:
        with pytest.raises(errors.OutcomeUnknown) as caught:
            await api.api_keys.create({"description": "a"})

    assert caught.value.created == "maybe"
    assert len(server.received) == 1, "a POST must arrive once and no more"
    assert time.monotonic() - started < 3
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    "conduct", [LOST["hangs up before the answer"], LOST["hangs up in the body"]], ids=["before", "in"]
)
async def test_a_lost_answer_to_a_read_is_asked_for_again(conduct: Conduct, engine: Engine) -> None:
    calls = 0

    async def once(reader: Reader, writer: Writer) -> None:
        nonlocal calls
        calls += 1
        await (conduct if calls == 1 else says(WHOLE))(reader, writer)

    policy = retry.RetryPolicy(attempts=2)
    async with listening(once) as server, client_at(server.url, engine, retry=policy, sleep=Rest()) as api:
        assert (await api.api_keys.get("ak_1")).id == "ak_1"

    assert len(server.received) == 2


async def test_a_refused_connection_was_not_sent(engine: Engine) -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        async with client_at(f"http://127.0.0.1:{port}", engine) as api:
            with pytest.raises(errors.NotSent, match=f"^POST /api_keys: no connection to 127.0.0.1:{port}: ") as caught:
                await api.api_keys.create({})

    assert caught.value.created == "no"


async def test_a_connection_that_does_not_open_in_time_was_not_sent(engine: Engine) -> None:
    """A full backlog leaves connections unanswered, as a firewall does."""
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for filler in (first, second):
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
        quick = exchange.Timeouts(connect_seconds=0.2, read_seconds=1, total_seconds=5)
        async with client_at(f"http://127.0.0.1:{full.getsockname()[1]}", engine, timeout=quick) as api:
            with pytest.raises(errors.NotSent):
                await api.api_keys.create({})


async def test_tls_that_is_not_agreed_was_not_sent(engine: Engine) -> None:
    async def no_tls(reader: Reader, writer: Writer) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(no_tls, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        async with client_at(f"https://127.0.0.1:{port}", engine) as api:
            with pytest.raises(errors.NotSent):
                await api.api_keys.create({})
    finally:
        server.close()


async def test_a_name_that_does_not_resolve_was_not_sent(engine: Engine) -> None:
    async with client_at("http://no-such-host.invalid", engine) as api:
        with pytest.raises(errors.NotSent):
            await api.api_keys.create({})


async def test_a_whole_answer_is_read_and_the_connection_used_again(engine: Engine) -> None:
    async with listening(says(WHOLE), repeat=True) as server, client_at(server.url, engine) as api:
        for _ in range(3):
            assert (await api.api_keys.create({"description": "a"})).id == "ak_1"

    assert server.connections == 1
    assert len(server.received) == 3
    head, _, body = server.received[0].partition(b"\r\n\r\n")
    assert body == b'{"description":"a"}'
    lines = {line.partition(b":")[0].lower(): line.partition(b":")[2].strip() for line in head.split(b"\r\n")[1:]}
    assert lines[b"authorization"] == f"Bearer {KEY}".encode()
    assert lines[b"service-version"] == b"2"
    assert lines[b"content-type"] == b"application/json"
    assert lines[b"user-agent"] == b"edge-operator"
    assert lines[b"accept-encoding"] == b"gzip, deflate"


async def test_a_compressed_answer_is_read(engine: Engine) -> None:
    packed = gzip.compress(BODY)
    head = b"HTTP/1.1 201 Created\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    async with listening(says(head + packed)) as server, client_at(server.url, engine) as api:
        assert (await api.api_keys.create({})).id == "ak_1"


async def test_a_connection_that_was_closed_in_the_meantime_is_not_used(engine: Engine) -> None:
    """The service hangs up after each answer without saying so; the next POST takes a new connection."""
    async with listening(says(WHOLE)) as server, client_at(server.url, engine) as api:
        for _ in range(3):
            await api.api_keys.create({})
            await server.hung_up.wait()
            server.hung_up.clear()
            await asyncio.sleep(0.05)

    assert server.connections == 3
    assert len(server.received) == 3


async def test_a_refusal_that_closes_the_connection_is_an_answer(engine: Engine) -> None:
    answer = b'{"msg":"too large"}'
    head = b"HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(answer)
    async with listening(says(head + answer)) as server, client_at(server.url, engine) as api:
        with pytest.raises(errors.InvalidRequest, match="413: too large"):
            await api.api_keys.create({"metadata": "x" * 100_000})


async def test_a_redirect_is_not_followed(engine: Engine) -> None:
    async with listening(says(WHOLE)) as other:
        moved = f"HTTP/1.1 308 Permanent Redirect\r\nLocation: {other.url}/api_keys\r\nContent-Length: 0\r\n\r\n"
        async with listening(says(moved.encode())) as server, client_at(server.url, engine) as api:
            with pytest.raises(errors.Redirected, match=r"308: leads to http://127\.0\.0\.1:"):
                await api.api_keys.create({})

    assert other.received == []


async def test_calls_at_the_same_time_do_not_mix(engine: Engine) -> None:
    async def echoes(_: Reader, writer: Writer) -> None:
        request = server.received[-1]
        number = request.split(b" ")[1].rpartition(b"_")[2]
        body = b'{"id": "ak_%s"}' % number
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()

    async with listening(echoes, repeat=True) as server, client_at(server.url, engine) as api:
        found = await asyncio.gather(*(api.api_keys.get(f"ak_{number}") for number in range(30)))

    assert [key.id for key in found] == [f"ak_{number}" for number in range(30)]
