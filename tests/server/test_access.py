"""API keys, credentials and owners. Source: API document, APIKey, Credential, Authentication."""

from __future__ import annotations

import re

import httpx
import pytest

from edge_operator.server import keys

from .account import KEY, Account, caller

OTHER = "usr_another"


async def test_a_token_is_shown_once(account: Account) -> None:
    for path in ("/api_keys", "/credentials"):
        made = await account.make(path, description="d", metadata="m")
        assert re.fullmatch(r"[0-9A-Za-z]{27}_[0-9A-Za-z]{21}", made["token"])
        read = await account.ask("GET", f"{path}/{made['id']}")
        assert read == {**made, "token": None}
        assert (await account.ask("PATCH", f"{path}/{made['id']}", {"description": "x"}))["token"] is None
        assert made["token"] not in (await account.client.get(path)).text


async def test_a_key_made_here_opens_the_api_until_it_is_deleted(account: Account) -> None:
    made = await account.make("/api_keys")
    client = caller(account.app, key=made["token"])
    assert (await client.get("/api_keys")).status_code == 200
    await account.ask("DELETE", f"/api_keys/{made['id']}")
    assert (await client.get("/api_keys")).status_code == 401


async def test_a_credential_does_not_open_the_api(account: Account) -> None:
    made = await account.make("/credentials")
    assert (await caller(account.app, key=made["token"]).get("/api_keys")).status_code == 401


async def test_the_owner_defaults_to_the_caller_and_only_admins_set_another(account: Account) -> None:
    seeded = (await account.ask("GET", "/api_keys"))["keys"][0]
    for path in ("/api_keys", "/credentials"):
        mine = await account.make(path)
        assert seeded["owner_id"] == mine["owner_id"]
        assert (await account.make(path, owner_id=OTHER))["owner_id"] == OTHER
        assert seeded["owner_id"] == (await account.make(path, owner_id=seeded["owner_id"]))["owner_id"]
    theirs = caller(account.app, key=(await account.make("/api_keys", owner_id=OTHER))["token"])
    for path in ("/api_keys", "/credentials"):
        assert (await theirs.post(path, json={})).json()["owner_id"] == OTHER
        assert (await theirs.post(path, json={"owner_id": OTHER})).status_code == 201
        refused = await theirs.post(path, json={"owner_id": seeded["owner_id"]})
        assert (refused.status_code, refused.json()["error_code"]) == (403, "ERR_OWNER_NOT_PERMITTED")
        assert "owner_id" in refused.json()["msg"]


async def test_a_token_is_compared_in_constant_time(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return False

    monkeypatch.setattr(keys.hmac, "compare_digest", compare)
    assert (await account.client.get("/api_keys")).status_code == 401
    assert [(32, 32)] == [(len(one), len(other)) for one, other in compared]


async def test_owners_share_the_account_and_only_the_first_is_its_admin(account: Account) -> None:
    first, second = f"usr_{'a' * 27}", f"usr_{'b' * 27}"
    tokens = [(await account.make("/api_keys", owner_id=owner))["token"] for owner in (first, second)]
    theirs = [caller(account.app, key=token) for token in tokens]
    made = [(await one.post("/credentials", json={})).json() for one in theirs]
    assert [first, second] == [one["owner_id"] for one in made]
    assert (await theirs[0].get(f"/credentials/{made[1]['id']}")).json()["owner_id"] == second
    for one, other in zip(theirs, (second, first), strict=True):
        assert (await one.post("/api_keys", json={"owner_id": other})).status_code == 403
    heir = (await theirs[0].post("/api_keys", json={})).json()
    assert (
        await caller(account.app, key=heir["token"]).post("/api_keys", json={"owner_id": second})
    ).status_code == 403


async def test_an_owner_must_be_a_user_and_cannot_be_changed(account: Account) -> None:
    assert "owner_id: 'ak_1' is not an id that starts with usr_" in await account.refused(
        "POST", "/api_keys", {"owner_id": "ak_1"}
    )
    made = await account.make("/api_keys")
    assert "owner_id: is not a member" in await account.refused("PATCH", f"/api_keys/{made['id']}", {"owner_id": OTHER})


async def test_the_seeded_key_stands_in_the_list_without_its_token(account: Account) -> None:
    response = await account.client.get("/api_keys")
    assert KEY not in response.text
    assert len(response.json()["keys"]) == 1


ACL = [
    "bind:example.com",
    "bind:*.example.com",
    "bind:1.tcp.example.com:20001",
    "bind:example",
    "bind:team=blue",
    "bind:team=*",
    "bind:*=blue",
    "bind:*=*",
]


async def test_acl_rules_of_every_kind_are_kept_in_order(account: Account) -> None:
    assert (await account.make("/credentials", acl=ACL))["acl"] == ACL
    made = await account.make("/credentials", acl=["*"])
    assert made["acl"] == ["*"]
    assert (await account.ask("PATCH", f"/credentials/{made['id']}", {"acl": []}))["acl"] == []
    assert (await account.make("/credentials"))["acl"] == []


@pytest.mark.parametrize(
    ("acl", "where"),
    [
        (["allow:example.com"], "acl[0]"),
        (["bind:example.com", "example.com"], "acl[1]"),
        (["bind:"], "acl[0]"),
        (["bind:*"], "acl[0]"),
        (["bind:a.*.com"], "acl[0]"),
        (["bind:*a.com"], "acl[0]"),
        (["bind:=x"], "acl[0]"),
        (["bind:a=b=c"], "acl[0]"),
        (["bind:te*m=x"], "acl[0]"),
        (["bind:a b"], "acl[0]"),
        (["*", "bind:example.com"], "acl[0]"),
        ([""], "acl[0]"),
        ([1], "acl[0]"),
        ("*", "acl"),
    ],
)
async def test_other_acl_rules_are_refused(account: Account, acl: object, where: str) -> None:
    assert (await account.refused("POST", "/credentials", {"acl": acl})).startswith(f"{where}: ")


async def test_a_revoked_key_is_refused_in_the_middle_of_a_connection(account: Account) -> None:
    made = await account.make("/api_keys")
    client = caller(account.app, key=made["token"])
    responses: list[httpx.Response] = [await client.delete(f"/api_keys/{made['id']}"), await client.get("/api_keys")]
    assert [response.status_code for response in responses] == [204, 401]
