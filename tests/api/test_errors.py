from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import pytest

from edge_operator.api import errors, exchange
from edge_operator.api.client import Client

from .doubles import BASE, KEY, Service, client_of, refusal, replies, subclasses

STATUSES: dict[str, tuple[int, type[errors.StatusError], str]] = {
    "a redirect may hide anything": (301, errors.Redirected, "maybe"),
    "not modified is no answer either": (304, errors.Redirected, "maybe"),
    "invalid": (400, errors.InvalidRequest, "no"),
    "the key": (401, errors.AuthenticationFailed, "no"),
    "a plan that does not include it": (402, errors.InvalidRequest, "no"),
    "permission": (403, errors.PermissionDenied, "no"),
    "absent": (404, errors.NotFound, "no"),
    "no such operation": (405, errors.OperationUnsupported, "no"),
    "the service gave up waiting, perhaps for itself": (408, errors.ServerFault, "maybe"),
    "a conflict, perhaps with what this very call made": (409, errors.Conflict, "maybe"),
    "too large": (413, errors.InvalidRequest, "no"),
    "unprocessable": (422, errors.InvalidRequest, "no"),
    "too early: it may be replayed": (425, errors.ServerFault, "maybe"),
    "too many": (429, errors.RateLimited, "no"),
    "a fault": (500, errors.ServerFault, "maybe"),
    "not implemented, says something on the way": (501, errors.OperationUnsupported, "maybe"),
    "a gateway": (502, errors.ServerFault, "maybe"),
    "overloaded": (503, errors.ServerFault, "maybe"),
    "a gateway's time-out": (504, errors.ServerFault, "maybe"),
    "a status from no standard": (599, errors.ServerFault, "maybe"),
}


@pytest.mark.parametrize(("status", "kind", "created"), STATUSES.values(), ids=STATUSES.keys())
async def test_a_status_is_classified(status: int, kind: type[errors.StatusError], created: str) -> None:
    async with client_of(Service([refusal(status, "why", "ERR_1")])) as client:
        with pytest.raises(errors.StatusError) as caught:
            await client.weighted_backends.create({})

    error = caught.value
    assert type(error) is kind
    assert error.created == created
    assert (error.status, error.code, error.operation_id) == (status, "ERR_1", "op_1")
    assert (error.method, error.path) == ("POST", "/backends/weighted")


def test_every_class_of_the_tree_is_drawn_at_the_top_and_said_of_a_post() -> None:
    assert errors.__doc__ is not None
    for kind in (errors.APIError, errors.Misuse, *subclasses(errors.APIError)):
        assert kind.__name__ in errors.__doc__
        assert kind.__doc__ is not None


def test_every_status_class_stands_for_some_status() -> None:
    reached = {errors.for_status(status) for status in range(300, 600)}

    assert set(subclasses(errors.StatusError)) == reached


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 500])
async def test_an_error_that_is_not_the_services_own_leaves_a_post_unknown(status: int) -> None:
    """A page of a proxy may stand for anything that happened behind it."""
    async with client_of(Service([replies(status, b"<html>oops</html>")])) as client:
        with pytest.raises(errors.StatusError) as caught:
            await client.api_keys.create({})

    assert not caught.value.parsed
    assert caught.value.created == "maybe"
    assert "<html>" not in str(caught.value)


async def test_a_limiter_in_front_of_the_service_may_answer_in_plain_text() -> None:
    async with client_of(Service([replies(429, b"local_rate_limited", retry_after="7")])) as client:
        with pytest.raises(errors.RateLimited) as caught:
            await client.api_keys.create({})

    assert (caught.value.created, caught.value.retry_after_seconds) == ("no", 7.0)


BODIES: dict[str, tuple[Any, str, str | None, str | None]] = {
    "whole": (
        {"error_code": "ERR_7", "status_code": 400, "msg": "bad", "details": {"operation_id": "op_7"}},
        "GET /api_keys/ak_1: 400 ERR_7: bad",
        "ERR_7",
        "op_7",
    ),
    "no code": ({"status_code": 400, "msg": "bad", "details": {}}, "GET /api_keys/ak_1: 400: bad", None, None),
    "nothing": ({}, "GET /api_keys/ak_1: 400: Bad Request", None, None),
    "other types": (
        {"error_code": 7, "msg": ["bad"], "details": "op_7"},
        "GET /api_keys/ak_1: 400: Bad Request",
        None,
        None,
    ),
    "null": ({"error_code": None, "msg": None, "details": None}, "GET /api_keys/ak_1: 400: Bad Request", None, None),
    "several lines": ({"msg": "bad\r\nSet-Cookie:\tx\x00"}, "GET /api_keys/ak_1: 400: bad Set-Cookie: x", None, None),
    "an array": ([], "GET /api_keys/ak_1: 400: Bad Request", None, None),
    "no JSON": (b"\xff", "GET /api_keys/ak_1: 400: Bad Request", None, None),
    "empty": (b"", "GET /api_keys/ak_1: 400: Bad Request", None, None),
}


