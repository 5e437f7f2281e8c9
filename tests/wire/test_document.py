"""The document's tables, held against everything that is written from them: catalog, wire models, OpenAPI and client.

A row that is missing on either side fails, by its name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, get_args

import httpx
import pytest
from pydantic import BaseModel

from edge_operator.api import catalog, client, retry, wire
from wire import account, document, shapes
from wire.api import serving
from wire.document import OPERATIONS, Operation

VERBS = {
    ("POST", False): "create", ("GET", False): "list", ("GET", True): "get", ("PATCH", True): "update",
    ("DELETE", True): "delete",
}  # fmt: skip
COMMANDS = {"restart", "stop", "update"}


def _parts(operation: Operation) -> tuple[str, str, str]:
    """Path of the collection, verb, and module or command: `("/edges/tcp", "put", "backend")`."""
    collection, item, rest = operation.path.partition("/{id}")
    rest = rest.removeprefix("/")
    if rest in COMMANDS:
        return collection, "command", rest
    if rest:
        return collection, operation.method.lower(), rest
    return collection, VERBS[operation.method, bool(item)], ""


def _catalogued() -> Iterator[tuple[str, str, str]]:
    for collection in catalog.COLLECTIONS.values():
        yield from ((collection.path, verb, "") for verb in collection.verbs)
        yield from ((collection.path, "command", command) for command in collection.commands)
        for segment in collection.modules:
            yield from ((collection.path, verb, segment) for verb in ("put", "get", "delete"))


def _collection(operation: Operation) -> wire.Collection[Any]:
    path = _parts(operation)[0]
    return next(c for c in catalog.COLLECTIONS.values() if c.path == path)


def _read_models(operation: Operation) -> type[BaseModel]:
    collection = _collection(operation)
    return collection.modules[operation.module].read if operation.module else collection.read


def _write_model(operation: Operation) -> type[BaseModel] | None:
    collection = _collection(operation)
    if operation.module:
        return collection.modules[operation.module].write
    return {"POST": collection.create, "PATCH": collection.update}[operation.method]


def _inner(annotation: Any) -> type[BaseModel] | None:
    """The model in `X | None`, `list[X]` and the like."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_inner, get_args(annotation))), None)


def _differences(where: str, fields: dict[str, str], model: type[BaseModel], known: dict[str, Any]) -> Iterator[str]:
    """Where a model's members are not those of the document, at any depth."""
    for name in fields.keys() ^ model.model_fields.keys():
        yield f"{where}: {name} is only in {'the document' if name in fields else model.__name__}"
    for name in fields.keys() & model.model_fields.keys():
        kind, inner = fields[name].strip("[]?"), _inner(model.model_fields[name].annotation)
        if (kind in known) != (inner is not None):
            yield f"{where}.{name}: is {fields[name]} in the document and {inner} in {model.__name__}"
        elif inner is not None:
            yield from _differences(f"{where}.{name}", known[kind], inner, known)


def test_the_catalog_has_the_operations_of_the_document() -> None:
    assert {_parts(operation) for operation in OPERATIONS} == set(_catalogued())


def test_the_catalog_marks_as_assumed_what_the_document_does_not_show() -> None:
    for operation in OPERATIONS:
        collection, (_, verb, segment) = _collection(operation), _parts(operation)
        assumed = collection.modules[segment].assumed if operation.module else collection.assumed
        assert operation.assumed == (verb in assumed), f"{operation}: {operation.section}"


def test_the_catalog_names_lists_as_the_document_does() -> None:
    for operation in OPERATIONS:
        if operation.items:
            assert operation.items == _collection(operation).items, operation


def test_the_catalog_has_the_prefixes_of_the_document() -> None:
    shown = {operation.answer: _collection(operation).prefix for operation in OPERATIONS if operation.status == 201}
    assert {**document.PREFIXES} == {**shown, "TunnelSession": catalog.tunnel_sessions.prefix}
    assert document.REFERENCED_PREFIXES == catalog.REFERENCED_ONLY.keys()


