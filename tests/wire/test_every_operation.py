"""What holds for every operation of the document, tried on each of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from wire import account, document, shapes
from wire.api import HEADERS, serving
from wire.cited import cites
from wire.document import OPERATIONS, Operation
from wire.transcript import ABSENT

KSUID = "2abcdefghijklmnopqrstuvwxyz"
WRONG: dict[str, list[Any]] = {
    "str": [5, True, ["x"], {"x": "x"}],
    "bool": ["true", 1, []],
    "int": ["1", 1.5, True, []],
    "float": ["0.5", True, {}],
    "list": ["x", {"x": "x"}, [5], [None]],
    "map": ["x", ["x"], {"x": 5}, {"x": None}],
    "weights": ["x", ["bkdhr_a"], {"bkdhr_a": "1"}, {"bkdhr_a": None}],
    "time": [5, True, "yesterday"],
}
WITH_BODY = [operation for operation in OPERATIONS if operation.sent is not None]
WITH_ID = [operation for operation in OPERATIONS if "{" in operation.path]


def _sent(operation: Operation, ids: dict[str, str], extra: dict[str, Any] | None = None) -> Any:
    body = account.body_of(operation, ids)
    return ABSENT if body is None else _merged(body, extra or {})


def _merged(one: Any, other: Any) -> Any:
    if isinstance(one, dict) and isinstance(other, dict):
        return {**one, **{name: _merged(one.get(name), value) for name, value in other.items()}}
    return other


def _wrong_types(fields: dict[str, str]) -> Iterator[tuple[dict[str, Any], str]]:
    """Bodies with one value of a wrong type, at any depth, and the name of the member that is wrong."""
    for name, kind in fields.items():
        if kind in shapes.SENT:
            wrongs: tuple[Any, ...] = ("x", 5, [], True)
            yield from (({name: wrong}, name) for wrong in wrongs)
            if kind != "AWSAuthMutate":  # its two members exclude each other; transcripts have them
                yield from (({name: inner}, word) for inner, word in _wrong_types(shapes.SENT[kind]))
        else:
            yield from (({name: wrong}, name) for wrong in WRONG[kind])


def _has(answer: httpx.Response, status: int, word: str = "") -> bool:
    return answer.status_code == status and word in answer.json()["msg"]


@cites("Authentication 1", "Status 401")
async def test_every_operation_needs_a_key() -> None:
    async with serving() as api:
        ids = await account.one_of_each(api)
        for authorization in ("", "Bearer wrong"):
            for operation in OPERATIONS:
                path, headers = account.path_of(operation, ids), {"Authorization": authorization}
                answer = await api.call(operation.method, path, _sent(operation, ids), headers)
                assert _has(answer, 401), f"{operation} with {authorization!r}: {answer.text}"
                assert answer.headers["www-authenticate"].startswith("Bearer"), operation


@cites("Conventions 1", "Version refused")
async def test_every_operation_needs_the_version_header() -> None:
    async with serving() as api:
        ids = await account.one_of_each(api)
        for version in ("", "1"):
            for operation in OPERATIONS:
                path, headers = account.path_of(operation, ids), {"Service-Version": version}
                answer = await api.call(operation.method, path, _sent(operation, ids), headers)
                assert _has(answer, 400, "2"), f"{operation} with {version!r}: {answer.text}"


@cites("Conventions 2")
async def test_every_operation_answers_with_the_documented_status_on_one_of_each() -> None:
    async with serving() as api:
        ids = await account.one_of_each(api)
        for operation in OPERATIONS:
            if operation.method in {"GET", "PUT"} or (operation.method == "PATCH" and operation.sent):
                answer = await api.call(operation.method, account.path_of(operation, ids), _sent(operation, ids))
                assert operation.status == answer.status_code, f"{operation}: {answer.text}"


@cites("Conventions 3")
async def test_the_uri_of_every_resource_is_where_it_is_read() -> None:
    async with serving() as api:
        ids = await account.one_of_each(api)
        for operation in OPERATIONS:
            if operation.answer in document.PREFIXES and operation.method == "GET" and not operation.items:
                found = await api.ok("GET", account.path_of(operation, ids))
                assert found == await api.ok("GET", found["uri"]), operation


@cites("Status 404", "Prefixes")
@pytest.mark.parametrize("form", ["unknown", "other kind", "garbage"])
async def test_every_operation_answers_an_unknown_id_with_404(form: str) -> None:
    async with serving() as api:
        ids = await account.one_of_each(api)
        for operation in WITH_ID:
            shape = account.subject(operation)
            prefix = document.PREFIXES["HTTPSEdge" if "{id}" not in operation.path else shape]
            other = ids["APIKey"] if shape != "APIKey" else ids["Credential"]
            unknown = {"unknown": prefix + KSUID, "other kind": other, "garbage": "no%20id%00%2F"}[form]
            path = account.path_of(operation, ids, unknown)
            answer = await api.call(operation.method, path, _sent(operation, ids))
            assert 404 == answer.status_code, f"{operation} at {path}: {answer.text}"


@cites("Paging parameters")
async def test_every_operation_refuses_a_parameter_that_it_does_not_have() -> None:
    async with serving() as api:
        ids = await account.one_of_each(api)
        for operation in OPERATIONS:
            path = account.path_of(operation, ids) + "?colour=blue"
            answer = await api.call(operation.method, path, _sent(operation, ids))
            assert _has(answer, 400, "colour"), f"{operation}: {answer.text}"


@cites("Bodies")
async def test_every_operation_with_a_body_refuses_an_unknown_member() -> None:
    async with serving() as api:
        ids = await account.one_of_each(api)
        for operation in WITH_BODY:
            for value in (None, 5):
                body = _sent(operation, ids, {"colour": value})
                answer = await api.call(operation.method, account.path_of(operation, ids), body)
                assert _has(answer, 400, "colour"), f"{operation} with {value}: {answer.text}"


@cites("Bodies")
async def test_every_operation_with_a_body_refuses_what_is_no_object() -> None:
    garbage = (b"", b"null", b"[]", b'"x"', b"5", b"true", b"{", b'{"a"}', b"\xff\xfe", b"{'a': 1}", b"{}{}", b"{} x")
    async with serving() as api:
        ids = await account.one_of_each(api)
        for operation in WITH_BODY:
            for body in garbage:
                if body == b"" and operation.sent == {}:
                    continue  # a command's empty object may be left out
                answer = await api.call(operation.method, account.path_of(operation, ids), body)
                assert _has(answer, 400), f"{operation} with {body!r}: {answer.status_code} {answer.text}"


@cites("Body tolerated", "Bodies")
async def test_every_operation_without_a_body_takes_an_empty_object_and_nothing_else() -> None:
    async with serving() as api:
        ids = await account.one_of_each(api)
        for operation in OPERATIONS:
            if operation.sent is None:
                path = account.path_of(operation, ids)
                for body in (b'{"a": 1}', b"[1]", b"{"):
                    answer = await api.call(operation.method, path, body)
                    assert _has(answer, 400), f"{operation} with {body!r}: {answer.status_code} {answer.text}"
                if operation.method == "GET":
                    assert 200 == (await api.call("GET", path, {})).status_code, operation


@cites("Bodies")
async def test_every_member_of_every_body_refuses_another_type() -> None:
    async with serving() as api:
        ids = await account.one_of_each(api)
        tried = 0
        for operation in WITH_BODY:
            for wrong, name in _wrong_types(operation.sent or {}):
                answer = await api.call(operation.method, account.path_of(operation, ids), _sent(operation, ids, wrong))
                assert _has(answer, 400, name), f"{operation} with {wrong}: {answer.status_code} {answer.text}"
                tried += 1
        assert tried > 1000


@cites("Limits description", "Limits metadata", "Conventions 5")
async def test_every_description_and_metadata_has_its_limit_in_bytes() -> None:
    limits = {"description": document.DESCRIPTION_BYTES, "metadata": document.METADATA_BYTES}
    async with serving() as api:
        ids = await account.one_of_each(api)
        for operation in WITH_BODY:
            for name, limit in limits.items():
                if name not in (operation.sent or {}):
                    continue
                path = account.path_of(operation, ids)
                over = _sent(operation, ids, {name: "é" * (limit // 2) + "xx"})
                answer = await api.call(operation.method, path, over)
                assert _has(answer, 400, name), f"{operation} with {limit + 1} bytes of {name}: {answer.text}"
                if operation.method == "PATCH":
                    longest = {name: "é" * (limit // 2) + "x" * (limit % 2)}
                    assert longest[name] == (await api.ok("PATCH", path, longest))[name], operation


@cites("Not given")
async def test_every_member_that_may_be_left_out_may_be_null() -> None:
    async with serving() as api:
        ids = await account.one_of_each(api)
        for operation in WITH_BODY:
            least = account.body_of(operation, ids) or {}
            nulls = {name: None for name in operation.sent or {} if name not in least}
            if nulls:
                answer = await api.call(operation.method, account.path_of(operation, ids), {**least, **nulls})
                assert answer.status_code == operation.status, f"{operation} with {nulls}: {answer.text}"


@cites("Error body")
async def test_an_address_names_the_methods_that_it_takes() -> None:
    """Assumed: 405, for an address that exists."""
    async with serving() as api:
        ids = await account.one_of_each(api)
        known: dict[str, set[str]] = {}
        for operation in OPERATIONS:
            known.setdefault(account.path_of(operation, ids), set()).add(operation.method)
        for path, methods in known.items():
            for method in {"GET", "POST", "PUT", "PATCH", "DELETE"} - methods:
                answer = await api.call(method, path, {})
                assert 405 == answer.status_code, f"{method} {path}: {answer.text}"
                assert methods == {word.strip() for word in answer.headers["allow"].split(",")}, path


@cites("No CORS")
async def test_no_answer_has_cross_origin_headers() -> None:
    asked = {"Origin": "https://example.com", "Access-Control-Request-Method": "POST"}
    async with serving() as api:
        for method in ("GET", "OPTIONS"):
            answer = await api.client.request(method, "/api_keys", headers={**HEADERS, **asked})
            assert [] == [name for name in answer.headers if name.startswith("access-control-")], method