@pytest.mark.parametrize(("body", "text", "code", "operation"), BODIES.values(), ids=BODIES.keys())
async def test_an_error_body_is_read_as(body: Any, text: str, code: str | None, operation: str | None) -> None:
    async with client_of(Service([replies(400, body)])) as client:
        with pytest.raises(errors.InvalidRequest) as caught:
            await client.api_keys.get("ak_1")

    assert str(caught.value) == text
    assert (caught.value.code, caught.value.operation_id) == (code, operation)


async def test_long_messages_are_cut() -> None:
    async with client_of(Service([refusal(400, "x" * 5000, "E" * 5000)])) as client:
        with pytest.raises(errors.InvalidRequest) as caught:
            await client.api_keys.get("ak_1")

    assert len(caught.value.message) == 256
    assert caught.value.message.endswith("…")
    assert len(str(caught.value)) < 400


async def test_a_redirect_names_where_to_and_is_not_followed() -> None:
    service = Service([replies(307, b"", location="https://evil.example/api_keys?secret=1")])
    async with client_of(service) as client:
        with pytest.raises(errors.Redirected, match=r"leads to https://evil\.example/api_keys, which is not followed"):
            await client.api_keys.create({})

    assert service.sent == ["POST /api_keys"]


def _instance(kind: type[BaseException]) -> Exception:
    """An exception of that class, whatever its constructor wants."""
    error = kind.__new__(kind)
    error.args = ("it went wrong",)
    assert isinstance(error, Exception)
    return error


HTTPX: list[type[Exception]] = sorted(
    {kind for root in (httpx.HTTPError, httpx.InvalidURL, httpx.CookieConflict, httpx.StreamError)
     for kind in (root, *subclasses(root))},
    key=lambda kind: kind.__name__,
)  # fmt: skip
AIOHTTP: list[type[Exception]] = sorted(
    {aiohttp.ClientError, *subclasses(aiohttp.ClientError)}, key=lambda kind: kind.__name__
)
NO_CONNECTION = {"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError", "UnsupportedProtocol"}


def test_reflection_finds_every_exception_of_httpx() -> None:
    exported = {
        value
        for name in httpx.__all__
        if isinstance(value := getattr(httpx, name), type) and issubclass(value, Exception)
    }

    assert exported <= set(HTTPX)


@pytest.mark.parametrize("kind", HTTPX, ids=lambda kind: kind.__name__)
async def test_no_exception_of_httpx_leaks(kind: type[Exception]) -> None:
    original = _instance(kind)
    async with client_of(Service([original])) as client:
        with pytest.raises(errors.APIError) as caught:
            await client.api_keys.create({})

    expected = errors.NotSent if kind.__name__ in NO_CONNECTION else errors.OutcomeUnknown
    assert type(caught.value) is expected
    assert caught.value.__cause__ is original


