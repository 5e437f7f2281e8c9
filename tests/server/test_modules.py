"""Rules of single modules. Source: API document, HTTPS route module fields, OAuth rules, Limits, Errors 3."""

from __future__ import annotations

from typing import Any

import pytest

from .account import Account
from .conftest import Opener

SAML = "urn:oasis:names:tc:SAML:"
DESCRIPTOR = '<?xml version="1.0"?><md:EntityDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" entityID="x"/>'


async def _route(account: Account) -> str:
    edge = await account.make("/edges/https")
    path = f"/edges/https/{edge['id']}/routes"
    return f"{path}/{(await account.make(path, match='/'))['id']}"


def _oauth(**app: Any) -> dict[str, Any]:
    return {"provider": {"code_host_a": app}}


REFUSED = [
    ("backend", {}, "backend_id: is required"),
    ("backend", {"backend_id": "ipp_1"}, "backend_id: 'ipp_1' is not an id that starts with bkdhr_"),
    ("backend", {"backend_id": "bkdfo_1"}, "backend_id: 'bkdfo_1' does not exist"),
    ("backend", {"backend_id": "bkdhr_1", "enabled": 1}, "enabled: is a number; true or false is expected"),
    ("ip_restriction", {"ip_policy_ids": ["ca_1"]}, "ip_policy_ids[0]: 'ca_1' is not an id that starts with ipp_"),
    ("ip_restriction", {"ip_policy_ids": ["ipp_1", "ipp_1"]}, "ip_policy_ids[1]: 'ipp_1' is given twice"),
    ("circuit_breaker", {"num_buckets": 129}, "num_buckets: 129 is not in 0..128"),
    ("circuit_breaker", {"tripped_duration": -1}, "tripped_duration: -1 is not in 0..4294967295"),
    ("circuit_breaker", {"rolling_window": 2**32}, "rolling_window: 4294967296 is not in 0..4294967295"),
    ("circuit_breaker", {"volume_threshold": 1.5}, "volume_threshold: is a number with a fraction"),
    ("circuit_breaker", {"error_threshold_percentage": 1.01}, "error_threshold_percentage: 1.01 is not in 0..1"),
    ("circuit_breaker", {"error_threshold_percentage": -0.1}, "error_threshold_percentage: -0.1 is not in 0..1"),
    ("request_headers", {"add": {"a b": "1"}}, "add.a b: 'a b' is not a header name"),
    ("request_headers", {"add": {"X-A": "1", "x-a": "2"}}, "add.x-a: is given twice"),
    ("response_headers", {"add": {"a": "1\r\nb: 2"}}, "add.a: has a line break"),
    ("response_headers", {"remove": ["ok", ""]}, "remove[1]: '' is not a header name"),
    ("compression", {"level": 1}, "level: is not a member here; expected are enabled"),
    ("webhook_verification", {"secret": "s"}, "provider: is required"),
    ("webhook_verification", {"provider": "nobody", "secret": "s"}, "provider: 'nobody' is not a supported provider"),
    ("webhook_verification", {"provider": "github"}, "secret: is required for every provider except aws_sns"),
    ("webhook_verification", {"provider": "github", "secret": ""}, "secret: is required"),
    ("oauth", {}, "provider: is required"),
    ("oauth", {"provider": {}}, "provider: exactly one provider is expected; found is none"),
    ("oauth", {"provider": {"code_host_a": {}, "code_host_b": {}}}, "provider: exactly one provider is expected"),
    ("oauth", _oauth(client_id="c"), "provider.code_host_a.client_secret: must be present"),
    ("oauth", _oauth(scopes=["s"]), "provider.code_host_a.scopes: may be set only when both"),
    ("oauth", _oauth(scopes=["s"], client_secret="s"), "provider.code_host_a.scopes: may be set only when both"),
    ("oauth", _oauth(teams=["no-org"]), "provider.code_host_a.teams[0]: 'no-org' is not of the form <org>/<team>"),
    ("oauth", {"provider": {"os_vendor": {"teams": []}}}, "provider.os_vendor.teams: is not a member here"),
    ("oauth", {**_oauth(), "auth_check_interval": -1}, "auth_check_interval: -1 is not in"),
    ("oidc", {"issuer": "id.example.com"}, "issuer: 'id.example.com' is not the base URL"),
    ("oidc", {"inactivity_timeout": -1}, "inactivity_timeout: -1 is not in"),
    ("saml", {"idp_metadata": "nonsense"}, "idp_metadata: is not a full XML EntityDescriptor"),
    ("saml", {"idp_metadata": "<Other/>"}, "idp_metadata: is not a full XML EntityDescriptor"),
    ("saml", {"idp_metadata": "<!DOCTYPE x [<!ENTITY a 'b'>]><EntityDescriptor/>"}, "idp_metadata: is not a full"),
    ("saml", {"nameid_format": "persistent"}, f"nameid_format: 'persistent' is not supported; expected is {SAML}2.0"),
    ("saml", {"entity_id": "x"}, "entity_id: is not a member here"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "body", "expected"), REFUSED)
