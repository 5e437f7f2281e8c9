"""Edges, routes and their module operations. Source: API document, TCPEdge and following; the assumed operations."""

from __future__ import annotations

from typing import Any

import pytest

from edge_operator.api import catalog

from .account import Account

SENT: dict[str, dict[str, Any]] = {
    "backend": {"backend_id": "bkdhr_1"},
    "ip_restriction": {"ip_policy_ids": ["ipp_1", "ipp_2"]},
    "mutual_tls": {"certificate_authority_ids": ["ca_1"]},
    "tls_termination": {"terminate_at": "edge", "min_version": "1.3"},
    "circuit_breaker": {"tripped_duration": 10, "num_buckets": 128, "error_threshold_percentage": 1},
    "compression": {"enabled": False},
    "request_headers": {"add": {"X-One": "1"}, "remove": ["X-Two"]},
    "response_headers": {"add": {}, "remove": []},
    "webhook_verification": {"provider": "Slack", "secret": "s"},
    "oauth": {"provider": {"search_vendor": {"email_domains": ["example.com"]}}},
    "saml": {"idp_metadata": "<EntityDescriptor xmlns='urn:oasis:names:tc:SAML:2.0:metadata'/>"},
    "oidc": {"issuer": "https://id.example.com", "client_id": "c", "client_secret": "s", "scopes": ["email"]},
    "websocket_tcp_converter": {},
}
RETURNED: dict[str, dict[str, Any]] = {
    "backend": {"enabled": True, "backend": {"id": "bkdhr_1", "uri": "http://api.test/backends/http_response/bkdhr_1"}},
    "ip_restriction": {
        "enabled": True,
        "ip_policies": [{"id": f"ipp_{n}", "uri": f"http://api.test/ip_policies/ipp_{n}"} for n in (1, 2)],
    },
    "mutual_tls": {
        "enabled": True,
        "certificate_authorities": [{"id": "ca_1", "uri": "http://api.test/certificate_authorities/ca_1"}],
    },
    "tls_termination": {"enabled": True, "terminate_at": "edge", "min_version": "1.3"},
    "circuit_breaker": {
        "enabled": True,
        "tripped_duration": 10,
        "rolling_window": 0,
        "num_buckets": 128,
        "volume_threshold": 0,
        "error_threshold_percentage": 1.0,
    },
    "compression": {"enabled": False},
    "request_headers": {"enabled": True, "add": {"x-one": "1"}, "remove": ["x-two"]},
    "response_headers": {"enabled": True, "add": {}, "remove": []},
    "webhook_verification": {"enabled": True, "provider": "slack", "secret": "s"},
    "websocket_tcp_converter": {"enabled": True},
}
EDGES: list[Any] = [catalog.tcp_edges, catalog.tls_edges, catalog.https_edges]
MODULES = [(c, name) for c in (*EDGES, catalog.https_routes) for name in c.modules]


async def _new(account: Account, collection: Any, **body: Any) -> tuple[dict[str, Any], str]:
    """A new resource of the collection and its path."""
    path = collection.path
    if collection is catalog.https_routes:
        edge = await account.make("/edges/https")
        path, body = path.format(edge_id=edge["id"]), {"match": "/", **body}
    made = await account.make(path, **body)
    return made, f"{path}/{made['id']}"


@pytest.mark.parametrize(("collection", "name"), MODULES, ids=lambda value: getattr(value, "name", value))
async def test_a_module_is_put_read_and_deleted(account: Account, collection: Any, name: str) -> None:
    made, path = await _new(account, collection)
    assert made[name] is None
    await account.refused("GET", f"{path}/{name}", status=404)
    await account.ask("DELETE", f"{path}/{name}")
    put = await account.ask("PUT", f"{path}/{name}", SENT[name])
    assert RETURNED.get(name, put) == put
    assert put == await account.ask("GET", f"{path}/{name}")
    assert {**made, name: put} == await account.ask("GET", path)
    await account.ask("DELETE", f"{path}/{name}")
    await account.refused("GET", f"{path}/{name}", status=404)
    assert made == await account.ask("GET", path)


