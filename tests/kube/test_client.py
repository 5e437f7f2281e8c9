"""The client against a real HTTP server that behaves well, and badly."""

import asyncio
import logging
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from edge_operator import __version__
from edge_operator.kube import errors, paths
from edge_operator.kube.client import Options
from edge_operator.kube.transport import Call, Request, translated

from .apiserver import Answer, replies, speaking, status
from .talking import EDGES, QUICK, SECRETS, TOKEN, Naps, api_of, talking, watched


async def test_each_verb_is_sent_as_the_api_server_wants_it(tmp_path: Path) -> None:
    async with talking(tmp_path, replies((200, {"kind": "X"}))) as (api, server):
        await api.get(f"{EDGES}/web")
        await api.create(EDGES, {"a": 1})
        await api.replace(f"{EDGES}/web", {"a": 2}, subresource="status")
        await api.merge_patch(f"{EDGES}/web", {"a": None}, subresource="status")
        await api.json_patch(f"{EDGES}/web", [{"op": "remove", "path": "/a"}])
        await api.delete(f"{EDGES}/web", uid="u-1", resource_version="7", propagation="Background")
        await api.delete(f"{EDGES}/web")
    assert [(method, path, body) for method, path, _, body in server.requests] == [
        ("GET", f"{EDGES}/web", None),
        ("POST", EDGES, {"a": 1}),
        ("PUT", f"{EDGES}/web/status", {"a": 2}),
        ("PATCH", f"{EDGES}/web/status", {"a": None}),
        ("PATCH", f"{EDGES}/web", [{"op": "remove", "path": "/a"}]),
        ("DELETE", f"{EDGES}/web",
         {"preconditions": {"uid": "u-1", "resourceVersion": "7"}, "propagationPolicy": "Background"}),
        ("DELETE", f"{EDGES}/web", None),
    ]  # fmt: skip
    assert [headers["Content-Type"] for _, _, headers, _ in server.requests[3:5]] == [
        "application/merge-patch+json", "application/json-patch+json",
    ]  # fmt: skip
    for _, _, headers, _ in server.requests:
        assert headers["User-Agent"] == f"edge-operator/{__version__}"
        assert headers["Authorization"] == f"Bearer {TOKEN}"


async def test_metadata_is_asked_for_without_the_rest(tmp_path: Path) -> None:
    async with talking(tmp_path, replies((200, {"metadata": {"resourceVersion": "1"}}))) as (api, server):
        await api.get(f"{SECRETS}/x", metadata_only=True)
        await api.list(SECRETS, metadata_only=True)
    wanted = [headers["Accept"] for _, _, headers, _ in server.requests]
    assert wanted == [
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    ]


def page(version: str, token: str, *names: str) -> tuple[int, dict[str, Any]]:
    metadata = {"resourceVersion": version, **({"continue": token} if token else {})}
    return 200, {"metadata": metadata, "items": [{"metadata": {"name": name}} for name in names]}


async def test_a_list_is_read_in_pages(tmp_path: Path) -> None:
    pages = replies(page("7", "t/1", "a", "b"), page("7", "t/2", "c"), page("7", "", "d"))
    async with talking(tmp_path, pages, Options(page_size=2)) as (api, server):
        listing = await api.list(EDGES, labelSelector="a=b,c")
    assert (["a", "b", "c", "d"], "7") == ([i["metadata"]["name"] for i in listing.items], listing.resource_version)
    assert [path for _, path, _, _ in server.requests] == [
        f"{EDGES}?limit=2&labelSelector=a%3Db,c",
        f"{EDGES}?limit=2&labelSelector=a%3Db,c&continue=t/1",
        f"{EDGES}?limit=2&labelSelector=a%3Db,c&continue=t/2",
    ]


