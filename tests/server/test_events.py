"""Event destinations. Source: API document, EventDestination, Errors 3."""

from __future__ import annotations

from typing import Any

import pytest

from .account import Account

ROLE = {"role": {"role_arn": "arn:role"}}
CREDS = {"creds": {"cloud_access_key_id": "id", "cloud_secret_access_key": "secret"}}
TARGETS: list[dict[str, Any]] = [
    {"batch_stream": {"auth": ROLE, "delivery_stream_arn": "arn:1"}},
    {"data_stream": {"auth": CREDS, "stream_arn": "arn:2"}},
    {"log_group": {"auth": ROLE, "log_group_arn": "arn:3"}},
    {"monitoring": {"api_key": "k", "tags": "a:b", "service": "s", "site": "example.com"}},
]
NAMES = [next(iter(target)) for target in TARGETS]


def _log_group(**members: Any) -> dict[str, Any]:
    return {"target": {"log_group": {"log_group_arn": "a", **members}}}


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: next(iter(target)))
async def test_a_destination_has_one_target_and_the_rest_null(account: Account, target: dict[str, Any]) -> None:
    made = await account.make("/event_destinations", target=target, format="json")
    assert len(made["target"]) == 4
    (name,) = [name for name, value in made["target"].items() if value is not None]
    expected = dict(target[name])
    if "auth" in expected:
        expected["auth"] = {"role": None, "creds": None, **expected["auth"]}
    assert {name: expected} == {name: made["target"][name]}
    assert made == await account.ask("GET", f"/event_destinations/{made['id']}")


async def test_a_patch_keeps_a_target_that_is_left_out_and_replaces_one_that_is_not(account: Account) -> None:
    made = await account.make("/event_destinations", target=TARGETS[0])
    path = f"/event_destinations/{made['id']}"
    assert {**made, "description": "d"} == await account.ask("PATCH", path, {"description": "d"})
    changed = await account.ask("PATCH", path, {"target": TARGETS[3]})
    assert (changed["target"]["batch_stream"], changed["target"]["monitoring"]["api_key"]) == (None, "k")
    assert "target: exactly one of" in await account.refused("PATCH", path, {"target": {}})


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, "target: is required"),
        ({"target": {}}, f"target: exactly one of {', '.join(NAMES)} is expected; found is none"),
        ({"target": TARGETS[0] | TARGETS[3]}, "target: exactly one of"),
        (_log_group(auth=ROLE | CREDS), "target.log_group.auth: exactly one of role, creds is expected; found is role"),
        (_log_group(auth={}), "target.log_group.auth: exactly one of"),
        (_log_group(), "target.log_group.auth: is required"),
        ({"target": {"data_stream": {"auth": ROLE}}}, "target.data_stream.stream_arn: is required"),
        ({"target": {"data_stream": {"auth": ROLE, "stream_arn": ""}}}, "target.data_stream.stream_arn: is empty"),
        (_log_group(auth={"role": {}}), "target.log_group.auth.role.role_arn: is required"),
        ({"target": {"monitoring": {}}}, "target.monitoring.api_key: is required"),
        ({"target": {"other": {}}}, "target.other: is not a member here"),
        ({"target": TARGETS[0], "format": "xml"}, "format: 'xml' is not one of json"),
        ({"target": TARGETS[0], "format": "JSON"}, "format: 'JSON' is not one of json"),
    ],
)  # fmt: skip
async def test_a_broken_rule_is_named(account: Account, body: Any, expected: str) -> None:
    assert (await account.refused("POST", "/event_destinations", body)).startswith(expected)
