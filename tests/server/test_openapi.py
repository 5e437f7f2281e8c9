"""The OpenAPI document: complete, valid, and true of what the server answers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck
from hypothesis import settings as examples
from jsonschema_rs import meta
from schemathesis.specs.openapi import checks

from edge_operator.api import profiles
from edge_operator.api.catalog import COLLECTIONS
from edge_operator.server import openapi, problems
from edge_operator.server.app import create_app
from edge_operator.server.faults import Fault
from edge_operator.server.operations import OPERATIONS
from edge_operator.server.settings import ServerSettings

from .account import KEY, Account, settings
from .conftest import Opener

APP = create_app(settings())
SCHEMA = schemathesis.openapi.from_asgi("/openapi.json", APP)
FAULTY_APP = create_app(settings(control=True))
FAULTY_APP.faults.put(
    [
        Fault(kind="status", status=503, probability=0.2),
        Fault(kind="status", status=502, when="after", probability=0.2, seed=1),
        Fault(kind="status", status=429, retry_after="soon", probability=0.2, seed=2),
        Fault(kind="lag", lists=2),
        Fault(kind="page_size", size=1),
    ]
)
FAULTY = schemathesis.openapi.from_asgi("/openapi.json", FAULTY_APP)
CHECKS = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
]


@pytest.fixture
def document() -> dict[str, Any]:
    return openapi.document(profiles.NEUTRAL, ServerSettings())


@SCHEMA.parametrize()
@examples(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)
def test_what_the_document_allows_and_forbids_is_what_the_server_does(case: Any) -> None:
    case.headers = {**(case.headers or {}), "Authorization": f"Bearer {KEY}", "Service-Version": "2"}
    case.call_and_validate(checks=CHECKS)


@FAULTY.include(path_regex="^/(api_keys|edges/tls)").parametrize()
@examples(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)
def test_faults_are_documented_answers_too(case: Any) -> None:
    case.headers = {**(case.headers or {}), "Authorization": f"Bearer {KEY}", "Service-Version": "2"}
    case.call_and_validate(checks=CHECKS[1:5])


def test_every_operation_of_the_catalog_is_in_the_document(document: dict[str, Any]) -> None:
    found = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    assert {(operation.method, operation.path) for operation in OPERATIONS} == found
    assert len(found) == len(OPERATIONS)
    names = [item["operationId"] for path in document["paths"].values() for item in path.values()]
    assert len(set(names)) == len(names)


def test_every_operation_names_its_header_its_key_and_its_refusals(document: dict[str, Any]) -> None:
    assert document["security"] == [{"api_key": []}]
    for path, item in document["paths"].items():
        for method, operation in item.items():
            where = f"{method} {path}"
            assert {"$ref": "#/components/parameters/version"} in operation["parameters"], where
            assert {"400", "401", "429", "5XX"} <= set(operation["responses"]), where
            in_path = {p["name"] for p in operation["parameters"] if p.get("in") == "path"}
            assert set(re.findall(r"{(\w+)}", path)) == in_path, where
            assert ("404" in operation["responses"]) == bool(in_path), where


def test_every_reference_leads_somewhere_and_every_schema_is_one(document: dict[str, Any]) -> None:
    references = set(re.findall(r'"\$ref": "#/components/schemas/(\w+)"', json.dumps(document)))
    assert references | {"Error"} == set(document["components"]["schemas"])
    for schema in document["components"]["schemas"].values():
        assert meta.is_valid({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})


def test_answers_hold_every_member_and_bodies_no_unknown_one(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    for collection in COLLECTIONS.values():
        schema = schemas[collection.read.__name__]
        assert list(collection.read.model_fields) == list(schema["properties"]) == schema["required"]
    for operation in OPERATIONS:
        if operation.body:
            assert schemas[operation.body.__name__]["additionalProperties"] is False


def test_the_document_speaks_the_profiles_names() -> None:
    document = openapi.document(profiles.NGROK, ServerSettings())
    schemas = document["components"]["schemas"]
    assert document["components"]["parameters"]["version"]["name"] == "Ngrok-Version"
    assert {"firehose", "kinesis", "cloudwatch_logs", "datadog"} == set(schemas["EventTargetMutate"]["properties"])
    assert schemas["AWSCredsMutate"]["required"] == ["aws_access_key_id", "aws_secret_access_key"]
    assert "github" in schemas["EndpointOAuthProvider"]["required"]
    assert "search_vendor" not in json.dumps(document)


def test_every_code_has_its_own_name_a_meaning_and_a_use(document: dict[str, Any]) -> None:
    names = [code.name for code in problems.CODES]
    assert len(set(names)) == len(names)
    assert all(code.meaning.endswith(".") for code in problems.CODES)
    enum = document["components"]["schemas"]["Error"]["properties"]["error_code"]["enum"]
    assert {f"ERR_{name}" for name in names if name} == set(enum)
    source = "".join(file.read_text() for file in Path(problems.__file__).parent.rglob("*.py"))
    unused = [name for name, code in vars(problems).items() if code in problems.CODES and source.count(name) < 2]
    assert unused == []


async def test_it_is_served_without_a_key_and_holds_no_secret(account: Account) -> None:
    account.client.headers.clear()
    response = await account.client.get("/openapi.json")
    assert response.status_code == 200
    assert KEY not in response.text
    assert "_control" not in response.text


async def test_the_status_for_an_unknown_key_follows_the_setting(opened: Opener) -> None:
    document = (await opened(unauthenticated_status=403).client.get("/openapi.json")).json()
    responses = document["paths"]["/backends/weighted"]["get"]["responses"]
    assert "403" in responses
    assert "401" not in responses
