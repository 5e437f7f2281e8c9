"""The judge notices what it is there to notice."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from wire import matching, transcript
from wire.api import malformed

BASE = "http://api.test"
BACKEND: dict[str, Any] = {
    "id": "bkdfo_2abcdefghijklmnopqrstuvwxyz",
    "uri": f"{BASE}/backends/failover/bkdfo_2abcdefghijklmnopqrstuvwxyz",
    "created_at": "2026-01-02T03:04:05Z",
    "description": "d",
    "metadata": "",
    "backends": ["bkdhr_a"],
}
EXPECTED = {"description": "d", "backends": ["bkdhr_a"]}


def _differences(shape: str, expected: dict[str, Any], found: Any) -> list[str]:
    return list(matching.differences(matching.complete(shape, expected), found, BASE))


def test_an_answer_as_the_document_has_it_has_no_differences() -> None:
    assert [] == _differences("FailoverBackend", EXPECTED, BACKEND)


@pytest.mark.parametrize(
    ("change", "noticed"),
    [
        ({"id": "bkdwd_2abcdefghijklmnopqrstuvwxyz"}, "answer.id"),
        ({"id": "bkdfo_short"}, "answer.id"),
        ({"uri": f"{BASE}/backends/failover/other"}, "answer.uri"),
        ({"uri": BACKEND["uri"].replace("api.test", "other.test")}, "answer.uri"),
        ({"created_at": "2026-01-02 03:04:05"}, "answer.created_at"),
        ({"created_at": None}, "answer.created_at"),
        ({"description": "e"}, "answer.description"),
        ({"metadata": None}, "answer.metadata"),
        ({"backends": ["bkdhr_a", "bkdhr_b"]}, "answer.backends"),
        ({"backends": {"bkdhr_a": 1}}, "answer.backends"),
        ({"colour": "blue"}, "colour"),
    ],
)
def test_an_answer_that_differs_in_one_member_is_noticed(change: dict[str, Any], noticed: str) -> None:
    assert any(noticed in text for text in _differences("FailoverBackend", EXPECTED, {**BACKEND, **change}))


@pytest.mark.parametrize("missing", BACKEND)
def test_an_answer_that_lacks_a_member_is_noticed(missing: str) -> None:
    found = {name: value for name, value in BACKEND.items() if name != missing}
    assert [f"answer: has no member {missing}"] == _differences("FailoverBackend", EXPECTED, found)


def test_true_is_not_one_and_a_whole_fraction_is_no_integer() -> None:
    for expected, found in ((1, True), (True, 1), (1, 1.0), (None, False), ("", None), ("<int or null>", True)):
        assert [] != list(matching.differences(expected, found, BASE)), (expected, found)


def test_a_module_inside_an_answer_is_judged_as_a_shape_of_its_own() -> None:
    given = {"backend": {"backend": {"id": "bkdhr_a"}}}
    edge = {**{n: v for n, v in BACKEND.items() if n != "backends"}, "hostports": [], "ip_restriction": None}
    edge |= {"id": "edgtcp_2abcdefghijklmnopqrstuvwxyz", "description": ""}
    edge["uri"] = f"{BASE}/edges/tcp/{edge['id']}"
    ref = {"id": "bkdhr_a", "uri": f"{BASE}/backends/http_response/bkdhr_a"}
    assert [] == _differences("TCPEdge", given, {**edge, "backend": {"enabled": True, "backend": ref}})
    assert [] != _differences("TCPEdge", given, {**edge, "backend": {"backend": ref}})
    assert [] != _differences("TCPEdge", given, {**edge, "backend": {"enabled": False, "backend": ref}})
    assert [] != _differences("TCPEdge", given, {**edge, "backend": {"enabled": True, "backend": {**ref, "uri": ""}}})
    assert [] != _differences("TCPEdge", given, {**edge, "backend": None})


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"status_code": 400, "msg": "m", "details": {"operation_id": "op_2abcdefghijklmnopqrstuvwxyz"}}),
        (404, {"error_code": "ERR_X", "status_code": 404, "msg": "m", "details": {"operation_id": "op_" + "x" * 27}}),
        (400, {"error_code": "ERR_X", "status_code": 401, "msg": "m", "details": {"operation_id": "op_" + "x" * 27}}),
        (400, {"error_code": "ERR_X", "status_code": 400, "msg": "", "details": {"operation_id": "op_" + "x" * 27}}),
        (400, {"error_code": "ERR_X", "status_code": 400, "msg": "m", "details": {}}),
        (400, {"error_code": "X", "status_code": 400, "msg": "m", "details": {"operation_id": "op_" + "x" * 27}}),
        (400, ["no"]),
    ],
)
def test_an_error_of_another_shape_is_noticed(status: int, body: Any) -> None:
    assert [] != list(malformed(httpx.Response(status, json=body)))


def test_a_body_with_a_204_or_another_content_type_is_noticed() -> None:
    assert [] != list(malformed(httpx.Response(204, text="x")))
    assert [] != list(malformed(httpx.Response(200, text="{}")))


def test_texts_of_so_many_bytes_have_so_many_bytes() -> None:
    for size in (1, 255, 256, 4096):
        for character in "xé語🚇":
            assert size == len(matching.expand(f"<{size} bytes of {character}>", {}).encode())


def test_a_transcript_reads_as_its_description_says() -> None:
    example = (transcript.__doc__ or "").partition("\n\n")[2].partition("\n\n`#`")[0]
    (read,) = transcript._Reader("example", example).transcripts()
    assert ("A weight is an integer from 0 to 10000", ["Limits weight"]) == (read.title, read.cites)
    assert [("POST", 201), ("PATCH", 400), ("PATCH", 400)] == [(e.method, e.status) for e in read.exchanges]
    assert ["WeightedBackend", None, None] == [e.shape for e in read.exchanges]
    assert [None, "backends", "backends"] == [e.word for e in read.exchanges]
    assert {"backends": {"bkdhr_a": 10001}} == read.exchanges[1].body


def test_what_is_no_transcript_is_an_error_with_its_place() -> None:
    for text in ("# t\nFETCH /x\n-> 200", "# t\nGET /x\n200", '# t\nPOST /x {"a": }\n-> 200', "GET /x\n-> 200"):
        with pytest.raises(AssertionError, match="example:"):
            list(transcript._Reader("example", text).transcripts())