async def test_a_broken_rule_is_named_alone_and_inside_its_route(
    account: Account, name: str, body: Any, expected: str
) -> None:
    path = await _route(account)
    assert (await account.refused("PUT", f"{path}/{name}", body)).startswith(expected)
    inside = await account.refused("PATCH", path, {name: body})
    assert inside.startswith(f"{name}.{expected}")


async def test_session_fields_have_their_defaults(account: Account) -> None:
    path = await _route(account)
    oidc = await account.ask("PUT", f"{path}/oidc", {})
    assert oidc == {
        "enabled": True,
        "options_passthrough": False,
        "cookie_prefix": "service.",
        "inactivity_timeout": 0,
        "maximum_duration": 0,
        "issuer": "",
        "client_id": "",
        "client_secret": "",
        "scopes": [],
    }
    given = {
        "enabled": False,
        "options_passthrough": True,
        "cookie_prefix": "",
        "inactivity_timeout": 1,
        "maximum_duration": 2,
    }
    assert {**oidc, **given} == await account.ask("PUT", f"{path}/oidc", given)


async def test_oauth_returns_all_eight_providers(account: Account) -> None:
    app = {"client_id": "c", "client_secret": "s", "scopes": ["x"], "teams": ["org/team"], "organizations": ["org"]}
    oauth = await account.ask("PUT", f"{await _route(account)}/oauth", {**_oauth(**app), "auth_check_interval": 60})
    provider = oauth["provider"]
    assert len(provider) == 8
    assert [name for name, value in provider.items() if value is not None] == ["code_host_a"]
    assert {**app, "email_addresses": [], "email_domains": []} == provider["code_host_a"]
    assert oauth["auth_check_interval"] == 60


async def test_a_managed_oauth_app_needs_no_client(account: Account) -> None:
    path = await _route(account)
    for app in ({}, {"client_id": "", "client_secret": "", "scopes": []}, {"email_addresses": ["a@example.com"]}):
        await account.ask("PUT", f"{path}/oauth", {"provider": {"retail_vendor": app}})


async def test_saml_returns_what_an_identity_provider_needs(account: Account) -> None:
    path = await _route(account)
    saml = await account.ask("PUT", f"{path}/saml", {"idp_metadata": DESCRIPTOR, "authorized_groups": ["g"]})
    assert (DESCRIPTOR, ["g"], f"{SAML}2.0:nameid-format:persistent") == (
        saml["idp_metadata"],
        saml["authorized_groups"],
        saml["nameid_format"],
    )
    assert saml["entity_id"] == saml["metadata_url"]
    assert saml["assertion_consumer_service_url"].startswith("https://")
    assert "BEGIN CERTIFICATE" in saml["request_signing_certificate_pem"]
    other = await account.ask("PUT", f"{await _route(account)}/saml", {})
    assert saml["request_signing_certificate_pem"] == other["request_signing_certificate_pem"]
    assert saml["entity_id"] != other["entity_id"]
    formats = ("2.0:nameid-format:transient", "1.1:nameid-format:emailAddress", "1.1:nameid-format:unspecified")
    for name in formats:
        assert (
            SAML + name == (await account.ask("PUT", f"{path}/saml", {"nameid_format": SAML + name}))["nameid_format"]
        )


async def test_the_cloud_notification_service_needs_no_secret(account: Account) -> None:
    webhook = await account.ask("PUT", f"{await _route(account)}/webhook_verification", {"provider": "AWS_SNS"})
    assert webhook == {"enabled": True, "provider": "aws_sns", "secret": ""}


async def test_secrets_are_null_where_the_setting_says_so(opened: Opener) -> None:
    account = opened(echo_secrets=False)
    path = await _route(account)
    canary = "canary-value"
    bodies = {
        "oidc": {"client_secret": canary},
        "oauth": _oauth(client_id="c", client_secret=canary),
        "webhook_verification": {"provider": "github", "secret": canary},
    }
    for name, body in bodies.items():
        assert canary not in str(await account.ask("PUT", f"{path}/{name}", body))
    target = {"monitoring": {"api_key": canary}}
    destination = await account.make("/event_destinations", target=target)
    assert destination["target"]["monitoring"]["api_key"] is None
    for read in (path, path.partition("/routes")[0], "/edges/https", "/event_destinations"):
        assert canary not in str(await account.ask("GET", read))
    await account.ask("PATCH", path, {"description": "kept"})
    with account.app.store.read() as tx:
        assert (
            canary
            == (tx.get("https_routes", path.rpartition("/")[2]) or pytest.fail("gone")).doc["oidc"]["client_secret"]
        )