async def test_a_list_whose_continuation_expires_begins_anew_once(tmp_path: Path) -> None:
    gone = status(410, "Expired")
    async with talking(tmp_path, replies(page("7", "t", "a"), gone, page("9", "", "b"))) as (api, _):
        listing = await api.list(EDGES)
    assert ([{"metadata": {"name": "b"}}], "9") == (listing.items, listing.resource_version)
    async with talking(tmp_path, replies(gone)) as (api, server):
        with pytest.raises(errors.Gone):
            await api.list(EDGES)
    assert 2 == len(server.requests)


REFUSALS = [
    (400, "BadRequest", errors.BadRequest), (401, "Unauthorized", errors.Unauthorized),
    (403, "Forbidden", errors.Forbidden), (404, "NotFound", errors.NotFound),
    (405, "MethodNotAllowed", errors.BadRequest), (409, "Conflict", errors.Conflict),
    (409, "AlreadyExists", errors.AlreadyExists), (410, "Gone", errors.Gone), (410, "Expired", errors.Gone),
    (413, "RequestEntityTooLarge", errors.BadRequest), (415, "UnsupportedMediaType", errors.BadRequest),
    (422, "Invalid", errors.Invalid), (429, "TooManyRequests", errors.TooManyRequests),
    (500, "InternalError", errors.Unavailable), (502, "", errors.Unavailable),
    (503, "ServiceUnavailable", errors.Unavailable), (504, "Timeout", errors.Unavailable),
]  # fmt: skip


@pytest.mark.parametrize(("code", "reason", "kind"), REFUSALS)
async def test_each_refusal_has_an_error_of_its_own(
    tmp_path: Path, code: int, reason: str, kind: type[errors.KubeError]
) -> None:
    async with talking(tmp_path, replies(status(code, reason, "because")), sleep=Naps()) as (api, _):
        with pytest.raises(errors.KubeError) as raised:
            await api.merge_patch(f"{EDGES}/web", {})
    assert (kind, code, reason) == (type(raised.value), raised.value.status, raised.value.reason)
    assert f"PATCH {EDGES}/web: {code}{' ' * bool(reason)}{reason}: because" == str(raised.value)
    assert raised.value.executed is (None if code >= 500 else False)


async def test_a_terminating_namespace_is_told_from_a_lack_of_rights(tmp_path: Path) -> None:
    answer = status(403, "Forbidden", causes=[{"reason": "NamespaceTerminating", "field": "metadata.namespace"}])
    async with talking(tmp_path, replies(answer, status(403, "Forbidden"))) as (api, _):
        for expected in (True, False):
            with pytest.raises(errors.Forbidden) as raised:
                await api.create(SECRETS, {})
            assert raised.value.namespace_terminating is expected


async def test_foreign_text_is_cut_at_256_characters(tmp_path: Path) -> None:
    for body in (status(422, "Invalid", "x" * 5000), (502, "<html>" + "x" * 5000)):
        async with talking(tmp_path, replies(body)) as (api, _):
            with pytest.raises(errors.KubeError) as raised:
                await api.get(f"{EDGES}/web")
        assert len(str(raised.value).partition(": ")[2]) <= 256 + len("422 Invalid: ")


async def test_what_the_api_server_says_of_a_secrets_content_is_withheld(tmp_path: Path) -> None:
    answer = status(422, "Invalid", "Invalid value: canary-1", causes=[{"field": "data[key]", "message": "canary-1"}])
    async with talking(tmp_path, replies(answer)) as (api, _):
        with pytest.raises(errors.Invalid) as raised:
            await api.create(SECRETS, {"data": {"key": "canary-1"}})
    assert "canary" not in str(raised.value)
    assert "data[key]" in str(raised.value)


async def test_a_busy_api_server_is_asked_again_when_it_says(tmp_path: Path) -> None:
    naps = Naps()
    busy = web.Response(status=429, headers={"Retry-After": "3"})
    async with talking(tmp_path, replies(busy, busy, (200, {"kind": "X"})), sleep=naps) as (api, server):
        assert {"kind": "X"} == await api.create(EDGES, {})
    assert ([3.0, 3.0], 3) == (naps.all, len(server.requests))