@pytest.mark.parametrize("operation", [o for o in OPERATIONS if o.answer], ids=str)
def test_the_models_of_answers_have_the_members_of_the_document(operation: Operation) -> None:
    fields = shapes.ANSWERED[operation.answer or ""]
    assert [] == list(_differences(operation.answer or "", fields, _read_models(operation), shapes.ANSWERED))


@pytest.mark.parametrize("operation", [o for o in OPERATIONS if o.sent], ids=str)
def test_the_models_of_requests_have_the_members_of_the_document(operation: Operation) -> None:
    model = _write_model(operation)
    assert model is not None
    assert [] == list(_differences(str(operation), operation.sent or {}, model, shapes.SENT))


def test_every_shape_of_the_document_is_one_of_an_operation() -> None:
    def below(names: set[str], known: dict[str, Any]) -> set[str]:
        more = {kind.strip("[]?") for name in names for kind in known[name].values()} & known.keys()
        return names if more <= names else below(names | more, known)

    answered = {operation.answer for operation in OPERATIONS if operation.answer}
    sent = {kind for operation in OPERATIONS for kind in (operation.sent or {}).values()} & shapes.SENT.keys()
    sent |= {name for name, fields in shapes.SENT.items() if fields in [operation.sent for operation in OPERATIONS]}
    assert below(answered, shapes.ANSWERED) == set(shapes.ANSWERED)
    assert below(sent, shapes.SENT) == set(shapes.SENT)


async def _openapi(**settings: Any) -> dict[str, Any]:
    async with serving(**settings) as api:
        found: dict[str, Any] = (await api.client.get("/openapi.json")).json()
        return found


