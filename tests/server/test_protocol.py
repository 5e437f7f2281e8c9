"""What holds for every endpoint. Source: API document, Conventions, Authentication, Versioning."""

from __future__ import annotations

import pytest

from edge_operator.api import catalog
from edge_operator.server.operations import OPERATIONS

from .account import KEY, Account, caller
from .conftest import Opener

GARBAGE = [
    (b"", "not valid JSON"),
    (b"{", "not valid JSON"),
    (b"[]", "is a list; a JSON object is expected"),
    (b"null", "is null; a JSON object is expected"),
    (b'"x"', "is a string"),
    (b'{"description": NaN}', "NaN"),
    (b'{"description": Infinity}', "Infinity"),
    (b'{"x": 1e999}', "out of range"),
    (b'{"x": ' + b"9" * 5000 + b"}", "out of range"),
    (b'{"description": "a", "description": "b"}', "'description' twice"),
    (b'{"description": "\xff"}', "UTF-8"),
    (b'{"description": "\\ud800"}', "UTF-8"),
    (b'{"\\ud800": 1}', "UTF-8"),
    (b"[" * 200_000, "nested too deeply"),
    (b'{"a":' * 5000 + b"1" + b"}" * 5000, "nested too deeply"),
    (b"\xef\xbb\xbf{}", "not valid JSON"),
    (b'{"description": "' + b"x" * 1_100_000 + b'"}', "too large"),
]


@pytest.mark.parametrize(("raw", "expected"), GARBAGE)
async def test_a_garbage_body_is_a_400_that_says_what_is_wrong(account: Account, raw: bytes, expected: str) -> None:
    response = await account.client.post(
        "/backends/weighted", content=raw, headers={"Content-Type": "application/json"}
    )
    assert response.status_code == 400
    assert expected in response.json()["msg"]


async def test_deep_nesting_that_is_still_json_is_a_wrong_member(account: Account) -> None:
    deep: object = 1
    for _ in range(200):
        deep = {"a": deep}
    assert "x: is not a member here" in await account.refused("POST", "/backends/weighted", {"x": deep})
    assert "metadata: is an object; a string is expected" in await account.refused(
        "POST", "/backends/weighted", {"metadata": deep}
    )


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"nope": 1}, "nope: is not a member here; expected are backends, description, metadata"),
        ({"description": 1}, "description: is a number; a string is expected"),
        ({"description": True}, "description: is true; a string is expected"),
        ({"description": "ö" * 128}, "description: has 256 bytes; at most 255 are allowed"),
        ({"metadata": "x" * 4097}, "metadata: has 4097 bytes; at most 4096 are allowed"),
        ({"backends": []}, "backends: is a list; an object is expected"),
        ({"backends": {"bkdhr_1": "1"}}, "backends.bkdhr_1: is a string; an integer is expected"),
        ({"backends": {"bkdhr_1": True}}, "backends.bkdhr_1: is true; an integer is expected"),
        ({"backends": {"bkdhr_1": 1.5}}, "backends.bkdhr_1: is a number with a fraction; an integer is expected"),
        ({"backends": {"bkdhr_1": None}}, "backends.bkdhr_1: is null; an integer is expected"),
        ({"backends": {"bkdhr_1": 10**30}}, "backends.bkdhr_1: a number of more than 20 digits is not in 0..10000"),
    ],
)
async def test_a_wrong_member_is_named_with_what_is_expected(account: Account, body: object, expected: str) -> None:
    assert expected == await account.refused("POST", "/backends/weighted", body)


async def test_limits_count_bytes_and_are_inclusive(account: Account) -> None:
    made = await account.make("/backends/weighted", description="ö" * 127 + "x", metadata="x" * 4096)
    assert (made["description"], made["metadata"]) == ("ö" * 127 + "x", "x" * 4096)


async def test_several_wrong_members_are_named_at_once(account: Account) -> None:
    message = await account.refused("POST", "/backends/weighted", {"a": 1, "b": 2, "description": 3})
    assert all(f"{name}: " in message for name in ("a", "b", "description"))


async def test_null_means_not_given(account: Account) -> None:
    made = await account.ask("POST", "/backends/weighted", {"description": None, "backends": None})
    assert (made["description"], made["metadata"], made["backends"]) == ("", "", {})
    changed = await account.ask("PATCH", f"/backends/weighted/{made['id']}", {"metadata": "m", "description": None})
    assert (changed["description"], changed["metadata"]) == ("", "m")


@pytest.mark.parametrize("content_type", [None, "text/plain", "application/x-www-form-urlencoded"])
async def test_a_body_of_another_content_type_is_refused(account: Account, content_type: str | None) -> None:
    headers = {"Content-Type": content_type} if content_type else {}
    response = await account.client.post("/backends/weighted", content=b"{}", headers=headers)
    assert response.status_code == 400
    assert "Content-Type" in response.json()["msg"]


async def test_a_body_where_none_is_expected_may_be_an_empty_object(account: Account) -> None:
    made = await account.make("/backends/weighted")
    path = f"/backends/weighted/{made['id']}"
    await account.ask("GET", path, {})
    assert await account.refused("GET", path, {"x": 1}) == "no body is expected here"
    assert (await account.client.request("GET", path, content=b"junk")).status_code == 400
    await account.ask("DELETE", path, {})