@pytest.mark.parametrize("kind", AIOHTTP, ids=lambda kind: kind.__name__)
async def test_no_exception_of_aiohttp_leaks_however_the_transport_calls_it(kind: type[Exception]) -> None:
    """The transport says ConnectTimeout where a connection was dropped after sending, too: aiohttp's own decides."""
    original = _instance(kind)

    def called_a_connect_timeout(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectTimeout("it went wrong") from original

    async with client_of(called_a_connect_timeout) as client:
        with pytest.raises(errors.APIError) as caught:
            await client.api_keys.create({})

    surely = issubclass(kind, exchange._NO_CONNECTION_AIOHTTP)
    assert type(caught.value) is (errors.NotSent if surely else errors.OutcomeUnknown)


@pytest.mark.parametrize("original", [OSError("x"), RuntimeError("x"), ValueError("x"), EOFError(), TimeoutError()])
async def test_anything_else_that_a_transport_raises_leaves_the_outcome_unknown(original: Exception) -> None:
    async with client_of(Service([original])) as client:
        with pytest.raises(errors.OutcomeUnknown) as caught:
            await client.api_keys.create({})

    assert caught.value.__cause__ is original


UNREADABLE: dict[str, Any] = {
    "not JSON": b"{",
    "not UTF-8": b'{"id": "\xff"}',
    "no number": b'{"id": "ak_1", "x": NaN}',
    "deeper than any answer": b'{"id": "ak_1", "x": ' + b"[" * 100_000,
    "an array": [],
    "a string": "ak_1",
    "null": b"null",
    "empty": b"",
    "no id": {"uri": "x"},
    "an id of null": {"id": None},
    "an id that is a number": {"id": 7},
    "an empty id": {"id": ""},
}


@pytest.mark.parametrize("body", UNREADABLE.values(), ids=UNREADABLE.keys())
@pytest.mark.parametrize("raw", [False, True], ids=["typed", "raw"])
async def test_a_create_that_answers_without_an_id_has_an_unknown_outcome(body: Any, raw: bool) -> None:
    service = Service([replies(201, body)])
    async with client_of(service) as client:
        with pytest.raises(errors.OutcomeUnknown) as caught:
            await (client.api_keys.raw.create({}) if raw else client.api_keys.create({}))

    assert caught.value.created == "maybe"
    assert service.sent == ["POST /api_keys"]


@pytest.mark.parametrize("body", [[], "ak_1", b"null", b"{"], ids=str)
async def test_an_answer_that_is_no_object_is_unknown_to_any_request(body: Any) -> None:
    async with client_of(Service([replies(200, body)])) as client:
        with pytest.raises(errors.OutcomeUnknown, match="but the answer is not"):
            await client.request("GET", "/ip_policies")


async def test_an_answer_of_the_wrong_shape_is_named_by_place() -> None:
    async with client_of(Service([replies(201, {"id": "bkdwd_1", "backends": ["a"]})])) as client:
        with pytest.raises(errors.OutcomeUnknown, match=r"POST /backends/weighted: the answer does not fit: backends:"):
            await client.weighted_backends.create({})


async def test_a_body_that_is_no_json_is_misuse_and_not_quoted() -> None:
    service = Service([replies(201, {"id": "ak_1"})])
    async with client_of(service) as client:
        for wrong in (float("nan"), "\ud800", object(), {1, 2}):
            with pytest.raises(errors.Misuse, match=r"^POST /api_keys: the body cannot be written as JSON$"):
                await client.api_keys.create({"description": wrong})

    assert service.sent == []


async def test_a_closed_client_says_so() -> None:
    client = client_of(Service([replies(200, {"id": "ak_1"})]))
    await client.close()

    with pytest.raises(errors.Misuse, match="the client is closed"):
        await client.api_keys.get("ak_1")


def test_only_one_module_sees_the_http_libraries_exceptions() -> None:
    """`httpx.URL`, `httpx.InvalidURL` in `address` and types apart, the library is used in `exchange` alone."""
    allowed = {
        "exchange.py": None,
        "address.py": {"URL", "InvalidURL"},
        "operations.py": {"URL"},
        "caller.py": {"URL"},
        "client.py": {"AsyncBaseTransport"},
    }
    folder = Path(errors.__file__).parent
    for file in folder.glob("*.py"):
        used = {
            node.attr
            for node in ast.walk(ast.parse(file.read_text()))
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in {"httpx", "aiohttp"}
        }
        permitted = allowed.get(file.name, set())
        assert permitted is None or used <= permitted, file.name


BAD_URLS = {
    "empty": "",
    "no scheme": "api.example.com",
    "another scheme": "ftp://api.example.com",
    "no host": "https://",
    "no host but a path": "https:///api",
    "a user": "https://user@api.example.com",
    "a password": "https://user:canary-password@api.example.com",
    "a query": "https://api.example.com?key=1",
    "an empty query": "https://api.example.com?",
    "a fragment": "https://api.example.com#x",
    "letters outside ASCII": "https://bücher.example",
    "a path outside ASCII": "https://api.example.com/ä",
    "a space": "https://api.example.com/a b",
    "a line end": "https://api.example.com/\n",
    "a port too high": "https://api.example.com:65536",
    "a port of zero": "https://api.example.com:0",
    "a port that is none": "https://api.example.com:x",
    "two slashes in the path": "https://api.example.com//v1",
}


@pytest.mark.parametrize("url", BAD_URLS.values(), ids=BAD_URLS.keys())
def test_a_base_url_without_sense_is_refused_and_explained(url: str) -> None:
    with pytest.raises(
        errors.Misuse, match=r"^base URL: .*; expected something like https://api\.example\.com$"
    ) as caught:
        Client(url, KEY)

    assert "canary" not in str(caught.value)


BAD_KEYS = {
    "empty": "",
    "a line end": "canary_1\n",
    "a space": "canary 1",
    "outside ASCII": "canaryü",
    "NUL": "canary\0",
}


@pytest.mark.parametrize("key", BAD_KEYS.values(), ids=BAD_KEYS.keys())
def test_a_key_that_no_header_can_hold_is_refused_and_not_quoted(key: str) -> None:
    with pytest.raises(errors.Misuse, match=r"^api_key: ") as caught:
        Client(BASE, key)

    assert "canary" not in str(caught.value)


def test_timeouts_without_sense_are_refused() -> None:
    for wrong in (0, -1, float("inf"), float("nan")):
        with pytest.raises(errors.Misuse, match=r"timeout\.total_seconds"):
            exchange.Timeouts(total_seconds=wrong)


def test_a_repr_shows_neither_key_nor_headers() -> None:
    client = Client(f"{BASE}/v1/", KEY, profile="ngrok")

    assert repr(client) == "Client('https://api.example.com/v1', profile='ngrok')"
    assert KEY not in repr(vars(client))
    assert repr(client.tls_edges) == "<tls_edges at https://api.example.com/v1>"
    assert json.dumps(str(client))