def _resolved(schema: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        return _resolved(whole["components"]["schemas"][schema["$ref"].rpartition("/")[2]], whole)
    if "anyOf" in schema:
        return next((_resolved(one, whole) for one in schema["anyOf"] if one.get("type") != "null"), schema)
    return _resolved(schema["items"], whole) if schema.get("type") == "array" else schema


def _in_openapi(
    where: str, fields: dict[str, str], schema: dict[str, Any], whole: dict[str, Any], known: dict[str, Any]
) -> Iterator[str]:
    members = _resolved(schema, whole).get("properties", {})
    for name in fields.keys() ^ members.keys():
        yield f"{where}: {name} is only in {'the document' if name in fields else 'OpenAPI'}"
    for name in fields.keys() & members.keys():
        if (kind := fields[name].strip("[]?")) in known:
            yield from _in_openapi(f"{where}.{name}", known[kind], members[name], whole, known)


async def test_openapi_has_the_operations_of_the_document_with_their_statuses() -> None:
    whole = await _openapi()
    shown = {
        (method.upper(), path, int(status), row.get("x-assumed", False))
        for path, methods in whole["paths"].items()
        for method, row in methods.items()
        for status in row["responses"]
        if status.startswith("2")
    }
    assert {(o.method, o.path, o.status, o.assumed) for o in OPERATIONS} == shown


async def test_openapi_has_the_members_of_the_document_in_both_directions() -> None:
    whole = await _openapi()
    found: list[str] = []
    for operation in OPERATIONS:
        row = whole["paths"][operation.path][operation.method.lower()]
        if operation.answer:
            schema = row["responses"][str(operation.status)]["content"]["application/json"]["schema"]
            if operation.items:
                members = _resolved(schema, whole)["properties"]
                assert {operation.items, "uri", "next_page_uri"} == members.keys(), operation
                schema = members[operation.items]
            found += _in_openapi(str(operation), shapes.ANSWERED[operation.answer], schema, whole, shapes.ANSWERED)
        else:
            assert "content" not in row["responses"]["204"], operation
        if operation.sent is None:
            assert "requestBody" not in row, operation
        else:
            schema = row["requestBody"]["content"]["application/json"]["schema"]
            found += _in_openapi(str(operation), operation.sent, schema, whole, shapes.SENT)
    assert [] == found


async def test_openapi_has_the_parameters_of_every_operation() -> None:
    whole = await _openapi()
    for operation in OPERATIONS:
        rows = whole["paths"][operation.path][operation.method.lower()]["parameters"]
        rows = [whole["components"]["parameters"][r["$ref"].rpartition("/")[2]] if "$ref" in r else r for r in rows]
        path = {("path", part.strip("{}"), True) for part in operation.path.split("/") if part.startswith("{")}
        paging = {("query", "limit", False), ("query", "before_id", False)} if operation.items else set()
        shown = {(row["in"], row["name"], row.get("required", False)) for row in rows}
        assert {*path, *paging, ("header", "Service-Version", True)} == shown, operation


async def test_openapi_has_the_limits_of_the_document() -> None:
    schemas = (await _openapi())["components"]["schemas"]

    def member(schema: str, name: str) -> dict[str, Any]:
        row = schemas[schema]["properties"][name]
        found: dict[str, Any] = next((one for one in row.get("anyOf", []) if one.get("type") != "null"), row)
        return found

    assert document.DESCRIPTION_BYTES == member("APIKeyCreate", "description")["maxLength"]
    assert document.METADATA_BYTES == member("APIKeyCreate", "metadata")["maxLength"]
    weight = member("WeightedBackendCreate", "backends")["additionalProperties"]
    assert ("integer", 0, document.LARGEST_WEIGHT) == (weight["type"], weight["minimum"], weight["maximum"])
    breaker = "EndpointCircuitBreakerMutate"
    assert document.LARGEST_NUM_BUCKETS == member(breaker, "num_buckets")["maximum"]
    fraction = member(breaker, "error_threshold_percentage")
    assert (0, document.LARGEST_ERROR_FRACTION) == (fraction["minimum"], fraction["maximum"])
    for name in ("tripped_duration", "rolling_window", "volume_threshold"):
        assert (0, document.LARGEST_UINT32) == (member(breaker, name)["minimum"], member(breaker, name)["maximum"])
    assert {*document.RSA_KEY_SIZES, 0} == {*member("SSHCertificateAuthorityCreate", "key_size")["enum"]}


class _Recorder:
    """A service that answers every request with something its reader accepts, and remembers what was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append((request.method, request.url.path))
        if request.method == "DELETE" or request.url.path.rpartition("/")[2] in COMMANDS:
            return httpx.Response(204)
        items: dict[str, Any] = {o.items: [] for o in OPERATIONS if o.items}
        ref = {"id": "bkdhr_1", "uri": ""}
        return httpx.Response(200, content=json.dumps({"id": "x_1", "backend": ref, "next_page_uri": None, **items}))


async def _call(caller: client.Client, operation: Operation) -> None:
    _, verb, segment = _parts(operation)
    collection = getattr(caller, _collection(operation).name)
    ids = {"edge_id": "edghts_1"} if "{edge_id}" in operation.path else {}
    if operation.module:
        method = getattr(collection.raw, f"{verb}_module")
        body = [account.MODULES[segment]] if verb == "put" else []
        await method("x_1", segment, *body, **ids)
    elif verb == "command":
        await collection.command("x_1", segment)
    elif verb == "list":
        assert [] == [item async for item in collection.list()]
    else:
        arguments: list[Any] = [] if verb == "create" else ["x_1"]
        await getattr(collection.raw, verb)(*arguments, *([{}] if verb in {"create", "update"} else []), **ids)


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
async def test_the_client_has_a_method_for_every_operation_of_the_document(operation: Operation) -> None:
    service = _Recorder()
    transport = httpx.MockTransport(service)
    async with client.Client("https://api.example.com", "key", transport=transport, retry=retry.NEVER) as caller:
        await _call(caller, operation)
    assert [(operation.method, operation.path.format(edge_id="edghts_1", id="x_1"))] == service.asked
