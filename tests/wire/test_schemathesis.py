"""The OpenAPI document is valid, and the server keeps to it, whatever schemathesis makes of it.

No answer is a 5xx, has a status or a member that the document does not have, or another content type; a body that the
document does not allow is refused. One pytest item for each operation, each with an account of its own, so that the
outcome does not depend on what ran before. Everything is drawn from one seed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any, Final

import hypothesis
import jsonschema
import pytest
import schemathesis
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.core.parameters import ParameterLocation
from schemathesis.specs.openapi import checks

from edge_operator.server import app as server
from edge_operator.server.settings import ServerSettings
from wire import sensible
from wire.api import TOKEN, serving

SEED: Final = 20260101
_CHECKS: Final = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
_SETTINGS: Final = hypothesis.settings(deadline=None, suppress_health_check=list(hypothesis.HealthCheck))
_FAULTS: Final = {"faults": [{"kind": "latency", "seconds": 0.002}, {"kind": "page_size", "size": 3}]}


def _document() -> dict[str, Any]:
    app = server.create_app(ServerSettings())
    try:
        found: dict[str, Any] = json.loads(app._openapi)
    finally:
        app.close()
    return found


DOCUMENT: Final = _document()


def _schema(examples: int, *, boundaries: bool) -> Any:
    generation = {"max-examples": examples, "deterministic": True, "database": "none", "mode": "all"}
    phases = {"coverage": {"enabled": boundaries}, "examples": {"enabled": False}}
    config = SchemathesisConfig.from_dict({"seed": SEED, "generation": generation, "phases": phases})
    return schemathesis.openapi.from_dict(DOCUMENT, config=config)


every = _schema(8, boundaries=True)
with_faults = _schema(4, boundaries=False)


class Account:
    """An application with one of everything in it, renewed when something of it was deleted."""

    def __init__(self, faults: dict[str, Any]) -> None:
        self.app = server.create_app(ServerSettings(seed_api_key=TOKEN, control=True))
        self.ids = asyncio.run(sensible.filled(self.app, faults))
        self._drawn = 0

    def call(self, case: schemathesis.Case[Any]) -> None:
        self._drawn += 1
        components = case.meta.components if case.meta else {}
        negated = {place for place, info in components.items() if info.mode is GenerationMode.NEGATIVE}
        if ParameterLocation.PATH not in negated and self._drawn % 4:
            sensible.point_at_what_exists(case, self.ids)
        if not negated and self._drawn % 2:
            case.body = sensible.body(case.body, self.ids, self._drawn)
        response = case.call(headers={"Authorization": f"Bearer {TOKEN}"}, app=self.app)
        # A header that is wrong is replaced by the right one here, so only a body or a query counts as refusable.
        refusable = negated in ({ParameterLocation.BODY}, {ParameterLocation.QUERY})
        case.validate_response(response, checks=[*_CHECKS, *([checks.negative_data_rejection] if refusable else [])])
        if response.status_code == 204:
            asyncio.run(sensible.renew(self.app, case, self.ids))


_ACCOUNTS: dict[str, Account] = {}


@pytest.fixture(scope="module", autouse=True)
def _closed() -> Iterator[None]:
    yield
    for account in _ACCOUNTS.values():
        account.app.close()


def _account(case: schemathesis.Case[Any], faults: dict[str, Any]) -> Account:
    name = f"{case.operation.label} {bool(faults)}"
    if name not in _ACCOUNTS:
        print(f"seed {SEED}")
        _ACCOUNTS[name] = Account(faults)
    return _ACCOUNTS[name]


@every.parametrize()
@_SETTINGS
def test_the_server_keeps_to_its_openapi_document(case: schemathesis.Case[Any]) -> None:
    _account(case, {}).call(case)


@with_faults.parametrize()
@_SETTINGS
def test_the_server_keeps_to_its_openapi_document_while_it_is_slow_and_pages_are_small(
    case: schemathesis.Case[Any],
) -> None:
    _account(case, _FAULTS).call(case)


def test_the_openapi_document_is_valid() -> None:
    every.validate()
    for name, schema in DOCUMENT["components"]["schemas"].items():
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object", name


def test_the_validation_of_openapi_documents_notices_an_error() -> None:
    broken = {**DOCUMENT, "paths": {"/api_keys": {"get": {"responses": {"200": {}}}}}}
    with pytest.raises(Exception, match="description"):
        schemathesis.openapi.from_dict(broken).validate()


def test_every_reference_in_the_openapi_document_leads_somewhere_and_every_schema_is_used() -> None:
    text = json.dumps(DOCUMENT)
    used = {reference.partition('"')[0] for reference in text.split('"$ref": "#/components/schemas/')[1:]}
    assert used == DOCUMENT["components"]["schemas"].keys()


def test_operation_ids_are_unique() -> None:
    ids = [row["operationId"] for methods in DOCUMENT["paths"].values() for row in methods.values()]
    assert len(ids) == len(set(ids))


async def test_the_openapi_document_speaks_the_names_of_the_profile() -> None:
    async with serving(profile="ngrok") as api:
        document = (await api.client.get("/openapi.json")).json()
    assert "Ngrok-Version" == document["components"]["parameters"]["version"]["name"]
    assert "firehose" in document["components"]["schemas"]["EventTarget"]["properties"]
    assert "monitoring" not in document["components"]["schemas"]["EventTargetMutate"]["properties"]
