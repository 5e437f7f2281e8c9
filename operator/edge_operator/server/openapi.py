"""The OpenAPI document of the reference API, made from the same operations and shapes that answer the requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import version
from typing import Any, Final

from pydantic.json_schema import models_json_schema

from edge_operator.api import events, modules
from edge_operator.api.catalog import COLLECTIONS
from edge_operator.api.profiles import Profile
from edge_operator.api.wire import Body, Collection, Wire
from edge_operator.server import paging, problems
from edge_operator.server.operations import OPERATIONS, Operation
from edge_operator.server.required import REQUIRED
from edge_operator.server.rules.every import RULES
from edge_operator.server.settings import ServerSettings

Schema = dict[str, Any]
_REF: Final = "#/components/schemas/"
_REFUSALS: Final[Mapping[int | str, str]] = {
    400: "The request is invalid; `msg` names the member, parameter or header.",
    401: "There is no API key, or it is unknown or revoked.",
    403: "The caller may not do this.",
    404: "There is no such resource, or the module is not set.",
    409: "Another resource stands in the way; `msg` names it.",
    429: "Too many requests in a minute.",
    "5XX": "A fault of the server, or 503 while another process holds the database.",
}
_SUMMARIES: Final = {
    "create": "Create",
    "list": "List, newest first",
    "get": "Read",
    "update": "Change some members",
    "delete": "Delete",
    "put": "Replace the module",
}


def document(profile: Profile, settings: ServerSettings) -> dict[str, Any]:
    """The whole document, in the profile's names."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, settings)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tunnel and Edge Management API (reference)",
            "version": version("edge-operator"),
            "description": "A reference implementation. `x-assumed` marks what the API document does not show.",
        },
        "servers": [{"url": "/"}],
        "security": [{"api_key": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"api_key": {"type": "http", "scheme": "bearer", "description": "An API key's token."}},
            "parameters": {
                "version": {
                    "name": profile.version_header,
                    "in": "header",
                    "required": True,
                    "schema": {"type": "string", "enum": [profile.version]},
                    "description": "The version of the API.",
                }
            },
            "schemas": _schemas(profile),
        },
    }


def _operation(operation: Operation, settings: ServerSettings) -> dict[str, Any]:
    collection, subject = operation.collection, operation.collection.read.__name__
    what = operation.command or operation.verb
    segment = operation.module.segment if operation.module else ""
    name = ".".join(part for part in (collection.name, segment, what) if part)
    summary = _SUMMARIES.get(what, f"Tell the agent to {what}")
    return {
        "operationId": name,
        "summary": f"{summary}: {f'{segment} of ' if segment else ''}{subject}",
        "tags": [collection.name],
        **({"x-assumed": True} if operation.assumed else {}),
        "parameters": [*_parameters(operation), {"$ref": "#/components/parameters/version"}],
        **_request(operation),
        "responses": {str(operation.status): _success(operation), **_refusals(operation, settings)},
    }


def _parameters(operation: Operation) -> Iterable[dict[str, Any]]:
    for segment in operation.path.split("/"):
        if segment.startswith("{"):
            name = segment.strip("{}")
            schema = {"type": "string", "minLength": 1}
            yield {"name": name, "in": "path", "required": True, "schema": schema}
    if operation.verb == "list":
        prefix = operation.collection.prefix
        limit = {"type": "integer", "minimum": 1, "maximum": paging.LARGEST_PAGE, "default": paging.LARGEST_PAGE}
        before = {"type": "string", "pattern": f"^{prefix}[0-9A-Za-z]{{27}}$"}
        text = "Lists only what is older than this id."
        yield {"name": "limit", "in": "query", "schema": limit, "description": "At most so many items in the page."}
        yield {"name": "before_id", "in": "query", "schema": before, "description": text}


def _request(operation: Operation) -> dict[str, Any]:
    if operation.body is None:
        return {}
    schema = {"$ref": _REF + operation.body.__name__}
    return {"requestBody": {"required": operation.body_required, "content": {"application/json": {"schema": schema}}}}


def _success(operation: Operation) -> dict[str, Any]:
    if operation.answer is None:
        return {"description": "Done."}
    name = f"{operation.answer.__name__}List" if operation.verb == "list" else operation.answer.__name__
    return {"description": "Done.", "content": {"application/json": {"schema": {"$ref": _REF + name}}}}