@pytest.mark.parametrize(("header", "seconds"), [("0", 0.0), ("-7", 0.0), ("2.5", 2.5), ("soon", 1.0), ("", 1.0)])
async def test_a_retry_after_is_never_negative_and_never_missing(tmp_path: Path, header: str, seconds: float) -> None:
    naps = Naps()
    busy = web.Response(status=429, headers={"Retry-After": header})
    async with talking(tmp_path, replies(busy, (200, {})), sleep=naps) as (api, _):
        await api.get(EDGES)
    assert [seconds] == naps.all


@pytest.mark.parametrize(("header", "requests"), [("1", 4), ("8", 1), ("nonsense", 4)])
async def test_a_busy_api_server_is_not_asked_for_ever(tmp_path: Path, header: str, requests: int) -> None:
    """Four times in all; once only, if it asks for more than half of the time there is."""
    busy = web.Response(status=429, headers={"Retry-After": header})
    async with talking(tmp_path, replies(busy), sleep=Naps()) as (api, server):
        with pytest.raises(errors.TooManyRequests):
            await api.create(EDGES, {})
    assert requests == len(server.requests)


async def hang(request: web.Request) -> web.StreamResponse:
    await asyncio.sleep(3600)
    return web.Response()


async def hang_after_the_head(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse(headers={"Content-Type": "application/json"})
    await answer.prepare(request)
    await asyncio.sleep(3600)
    return answer


@pytest.mark.parametrize("answer", [hang, hang_after_the_head])
async def test_a_call_takes_no_longer_than_its_time_out(tmp_path: Path, answer: Answer) -> None:
    async with talking(tmp_path, answer, QUICK) as (api, _):
        with pytest.raises(errors.Unreachable, match=r"no answer in 0\.25 s") as raised:
            await api.merge_patch(f"{EDGES}/web", {})
    assert raised.value.sent


RAW = [
    (b"", "closed without an answer"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", "cut within the body"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{{{", "no JSON"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]", "no object"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n\xff\xfe", "no text"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "empty"),
    (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n{} {", "not what it says it is"),
    (b"SSH-2.0-OpenSSH_9.9\r\n", "another protocol"),
    (b"HTTP/1.1 307 Temporary Redirect\r\nContent-Length: 0\r\n\r\n", "a redirect to nowhere"),
]


@pytest.mark.parametrize("raw", [raw for raw, _ in RAW], ids=[reason for _, reason in RAW])
async def test_nothing_of_a_library_comes_out_whatever_the_answer(tmp_path: Path, raw: bytes) -> None:
    async with speaking(raw) as url, api_of(tmp_path, url, QUICK) as api:
        with pytest.raises(errors.KubeError) as raised:
            await api.create(EDGES, {})
        assert raised.value.executed is None or type(raised.value) is errors.BadRequest
        with suppress(
            errors.KubeError
        ):  # some answers are an empty watch, which is no error; nothing else may come out
            await watched(api)


UNREACHABLE = [
    ("http://127.0.0.1:1", "nobody listens"),
    ("http://no-such-host.invalid:80", "no such name"),
    ("https://127.0.0.1:1", "nobody listens, with TLS"),
]


@pytest.mark.parametrize("url", [url for url, _ in UNREACHABLE], ids=[reason for _, reason in UNREACHABLE])
async def test_a_connection_that_never_opened_has_sent_nothing(tmp_path: Path, url: str) -> None:
    async with api_of(tmp_path, url) as api:
        with pytest.raises(errors.Unreachable) as raised:
            await api.create(EDGES, {})
    assert (False, False) == (raised.value.sent, raised.value.executed)
    assert raised.value.__cause__ is not None


async def test_a_closed_client_says_so_in_our_own_words(tmp_path: Path) -> None:
    async with talking(tmp_path, replies((200, {}))) as (api, _):
        await api.get(EDGES)
        await api.close()
        with pytest.raises(errors.Unreachable):
            await api.get(EDGES)


async def test_no_more_connections_are_open_than_allowed(tmp_path: Path) -> None:
    active = most = 0

    async def count(request: web.Request) -> web.StreamResponse:
        nonlocal active, most
        active += 1
        most = max(most, active)
        await asyncio.sleep(0.01)
        active -= 1
        return web.json_response({})

    async with talking(tmp_path, count, Options(max_connections=3)) as (api, _):
        await asyncio.gather(*(api.get(EDGES) for _ in range(12)))
    assert 3 == most


async def test_every_request_is_counted_with_what_it_was_about(tmp_path: Path) -> None:
    calls: list[Call] = []
    answers = replies((200, {}), status(404, "NotFound"))
    async with talking(tmp_path, answers, on_call=calls.append) as (api, _):
        await api.merge_patch(f"{EDGES}/web", {}, subresource="status")
        with pytest.raises(errors.NotFound):
            await api.get(f"{SECRETS}/x")
    async with api_of(tmp_path, "http://127.0.0.1:1", on_call=calls.append) as api:
        with pytest.raises(errors.Unreachable):
            await api.get("/api/v1/namespaces/shop")
    assert [("PATCH", "httpsedges/status", 200), ("GET", "secrets", 404), ("GET", "namespaces", 0)] == [
        (call.method, call.about, call.status) for call in calls
    ]


def test_a_defect_of_ours_is_not_taken_for_a_closed_connection() -> None:
    with pytest.raises(RuntimeError, match="a defect"), translated(Request("GET", "/")):
        raise RuntimeError("a defect")


async def test_neither_bodies_nor_tokens_are_logged_or_in_messages(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        for answer in (replies((200, {"data": "canary-body"})), replies(status(401, "Unauthorized")), hang):
            async with talking(tmp_path, answer, QUICK) as (api, _):
                (said,) = await asyncio.gather(
                    api.create(SECRETS, {"data": {"key": "canary-body"}}), return_exceptions=True
                )
                assert isinstance(said, dict) or "canary" not in repr(said)
                assert "canary" not in repr(api.credentials)
    assert "canary" not in caplog.text


def test_paths_name_collections_objects_and_subresources() -> None:
    assert "/api/v1/namespaces/shop/secrets" == paths.secret("shop")
    assert "/api/v1/secrets" == paths.resource("", "v1", "secrets")
    assert "/apis/a.b/v1/namespaces/n/things/x/status" == paths.resource("a.b", "v1", "things", "n", "x", "status")
    assert "/apis/a.b/v1/things/x" == paths.resource("a.b", "v1", "things", name="x")


@pytest.mark.parametrize("name", ["../secrets", "a/b", "..", ".", "", " ", "a?b", "a%2fb", "ü", "-a", "a\n"])
def test_a_name_cannot_lead_out_of_its_collection(name: str) -> None:
    if name:
        with pytest.raises(ValueError, match="should be a name"):
            paths.secret("shop", name)
    with pytest.raises(ValueError, match="should be a name"):
        paths.resource("", "v1", name)


def test_what_a_path_is_about_names_no_object() -> None:
    about = {
        "/api/v1/namespaces/shop/secrets/x": "secrets",
        "/api/v1/secrets": "secrets",
        "/api/v1/namespaces/shop": "namespaces",
        "/apis/a.b/v1/namespaces/n/things/x/status": "things/status",
        "/apis/a.b/v1/things/x": "things",
        "/apis/a.b/v1/things/x/status": "things/status",
        "/version": "discovery",
        "/apis/a.b/v1": "discovery",
    }
    assert about == {path: paths.about(path) for path in about}


def test_every_error_is_drawn_in_the_tree_and_is_one_of_ours() -> None:
    drawn = errors.__doc__ or ""
    found = [e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, Exception)]
    assert len(found) > 10
    for error in found:
        assert issubclass(error, errors.KubeError)
        assert error.__name__ in drawn