@pytest.mark.parametrize("collection", [*EDGES, catalog.https_routes], ids=lambda value: value.name)
async def test_all_modules_can_be_created_at_once_and_none_goes_by_patch(account: Account, collection: Any) -> None:
    modules = {name: SENT[name] for name in collection.modules}
    made, path = await _new(account, collection, **modules)
    assert {name: value for name, value in RETURNED.items() if name in modules} == {
        name: value for name, value in made.items() if name in modules and name in RETURNED
    }
    assert made == await account.ask("PATCH", path, dict.fromkeys(modules))
    assert {**made, "description": "d"} == await account.ask("PATCH", path, {"description": "d"})


async def test_a_module_in_a_patch_replaces_the_whole_module(account: Account) -> None:
    made, path = await _new(account, catalog.https_routes, circuit_breaker={"enabled": False, "rolling_window": 5})
    changed = await account.ask("PATCH", path, {"circuit_breaker": {"volume_threshold": 7}})
    assert tuple(changed["circuit_breaker"][n] for n in ("enabled", "rolling_window", "volume_threshold")) == (
        True,
        0,
        7,
    )
    assert {**made, "circuit_breaker": changed["circuit_breaker"]} == changed


async def test_a_module_of_a_missing_resource_is_not_found(account: Account) -> None:
    for method, body in (("PUT", {}), ("GET", None), ("DELETE", None)):
        await account.refused(method, "/edges/tls/edgtls_1/mutual_tls", body, status=404)
        await account.refused(method, "/edges/https/edghts_1/routes/edghtsrt_1/compression", body, status=404)


async def test_modules_that_a_resource_does_not_have_are_no_address(account: Account) -> None:
    _, path = await _new(account, catalog.tcp_edges)
    assert "nothing is at this address" in await account.refused("PUT", f"{path}/mutual_tls", {}, status=404)


@pytest.mark.parametrize(
    "hostport",
    [
        "example.com",
        "example.com:",
        ":443",
        "example.com:0",
        "example.com:65536",
        "a b:1",
        "http://a:1",
        "a:1/x",
        "",
        "a:٣",
    ],
)
async def test_a_malformed_hostport_is_named(account: Account, hostport: str) -> None:
    message = await account.refused("POST", "/edges/tcp", {"hostports": ["ok.example.com:1", hostport]})
    assert message.startswith("hostports[1]: ")
    assert "host:port" in message


async def test_hostports_are_returned_as_given(account: Account) -> None:
    hostports = ["B.example.com:443", "*.example.com:443", "192.0.2.1:80", "[2001:db8::1]:80"]
    made = await account.make("/edges/tls", hostports=hostports)
    assert hostports == made["hostports"]
    assert "hostports[1]" in await account.refused("POST", "/edges/tls", {"hostports": ["x:1", "X:1"]})


async def test_a_hostport_belongs_to_one_edge_of_any_kind(account: Account) -> None:
    owner = await account.make("/edges/tcp", hostports=["a.example.com:443"])
    other = await account.make("/edges/tls", hostports=["b.example.com:443"])
    for method, path in (("POST", "/edges/https"), ("PATCH", f"/edges/tls/{other['id']}")):
        message = await account.refused(method, path, {"hostports": ["c:1", "A.example.com:443"]}, status=409)
        assert message == f"hostports[1]: 'A.example.com:443' is taken by {owner['id']}"
    await account.ask("PATCH", f"/edges/tcp/{owner['id']}", {"hostports": ["a.example.com:443", "d:1"]})
    await account.ask("PATCH", f"/edges/tcp/{owner['id']}", {"hostports": []})
    await account.ask("PATCH", f"/edges/tls/{other['id']}", {"hostports": ["a.example.com:443"]})
    await account.ask("DELETE", f"/edges/tls/{other['id']}")
    await account.make("/edges/https", hostports=["a.example.com:443"])