def _refusals(operation: Operation, settings: ServerSettings) -> dict[str, Any]:
    rules = RULES[operation.collection.name]
    statuses: set[int | str] = {400, settings.unauthenticated_status, 429, "5XX"}
    if operation.verb == "create" and "owner_id" in rules.fields:
        statuses.add(403)
    if operation.path.count("{") > (operation.verb == "create"):
        statuses.add(404)
    if operation.verb == "create" and "{" in operation.path:
        statuses.add(404)
    if operation.verb in {"create", "update", "delete"} and not operation.module:
        statuses.add(409)
    content = {"application/json": {"schema": {"$ref": _REF + "Error"}}}
    found: dict[str, Any] = {
        str(status): {"description": _REFUSALS[status], "content": content} for status in sorted(statuses, key=str)
    }
    found["429"]["headers"] = {
        "Retry-After": {"schema": {"type": "string"}, "description": "In how many seconds to come back."}
    }
    found["405"] = {"description": "The address does not take this method.", "content": content}
    return found


def _schemas(profile: Profile) -> dict[str, Schema]:
    answers = _models(
        (c.read for c in COLLECTIONS.values()), (m.read for c in COLLECTIONS.values() for m in c.modules.values())
    )
    requests = _models(o.body for o in OPERATIONS if o.body)
    for schema in answers.values():
        _as_answered(schema)
    for shape, needed in REQUIRED.items():
        _require(requests[shape.__name__], needed)
    schemas = {**answers, **requests, "Error": _error(profile.error_code_prefix)}
    for name, names in _renamed(profile).items():
        schemas[name]["properties"] = {names.get(k, k): v for k, v in schemas[name]["properties"].items()}
        if "required" in schemas[name]:
            schemas[name]["required"] = [names.get(k, k) for k in schemas[name]["required"]]
    schemas.update({f"{c.read.__name__}List": _list(c) for c in COLLECTIONS.values() if "list" in c.verbs})
    return dict(sorted(schemas.items()))


def _error(prefix: str) -> Schema:
    codes = sorted(prefix + code.name for code in problems.CODES if code.name)
    return {
        "type": "object",
        "description": "Every refusal has this one shape.",
        "properties": {
            "error_code": {"enum": codes, "description": "What is wrong, for programs. Absent on a 404."},
            "status_code": {"type": "integer", "description": "The status, once more."},
            "msg": {"type": "string", "description": "Where, what was found, and what is expected, for people."},
            "details": {
                "type": "object",
                "properties": {"operation_id": {"type": "string"}},
                "required": ["operation_id"],
                "additionalProperties": {"type": "string"},
            },
        },
        "required": ["status_code", "msg", "details"],
        "additionalProperties": False,
    }


def _models(*groups: Iterable[type[Wire | Body]]) -> dict[str, Schema]:
    shapes = dict.fromkeys(shape for group in groups for shape in group)
    _, definitions = models_json_schema([(shape, "validation") for shape in shapes], ref_template=_REF + "{model}")
    found: dict[str, Schema] = definitions["$defs"]
    return found


def _as_answered(schema: Schema) -> None:
    """An answer holds every member, and no others."""
    schema["required"] = list(schema["properties"])
    schema["additionalProperties"] = False
    for member in schema["properties"].values():
        member.pop("default", None)


def _require(schema: Schema, names: Iterable[str]) -> None:
    """Members that must be given cannot be null either."""
    schema["required"] = list(names)
    for name in names:
        member = schema["properties"][name]
        member.pop("default", None)
        choices = [choice for choice in member.pop("anyOf") if choice != {"type": "null"}]
        member.update(choices[0] if len(choices) == 1 else {"anyOf": choices})


def _list(collection: Collection[Any]) -> Schema:
    items = {"type": "array", "items": {"$ref": _REF + collection.read.__name__}}
    next_page = {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "Null when there is no next page."}
    return {
        "type": "object",
        "properties": {collection.items: items, "uri": {"type": "string"}, "next_page_uri": next_page},
        "required": [collection.items, "uri", "next_page_uri"],
        "additionalProperties": False,
    }


def _renamed(profile: Profile) -> Mapping[str, Mapping[str, str]]:
    """Shapes whose members the profile names otherwise."""
    return {
        shape.__name__: dict(names)
        for names, shapes in (
            (profile.event_targets, (events.EventTarget, events.EventTargetMutate)),
            (profile.monitoring, (events.Monitoring, events.MonitoringMutate)),
            (profile.cloud_credentials, (events.AWSCreds, events.AWSCredsMutate)),
            (profile.oauth_providers, (modules.EndpointOAuthProvider, modules.EndpointOAuthProviderMutate)),
        )
        for shape in shapes
    }
