"""Requests that no client sends: each is refused in the one shape of errors, and nothing breaks."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from wire.api import HEADERS, process, serving
from wire.cited import cites

BODIES = {
    "empty": b"",
    "white space": b"  \n",
    "half an object": b'{"description": "d"',
    "an array": b"[]",
    "null": b"null",
    "a number": b"7",
    "single quotes": b"{'description': 'd'}",
    "a trailing comma": b'{"description": "d",}',
    "a comment": b'{"description": "d" /* why */}',
    "two objects": b"{}{}",
    "not a number": b'{"backends": {"bkdhr_a": NaN}}',
    "infinity": b'{"backends": {"bkdhr_a": Infinity}}',
    "a huge number": b'{"backends": {"bkdhr_a": 1e999}}',
    "a long number": b'{"backends": {"bkdhr_a": ' + b"9" * 5000 + b"}}",
    "no UTF-8": b'{"description": "\xff\xfe"}',
    "UTF-16": '{"description": "d"}'.encode("utf-16"),
    "a control character in a string": b'{"description": "a\x01b"}',
    "a byte order mark": b"\xef\xbb\xbf[]",
    "deep arrays": b"[" * 100_000,
    "deep objects": b'{"description":' * 20_000 + b"1" + b"}" * 20_000,
    "deep in a member": b'{"description":' + b"[" * 5000 + b"]" * 5000 + b"}",
    "a name twice": b'{"description": "a", "description": "b"}',
    "a large body": b'{"metadata": "' + b"x" * 20_000_000 + b'"}',
}


@cites("Error body", "Bodies")
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
async def test_a_body_that_is_no_json_object_is_refused(body: bytes) -> None:
    async with serving() as api:
        answer = await api.call("POST", "/backends/weighted", body, {"Content-Type": "application/json"})
        assert 400 == answer.status_code, answer.text
        assert len(answer.text) < 2000
        assert [] == (await api.ok("GET", "/backends/weighted"))["backends"]


@cites("Error body")
@pytest.mark.parametrize(
    "path",
    ["/%00", "/api_keys/%2e%2e", "/api_keys/%ff%fe", "/api_keys/" + "x" * 10_000, "/api_keys/{id}", "/api_keys/{}",
     "/edges/https/{}/routes/{}", "/api_keys/ ", "/" * 50, "/edges/https/x/routes/y/z/w", "/edges/https//routes/x",
     "/api_keys;v=2", "/API_KEYS"],
)  # fmt: skip
async def test_an_address_that_is_none_is_unknown(path: str) -> None:
    async with serving() as api:
        answer = await api.call("GET", api.base + path)
        assert 404 == answer.status_code, answer.text
        assert len(answer.text) < 2000


@cites("Paging parameters")
@pytest.mark.parametrize(
    "query",
    ["limit=%ff", "limit", "=5", "&", "limit=5&&", "limit=٣", "limit=1e1", "limit=+5", "limit=" + "9" * 5000, "%",
     "before_id=%00", "limit=5;before_id=x", "limit[]=5", "?limit=5"],
)  # fmt: skip
async def test_a_query_that_is_none_is_refused(query: str) -> None:
    async with serving() as api:
        answer = await api.call("GET", f"{api.base}/api_keys?{query}")
        assert 400 == answer.status_code, answer.text


@cites("Status 401")
@pytest.mark.parametrize("token", [b"\xff\xfe", b"x" * 20_000, b"a b", b"", b"%00", "schlüssel".encode()])
async def test_a_token_that_is_none_is_unknown(token: bytes) -> None:
    async with serving() as api:
        headers = {**HEADERS, "Authorization": b"Bearer " + token}
        answer = await api.client.get("/api_keys", headers=headers)  # type: ignore[arg-type] # bytes are allowed
        assert 401 == answer.status_code, answer.text


@cites("Error body")
async def test_a_message_repeats_only_a_little_of_what_was_sent() -> None:
    long = "y" * 5000
    async with serving() as api:
        for body in ({long: 1}, {"description": long}, {"backends": {long: 1}}, {"backends": {"bkdhr_a": long}}):
            answer = await api.call("POST", "/backends/weighted", body)
            assert 400 == answer.status_code
            assert len(answer.text) < 1000, answer.text[:300]


@cites("Error body")
async def test_a_message_never_repeats_a_secret() -> None:
    canary = "CANARY0secret0CANARY"
    creds = {"cloud_access_key_id": 5, "cloud_secret_access_key": canary}
    bodies: dict[str, list[dict[str, Any]]] = {
        "/event_destinations": [
            {"target": {"monitoring": {"api_key": [canary]}}},
            {
                "target": {
                    "monitoring": {"api_key": canary},
                    "data_stream": {"stream_arn": "s", "auth": {"creds": creds}},
                }
            },
            {"format": "xml", "target": {"monitoring": {"api_key": canary}}},
        ],
        "/tls_certificates": [
            {"certificate_pem": "x", "private_key_pem": canary},
            {"certificate_pem": "x", "private_key_pem": {"key": canary}},
            {"private_key_pem": f"-----BEGIN PRIVATE KEY-----\n{canary}\n-----END PRIVATE KEY-----"},
        ],
        "/api_keys": [{"token": canary}],
    }
    async with serving() as api:
        edge = await api.ok("POST", "/edges/https", {})
        oauth = {"client_id": 1, "client_secret": canary}
        bodies[f"/edges/https/{edge['id']}/routes"] = [
            {"match": "/", "oidc": {"client_secret": [canary]}},
            {"match": "/", "oauth": {"provider": {"os_vendor": oauth}}},
            {"match": "/", "webhook_verification": {"provider": "nobody", "secret": canary}},
        ]
        for path, each in bodies.items():
            for body in each:
                answer = await api.call("POST", path, body)
                assert 400 == answer.status_code, f"{path} {body}: {answer.text}"
                assert canary not in answer.text


async def test_bytes_that_are_no_http_do_not_end_the_server(tmp_path: Path) -> None:
    """Over a real socket: half a request, a wrong length, and what is no HTTP at all."""
    async with process(tmp_path / "account.sqlite") as (api, _):
        host, port = api.base.removeprefix("http://").split(":")
        auth = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
        length = "Content-Type: application/json\r\nContent-Length: 99\r\n\r\n"
        half = f"POST /api_keys HTTP/1.1\r\nHost: x\r\n{auth}{length}{{"
        for raw in (b"\x16\x03\x01\x00", b"GET\r\n\r\n", half.encode(), b"GET / HTTP/1.1\r\n" + b"a" * 100_000, b""):
            _, writer = await asyncio.open_connection(host, int(port))
            writer.write(raw)
            await writer.drain()
            writer.close()
        assert 1 == len((await api.ok("GET", "/api_keys"))["keys"])


async def test_the_openapi_document_needs_no_key() -> None:
    async with serving() as api:
        answer = await api.client.get("/openapi.json")
        assert (200, "application/json") == (answer.status_code, answer.headers["content-type"])
        assert json.loads(answer.text)["openapi"].startswith("3.")


async def test_control_exists_only_where_the_settings_say_so() -> None:
    async with serving(control=False) as api:
        for method, path in (("GET", "faults"), ("PUT", "faults"), ("GET", "requests"), ("POST", "agents")):
            answer = await api.call(method, f"/_control/{path}", {})
            assert 404 == answer.status_code, answer.text