async def test_upstream_termination_takes_no_min_version_and_no_mutual_tls(account: Account) -> None:
    for path in ("/edges/tls", "/edges/https"):
        body: dict[str, Any] = {"tls_termination": {"terminate_at": "upstream", "min_version": "1.2"}}
        assert (await account.refused("POST", path, body)).startswith("tls_termination.min_version: ")
        body = {"tls_termination": {"terminate_at": "upstream"}, "mutual_tls": {"certificate_authority_ids": ["ca_1"]}}
        assert "mutual_tls" in await account.refused("POST", path, body)
        made = await account.make(path, tls_termination={"terminate_at": "upstream", "min_version": None})
        item = f"{path}/{made['id']}"
        assert made["tls_termination"] == {"enabled": True, "terminate_at": "upstream", "min_version": None}
        assert "mutual_tls" in await account.refused("PUT", f"{item}/mutual_tls", {})
        assert "mutual_tls" in await account.refused("PATCH", item, {"mutual_tls": {}})
        assert (
            await account.refused("PUT", f"{item}/tls_termination", {"terminate_at": "upstream", "min_version": "1.3"})
        ).startswith("min_version: ")
        await account.ask("PUT", f"{item}/tls_termination", {"terminate_at": "edge"})
        await account.ask("PUT", f"{item}/mutual_tls", {})
        assert "mutual_tls" in await account.refused("PUT", f"{item}/tls_termination", {"terminate_at": "upstream"})


async def test_an_https_edge_holds_its_routes_and_takes_them_along(account: Account) -> None:
    edge = await account.make("/edges/https", hostports=["a:1"])
    assert edge["routes"] == []
    path = f"/edges/https/{edge['id']}"
    routes = [await account.make(f"{path}/routes", match=match) for match in ("/a", "/b")]
    assert {**edge, "routes": routes} == await account.ask("GET", path)
    assert [{**edge, "routes": routes}] == (await account.ask("GET", "/edges/https"))["https_edges"]
    assert edge["id"] == routes[0]["edge_id"]
    assert f"http://api.test{path}/routes/{routes[0]['id']}" == routes[0]["uri"]
    await account.ask("DELETE", path)
    await account.refused("GET", f"{path}/routes/{routes[0]['id']}", status=404)


async def test_a_route_is_found_under_its_own_edge_only(account: Account) -> None:
    _, path = await _new(account, catalog.https_routes)
    other = await account.make("/edges/https")
    await account.refused("GET", f"/edges/https/{other['id']}/routes/{path.rpartition('/')[2]}", status=404)
    await account.refused("POST", "/edges/https/edghts_1/routes", {"match": "/"}, status=404)


async def test_a_match_is_taken_once_in_an_edge(account: Account) -> None:
    edge = await account.make("/edges/https")
    path = f"/edges/https/{edge['id']}/routes"
    owner = await account.make(path, match="/a", match_type="path_prefix")
    body = {"match": "/a", "match_type": "path_prefix"}
    assert f"match: '/a' is taken by {owner['id']}" == await account.refused("POST", path, body, status=409)
    other = await account.make(path, match="/a", match_type="exact_path")
    assert "match" in await account.refused("PATCH", f"{path}/{other['id']}", {"match_type": "path_prefix"}, status=409)
    elsewhere = await account.make("/edges/https")
    await account.make(f"/edges/https/{elsewhere['id']}/routes", **body)


@pytest.mark.parametrize("match", ["/", "/a/b", "example.com", "example.com/a", "*.example.com/a", "localhost"])
async def test_a_match_has_one_of_three_forms(account: Account, match: str) -> None:
    made, _ = await _new(account, catalog.https_routes, match=match, match_type="exact_path")
    assert (match, "exact_path") == (made["match"], made["match_type"])


@pytest.mark.parametrize("match", ["", " ", "/a b", "a b", "https://example.com", "a?b", "/a#b", "/\n", 5])
async def test_another_match_is_refused(account: Account, match: object) -> None:
    edge = await account.make("/edges/https")
    assert (await account.refused("POST", f"/edges/https/{edge['id']}/routes", {"match": match})).startswith("match: ")


async def test_a_route_needs_a_match_and_a_known_match_type(account: Account) -> None:
    edge = await account.make("/edges/https")
    path = f"/edges/https/{edge['id']}/routes"
    assert await account.refused("POST", path, {}) == "match: is required"
    message = await account.refused("POST", path, {"match": "/", "match_type": "regex"})
    assert message == "match_type: 'regex' is not one of exact_path, path_prefix"