@pytest.mark.parametrize(
    ("authorization", "expected"),
    [
        (None, "no API key"),
        ("", "no API key"),
        ("Bearer", "no API key"),
        (f"Basic {KEY}", "no API key"),
        ("Bearer nope", "unknown or revoked"),
        (f"Bearer {KEY}x", "unknown or revoked"),
    ],
)
async def test_without_a_valid_key_nothing_is_answered(
    account: Account, authorization: str | None, expected: str
) -> None:
    client = caller(account.app, key=None)
    for path in ("/api_keys", "/nothing"):
        response = await client.get(path, headers={} if authorization is None else {"Authorization": authorization})
        assert response.status_code == 401
        assert expected in response.json()["msg"]
        assert response.headers["www-authenticate"] == "Bearer"


async def test_the_status_for_an_unknown_key_is_a_setting(opened: Opener) -> None:
    account = opened(unauthenticated_status=403)
    assert (await caller(account.app, key="nope").get("/api_keys")).status_code == 403


@pytest.mark.parametrize("version", [None, "1", "3", "", "2.0"])
async def test_another_version_is_refused_with_the_supported_one(account: Account, version: str | None) -> None:
    response = await caller(account.app, version=version).get("/api_keys")
    assert response.status_code == 400
    assert "the supported version is 2" in response.json()["msg"]
    assert "Service-Version" in response.json()["msg"]


async def test_unknown_addresses_and_ids_are_plain_404s(account: Account) -> None:
    for path in (
        "/",
        "/nothing",
        "/api_keys/",
        "//api_keys",
        "/api_keys/ak_1/x",
        "/backends",
        "/edges/https/x/routes/y/z",
    ):
        assert "address" in await account.refused("GET", path, status=404)
    for collection in catalog.COLLECTIONS.values():
        path = collection.path.format(edge_id="edghts_1") + f"/{collection.prefix}1"
        await account.refused("GET", path, status=404)


async def test_an_id_of_another_collection_is_not_found(account: Account) -> None:
    made = await account.make("/backends/weighted")
    await account.refused("GET", f"/backends/failover/{made['id']}", status=404)


async def test_a_method_that_an_address_does_not_take_is_a_405_that_lists_the_others(account: Account) -> None:
    response = await account.client.put("/api_keys")
    assert (response.status_code, response.headers["allow"]) == (405, "GET, POST")
    assert (await account.client.get("/edges/https/edghts_1/routes")).status_code == 405


async def test_parameters_are_refused_where_none_is_expected(account: Account) -> None:
    assert "'limit' is not a parameter here" in await account.refused("GET", "/api_keys/ak_1?limit=1")
    assert "'x' is not a parameter here" in await account.refused("POST", "/api_keys?x=1", {})


async def test_addresses_are_on_the_host_that_the_caller_used(account: Account) -> None:
    made = await account.make("/backends/weighted")
    for base in ("http://other.test:8443", "https://api.test", "http://[::1]:80"):
        response = await caller(account.app, base=base).get(
            f"/backends/weighted/{made['id']}", headers={"Host": base[base.index("//") + 2 :]}
        )
        assert response.json()["uri"] == f"{base}/backends/weighted/{made['id']}"


async def test_a_host_that_is_none_is_refused(account: Account) -> None:
    response = await account.client.get("/api_keys", headers={"Host": 'a"b/c'})
    assert response.status_code == 400


async def test_every_operation_needs_a_key_and_a_version(account: Account) -> None:
    for operation in OPERATIONS:
        path = operation.path.format(edge_id="edghts_1", id="x_1")
        assert (await caller(account.app, key=None).request(operation.method, path)).status_code == 401
        assert (await caller(account.app, version=None).request(operation.method, path)).status_code == 400


async def test_a_read_of_every_collection_answers(account: Account) -> None:
    for collection in catalog.COLLECTIONS.values():
        if "list" in collection.verbs:
            answer = await account.ask("GET", collection.path)
            assert {collection.items, "uri", "next_page_uri"} == set(answer)


async def test_the_rate_limit_counts_requests_in_any_sixty_seconds(opened: Opener) -> None:
    account = opened(rate_limit=3)
    for _ in range(3):
        await account.ask("GET", "/api_keys")
        account.world.pass_seconds(10)
    response = await account.client.get("/api_keys")
    assert (response.status_code, response.headers["retry-after"]) == (429, "30")
    account.world.pass_seconds(30)
    await account.ask("GET", "/api_keys")
    await account.refused("GET", "/api_keys", status=429)


async def test_retry_after_can_be_left_out(opened: Opener) -> None:
    account = opened(rate_limit=1, retry_after=False)
    await account.ask("GET", "/api_keys")
    assert "retry-after" not in (await account.client.get("/api_keys")).headers


async def test_a_fault_of_our_own_is_a_500_that_repeats_nothing(
    account: Account, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    canary = f"canary-{'secret'}"

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(canary)

    monkeypatch.setattr("edge_operator.server.handling.carry_out", fail)
    assert "canary" not in await account.refused("GET", "/api_keys", status=500)
    assert "canary-secret" not in caplog.text
    assert "RuntimeError" in caplog.text
