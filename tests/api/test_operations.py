"""Every operation of every collection, against the endpoints as the API document writes them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from edge_operator.api import access, backends, catalog, errors, modules, profiles, wire
from edge_operator.api.client import Client
from edge_operator.api.wire import Collection

from .doubles import KEY, Service, client_of, replies

# Written by hand from the API document, Endpoints; what it marks as not shown is left out here.
DOCUMENTED = """
POST /api_keys                                  GET /api_keys
GET /api_keys/{id}                              PATCH /api_keys/{id}        DELETE /api_keys/{id}
POST /credentials                               GET /credentials
GET /credentials/{id}                           PATCH /credentials/{id}     DELETE /credentials/{id}
GET /tunnel_sessions                            GET /tunnel_sessions/{id}
POST /tunnel_sessions/{id}/restart              POST /tunnel_sessions/{id}/stop
POST /tunnel_sessions/{id}/update
POST /agent_ingresses                           GET /agent_ingresses
GET /agent_ingresses/{id}                       PATCH /agent_ingresses/{id} DELETE /agent_ingresses/{id}
POST /ssh_certificate_authorities               GET /ssh_certificate_authorities
GET /ssh_certificate_authorities/{id}           PATCH /ssh_certificate_authorities/{id}
DELETE /ssh_certificate_authorities/{id}
POST /ssh_user_certificates                     GET /ssh_user_certificates
GET /ssh_user_certificates/{id}                 DELETE /ssh_user_certificates/{id}
POST /ssh_host_certificates                     GET /ssh_host_certificates
GET /ssh_host_certificates/{id}                 PATCH /ssh_host_certificates/{id}
DELETE /ssh_host_certificates/{id}
POST /tls_certificates                          GET /tls_certificates
GET /tls_certificates/{id}                      DELETE /tls_certificates/{id}
POST /backends/weighted                         GET /backends/weighted
GET /backends/weighted/{id}                     PATCH /backends/weighted/{id}  DELETE /backends/weighted/{id}
POST /backends/failover                         GET /backends/failover
GET /backends/failover/{id}                     PATCH /backends/failover/{id}  DELETE /backends/failover/{id}
POST /edges/tcp                                 GET /edges/tcp
GET /edges/tcp/{id}                             PATCH /edges/tcp/{id}       DELETE /edges/tcp/{id}
POST /edges/tls                                 GET /edges/tls
GET /edges/tls/{id}                             PATCH /edges/tls/{id}
POST /edges/https/{edge_id}/routes
PUT /edges/https/{edge_id}/routes/{id}/backend          GET /edges/https/{edge_id}/routes/{id}/backend
DELETE /edges/https/{edge_id}/routes/{id}/backend
PUT /edges/https/{edge_id}/routes/{id}/ip_restriction   GET /edges/https/{edge_id}/routes/{id}/ip_restriction
DELETE /edges/https/{edge_id}/routes/{id}/ip_restriction
PUT /edges/https/{edge_id}/routes/{id}/circuit_breaker  GET /edges/https/{edge_id}/routes/{id}/circuit_breaker
DELETE /edges/https/{edge_id}/routes/{id}/circuit_breaker
PUT /edges/https/{edge_id}/routes/{id}/request_headers  GET /edges/https/{edge_id}/routes/{id}/request_headers
DELETE /edges/https/{edge_id}/routes/{id}/request_headers
PUT /edges/https/{edge_id}/routes/{id}/oidc             GET /edges/https/{edge_id}/routes/{id}/oidc
DELETE /edges/https/{edge_id}/routes/{id}/oidc
PUT /edges/https/{edge_id}/routes/{id}/saml             GET /edges/https/{edge_id}/routes/{id}/saml
DELETE /edges/https/{edge_id}/routes/{id}/saml
PUT /edges/https/{edge_id}/routes/{id}/oauth
PUT /edges/https/{id}/mutual_tls                GET /edges/https/{id}/mutual_tls  DELETE /edges/https/{id}/mutual_tls
POST /event_destinations                        GET /event_destinations
GET /event_destinations/{id}                    PATCH /event_destinations/{id}  DELETE /event_destinations/{id}
"""

Send = Callable[[Client], Awaitable[Any]]


def _path_ids(collection: Collection[Any]) -> dict[str, str]:
    return {"edge_id": "{edge_id}"} if "{edge_id}" in collection.path else {}


def _item(collection: Collection[Any]) -> dict[str, Any]:
    return {"id": f"{collection.prefix}1", "uri": "https://api.example.com/x", "unknown_member": 1}


def _module_answer(model: type[BaseModel]) -> dict[str, Any]:
    return {"enabled": False, "backend": {"id": "bkdwd_1"}} if model is modules.EndpointBackend else {"enabled": False}


async def _all(client: Client, collection: Collection[Any], ids: dict[str, Any]) -> list[Any]:
    return [item async for item in client.of(collection).list(**ids)]


def _command(collection: Collection[Any], name: str, ids: dict[str, str]) -> Send:
    return lambda client: client.of(collection).command("{id}", name, **ids)


def _of_module(collection: Collection[Any], name: str, ids: dict[str, str]) -> dict[str, tuple[str, Send]]:
    return {
        "put": ("PUT", lambda client: client.of(collection).put_module("{id}", name, {"enabled": False}, **ids)),
        "get": ("GET", lambda client: client.of(collection).get_module("{id}", name, **ids)),
        "delete": ("DELETE", lambda client: client.of(collection).delete_module("{id}", name, **ids)),
    }


def _operations(collection: Collection[Any]) -> list[tuple[str, str, str, bool, Send]]:
    """(verb, method, documented path, assumed, how to send it) for everything that the catalog says of a collection."""
    ids, path = _path_ids(collection), collection.path
    item = f"{path}/{{id}}"
    verbs: dict[str, tuple[str, str, Send]] = {
        "create": ("POST", path, lambda c: c.of(collection).create({}, **ids)),
        "list": ("GET", path, lambda c: _all(c, collection, ids)),
        "get": ("GET", item, lambda c: c.of(collection).get("{id}", **ids)),
        "update": ("PATCH", item, lambda c: c.of(collection).update("{id}", {}, **ids)),
        "delete": ("DELETE", item, lambda c: c.of(collection).delete("{id}", **ids)),
    }
    found = [(verb, *verbs[verb][:2], verb in collection.assumed, verbs[verb][2]) for verb in sorted(collection.verbs)]
    found += [(n, "POST", f"{item}/{n}", False, _command(collection, n, ids)) for n in collection.commands]
    found += [
        (f"{verb} {name}", method, f"{item}/{name}", verb in module.assumed, send)
        for name, module in collection.modules.items()
        for verb, (method, send) in _of_module(collection, name, ids).items()
    ]
    return found


OPERATIONS = [
    pytest.param(collection, *operation, id=f"{name}-{operation[0]}")
    for name, collection in catalog.COLLECTIONS.items()
    for operation in _operations(collection)
]


def _answer(collection: Collection[Any], verb: str, method: str) -> Any:
    if method == "DELETE" or verb in collection.commands:
        return replies(204)
    if verb == "list":
        return replies(200, {collection.items: [_item(collection)], "uri": "u", "next_page_uri": None})
    if " " in verb:
        return replies(200, _module_answer(collection.modules[verb.split()[1]].read))
    return replies(201 if verb == "create" else 200, _item(collection))


@pytest.mark.parametrize(("collection", "verb", "method", "path", "assumed", "send"), OPERATIONS)
@pytest.mark.parametrize("profile", ["neutral", "ngrok"])
async def test_an_operation_sends_what_the_document_says(
    collection: Collection[Any], verb: str, method: str, path: str, assumed: bool, send: Send, profile: str
) -> None:
    service = Service([_answer(collection, verb, method)])
    async with client_of(service, profile=profile) as client:
        answer = await send(client)

    request = service.last
    sent = request.url.raw_path.decode().replace("%7B", "{").replace("%7D", "}")
    assert (request.method, sent) == (method, path)
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers[profiles.load(profile).version_header] == "2"
    assert ("content-type" in request.headers) is (method in {"POST", "PUT", "PATCH"})
    expected = {"enabled": False} if method == "PUT" else {} if method in {"POST", "PATCH"} else None
    assert (json.loads(request.content) if request.content else None) == expected
    if method == "DELETE" or verb in collection.commands:
        assert answer is None
    elif " " in verb:
        assert isinstance(answer, collection.modules[verb.split()[1]].read)
        assert not answer.enabled  # type: ignore[attr-defined] # every module has it
    else:
        one = answer[0] if verb == "list" else answer
        assert isinstance(one, collection.read)
        assert one.id == f"{collection.prefix}1"


def test_catalog_and_document_name_the_same_operations() -> None:
    documented = {" ".join(pair) for pair in zip(DOCUMENTED.split()[::2], DOCUMENTED.split()[1::2], strict=True)}
    known = {f"{p.values[2]} {p.values[3]}": p.values[4] for p in OPERATIONS}

    assert {operation for operation, assumed in known.items() if not assumed} == documented


@pytest.mark.parametrize("name", catalog.COLLECTIONS)
def test_the_client_has_an_attribute_for_each_collection(name: str) -> None:
    assert getattr(Client("https://api.example.com", KEY), name).collection is catalog.COLLECTIONS[name]


@pytest.mark.parametrize("collection", catalog.COLLECTIONS.values(), ids=lambda c: c.name)
async def test_an_operation_that_a_collection_has_not_is_misuse(collection: Collection[Any]) -> None:
    ids = _path_ids(collection)
    service = Service([replies(200, {})])
    async with client_of(service) as client:
        of = client.of(collection)
        missing: dict[str, Callable[[], Awaitable[Any]]] = {
            "create": lambda: of.create({}, **ids),
            "get": lambda: of.get("x", **ids),
            "list": lambda: _all(client, collection, ids),
            "update": lambda: of.update("x", {}, **ids),
            "delete": lambda: of.delete("x", **ids),
        }
        for verb in wire.CRUD - collection.verbs:
            with pytest.raises(errors.Misuse, match=f"^{collection.name} has no {verb}; it has: "):
                await missing[verb]()
        with pytest.raises(errors.Misuse, match=f"^{collection.name} has no command 'explode'; it has: "):
            await of.command("x", "explode", **ids)
        for call in (of.get_module, of.delete_module):
            with pytest.raises(errors.Misuse, match=f"^{collection.name} has no module 'turbo'; it has: "):
                await call("x", "turbo", **ids)
        with pytest.raises(errors.Misuse, match=f"^{collection.name} has no module 'turbo'; it has: "):
            await of.put_module("x", "turbo", {}, **ids)

    assert service.sent == []


async def test_a_write_model_sends_what_was_set_and_null_where_none_was_given() -> None:
    service = Service([replies(200, {"id": "bkdwd_1"})])
    async with client_of(service) as client:
        await client.weighted_backends.update("bkdwd_1", backends.WeightedBackendUpdate(description=None, backends={}))
        assert json.loads(service.last.content) == {"description": None, "backends": {}}

        await client.weighted_backends.update("bkdwd_1", backends.WeightedBackendUpdate())
        assert json.loads(service.last.content) == {}


async def test_a_mapping_is_sent_as_it_is_and_left_as_it_was() -> None:
    service = Service([replies(201, {"id": "ak_1"})])
    body = {"description": "größe", "metadata": None}
    async with client_of(service) as client:
        await client.api_keys.create(body)

    assert service.last.content == '{"description":"größe","metadata":null}'.encode()
    assert body == {"description": "größe", "metadata": None}


async def test_a_model_of_another_collection_is_misuse() -> None:
    service = Service([replies(201, {"id": "ak_1"})])
    async with client_of(service) as client:
        with pytest.raises(errors.Misuse, match="weighted_backends: APIKeyCreate should be WeightedBackendCreate"):
            await client.weighted_backends.create(access.APIKeyCreate())
        with pytest.raises(errors.Misuse, match="api_keys: str should be a write model or a mapping"):
            await client.api_keys.create("{}")  # type: ignore[arg-type] # that is the point

    assert service.sent == []


async def test_raw_answers_are_the_services_own_object_in_neutral_names() -> None:
    answer = {"id": "ed_1", "target": {"datadog": {"ddtags": "a"}, "firehose": None}, "unknown_member": [1]}
    async with client_of(Service([replies(200, answer)]), profile="ngrok") as client:
        found = await client.event_destinations.raw.get("ed_1")

    assert found == {
        "id": "ed_1",
        "target": {"monitoring": {"tags": "a"}, "batch_stream": None},
        "unknown_member": [1],
    }


async def test_bodies_leave_in_the_services_names() -> None:
    service = Service([replies(200, {"enabled": True, "provider": {"github": {"teams": ["a/b"]}}})])
    body = modules.EndpointOAuthMutate(
        provider=modules.EndpointOAuthProviderMutate(code_host_a=modules.CodeHostAppMutate(teams=["a/b"]))
    )
    async with client_of(service, profile="ngrok") as client:
        found = await client.https_routes.put_module("edghtsrt_1", "oauth", body, edge_id="edghts_1")

    assert json.loads(service.last.content) == {"provider": {"github": {"teams": ["a/b"]}}}
    assert isinstance(found, modules.EndpointOAuth)
    assert found.provider is not None
    assert found.provider.code_host_a is not None
    assert found.provider.code_host_a.teams == ["a/b"]


async def test_null_stands_for_the_default_of_an_answer() -> None:
    """Services write null for an empty list or text."""
    answer = {"id": "cr_1", "acl": None, "description": None, "metadata": None, "token": None}
    async with client_of(Service([replies(200, answer)])) as client:
        found = await client.credentials.get("cr_1")

    assert (found.acl, found.description, found.metadata, found.token) == ([], "", "", None)


def test_every_member_of_an_answer_but_id_and_references_may_be_null() -> None:
    """What makes the rule above safe: dropping a null never drops a value that means something else."""
    seen: set[type[BaseModel]] = set()

    def visit(annotation: Any) -> None:
        if isinstance(annotation, type) and issubclass(annotation, wire.Wire) and annotation not in seen:
            seen.add(annotation)
            for name, field in annotation.model_fields.items():
                if type(None) in get_args(field.annotation):
                    assert field.default is None, (annotation, name)
                visit(field.annotation)
        for inner in get_args(annotation):
            visit(inner)

    for collection in catalog.COLLECTIONS.values():
        visit(collection.read)
        for module in collection.modules.values():
            visit(module.read)
    assert len(seen) > 30


async def test_an_update_or_module_that_is_answered_without_a_body_is_read() -> None:
    """The answer to an update of an event destination is not shown in the document."""
    service = Service([replies(204), replies(200, {"id": "ed_1", "description": "b"})])
    async with client_of(service) as client:
        assert (await client.event_destinations.update("ed_1", {"description": "b"})).description == "b"
        assert service.sent == ["PATCH /event_destinations/ed_1", "GET /event_destinations/ed_1"]

    service = Service([replies(204), replies(200, {"enabled": True})])
    async with client_of(service) as client:
        await client.tls_edges.put_module("edgtls_1", "mutual_tls", {})
        assert service.sent == ["PUT /edges/tls/edgtls_1/mutual_tls", "GET /edges/tls/edgtls_1/mutual_tls"]


@pytest.mark.parametrize("answer", [replies(204), replies(200, b"<html>"), replies(200, {"x": 1}), replies(202, b"ok")])
async def test_the_answer_to_a_delete_or_command_is_not_read(answer: Any) -> None:
    """The success status of some deletes is not shown in the document."""
    async with client_of(Service([answer])) as client:
        await client.api_keys.delete("ak_1")
        await client.tunnel_sessions.command("ts_1", "restart")
        await client.tls_edges.delete_module("edgtls_1", "mutual_tls")


@pytest.mark.parametrize(
    "base", ["https://api.example.com", "https://api.example.com/", "https://api.example.com/a/b/"]
)
async def test_a_base_url_may_have_a_path(base: str) -> None:
    service = Service([replies(200, {"id": "ak_1"})])
    async with client_of(service, base_url=base) as client:
        await client.api_keys.get("ak_1")

    assert str(service.last.url) == f"{base.rstrip('/')}/api_keys/ak_1"


@pytest.mark.parametrize(
    ("found", "sent"),
    [("a/b", "a%2Fb"), ("a?b#c", "a%3Fb%23c"), ("..a", "..a"), ("a b", "a%20b"), ("ü", "%C3%BC"), ("%2e", "%252e")],
)
async def test_an_id_stays_one_piece_of_the_path(found: str, sent: str) -> None:
    service = Service([replies(200, {"id": "ak_1"})])
    async with client_of(service) as client:
        await client.api_keys.get(found)

    assert service.last.url.raw_path.decode() == f"/api_keys/{sent}"


@pytest.mark.parametrize("wrong", ["", ".", "..", "a\nb", "\0", None, 7])
async def test_an_id_that_could_lead_elsewhere_is_misuse(wrong: Any) -> None:
    service = Service([replies(200, {"id": "ak_1"})])
    async with client_of(service) as client:
        with pytest.raises(errors.Misuse, match=r"^id: .* should be a non-empty string"):
            await client.api_keys.delete(wrong)
        with pytest.raises(errors.Misuse, match=r"^edge_id: "):
            await client.https_routes.get("edghtsrt_1", edge_id=wrong)

    assert service.sent == []


@pytest.mark.parametrize("ids", [{}, {"edge": "x"}, {"edge_id": "x", "other": "y"}], ids=str)
async def test_path_ids_are_those_of_the_path(ids: dict[str, str]) -> None:
    async with client_of(Service([replies(200, {})])) as client:
        with pytest.raises(errors.Misuse, match=r"^/edges/https/{edge_id}/routes: expected path ids: edge_id; given: "):
            await client.https_routes.get("edghtsrt_1", **ids)


async def test_any_request_can_be_made_by_path() -> None:
    service = Service([replies(200, {"a": 1}), replies(204)])
    async with client_of(service) as client:
        assert await client.request("GET", "/ip_policies", query={"limit": 3, "q": "a&b"}) == {"a": 1}
        assert await client.request("DELETE", "/ip_policies/ipp_1") is None
        assert service.sent == ["GET /ip_policies?limit=3&q=a%26b", "DELETE /ip_policies/ipp_1"]

        for path in (
            "ip_policies",
            "//evil.example/x",
            "/a/../b",
            "/a/%2e%2E",
            "/a?b",
            "/a#b",
            "/a b",
            "/ä",
            "",
            "/a//b",
        ):
            with pytest.raises(errors.Misuse, match=r"^path: "):
                await client.request("GET", path)
        with pytest.raises(errors.Misuse, match=r"^method: 'TRACE' should be one of DELETE, GET, PATCH, POST, PUT"):
            await client.request("TRACE", "/x")
