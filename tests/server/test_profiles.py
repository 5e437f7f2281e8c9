"""The server in another service's names. Source: API document, Identifier note."""

from __future__ import annotations

from typing import Any

import pytest

from .account import Account
from .conftest import Opener


@pytest.fixture
def account(opened: Opener) -> Account:
    return opened(profile="ngrok", control=True)


async def test_the_version_header_has_the_profiles_name(account: Account) -> None:
    await account.ask("GET", "/api_keys")
    del account.client.headers["Ngrok-Version"]
    account.client.headers["Service-Version"] = "2"
    error = await account.ask("GET", "/api_keys", status=400)
    assert "Ngrok-Version" in error["msg"]
    assert error["error_code"] == "ERR_NGROK_UNSUPPORTED_VERSION"


async def test_event_targets_go_in_and_out_by_the_profiles_names(account: Account) -> None:
    creds = {"aws_access_key_id": "id", "aws_secret_access_key": "s"}
    target: dict[str, Any] = {"firehose": {"auth": {"creds": creds}, "delivery_stream_arn": "a"}}
    made = await account.make("/event_destinations", target=target)
    assert creds == made["target"]["firehose"]["auth"]["creds"]
    assert {"firehose", "kinesis", "cloudwatch_logs", "datadog"} == set(made["target"])
    listed = (await account.ask("GET", "/event_destinations"))["event_destinations"]
    assert [made] == listed
    patched = await account.ask(
        "PATCH", f"/event_destinations/{made['id']}", {"target": {"datadog": {"api_key": "k", "ddtags": "t"}}}
    )
    assert patched["target"]["datadog"] == {"api_key": "k", "ddtags": "t", "service": "", "ddsite": ""}


async def test_messages_name_members_by_the_profiles_names(account: Account) -> None:
    async def refused(target: dict[str, Any]) -> str:
        return await account.refused("POST", "/event_destinations", {"target": target})

    assert (
        await refused({"monitoring": {}})
        == "target.monitoring: is not a member here; expected are cloudwatch_logs, datadog, firehose, kinesis"
    )
    assert "target.datadog.ddtags: is a number" in await refused({"datadog": {"api_key": "k", "ddtags": 1}})
    assert "target.datadog.tags: is not a member here; expected are api_key, ddsite, ddtags, service" in await refused(
        {"datadog": {"api_key": "k", "tags": "t"}}
    )
    message = await refused({"kinesis": {"auth": {"creds": {"aws_access_key_id": "x"}}, "stream_arn": "a"}})
    assert message == "target.kinesis.auth.creds.aws_secret_access_key: is required"
    assert "exactly one of firehose, kinesis, cloudwatch_logs, datadog" in await refused({})


async def test_oauth_providers_and_cookies_have_the_profiles_names(account: Account) -> None:
    edge = await account.make("/edges/https")
    oauth = {"provider": {"github": {"client_id": "c", "client_secret": "s"}}}
    route = await account.make(f"/edges/https/{edge['id']}/routes", match="/", oauth=oauth)
    assert route["oauth"]["provider"]["github"]["client_id"] == "c"
    assert route["oauth"]["cookie_prefix"] == "ngrok."
    path = f"/edges/https/{edge['id']}/routes/{route['id']}/oauth"
    assert route["oauth"] == await account.ask("GET", path)
    assert [route] == (await account.ask("GET", f"/edges/https/{edge['id']}"))["routes"]
    message = await account.refused("PUT", path, {"provider": {"google": {"scopes": ["x"]}}})
    assert message.startswith("provider.google.scopes: ")
    assert "oauth.provider.search_vendor: is not a member" in await account.refused(
        "PATCH", path.rpartition("/")[0], {"oauth": {"provider": {"search_vendor": {}}}}
    )


async def test_a_sessions_transport_has_the_profiles_name(account: Account) -> None:
    assert (await account.ask("POST", "/_control/agents", {}))["transport"] == "ngrok/v2"
    assert (await account.ask("GET", "/tunnel_sessions"))["tunnel_sessions"][0]["transport"] == "ngrok/v2"
    assert (await account.ask("POST", "/_control/agents", {"transport": "ssh"}))["transport"] == "ssh"
