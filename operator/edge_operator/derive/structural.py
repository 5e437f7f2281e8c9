"""A pydantic JSON schema in the form the API server accepts, with the marks of declarations turned into CEL.

Source: Kubernetes, Specifying a structural schema; Validation rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

RULES = "x-kubernetes-validations"
FIXED = "cannot be changed after creation; delete and create the resource instead"
Schema = dict[str, Any]

_ORDER = (
    "type",
    "format",
    "description",
    "default",
    "enum",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "required",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    RULES,
    "items",
    "additionalProperties",
    "properties",
)
"""What is kept of a schema, in the order it is written."""


def structural(schema: Mapping[str, Any]) -> Schema:
    """The schema of a model, as `model_json_schema(by_alias=True)` gives it, without `$ref`, unions and titles."""
    return _structural(schema, schema.get("$defs", {}))


def ordered(schema: Schema) -> Schema:
    """The same schema with its keywords in one order, all the way down."""
    found = {key: schema[key] for key in _ORDER if key in schema}
    for key in ("items", "additionalProperties"):
        if key in found:
            found[key] = ordered(found[key])
    if "properties" in found:
        found["properties"] = {name: ordered(member) for name, member in found["properties"].items()}
    return found


def add_rule(schema: Schema, rule: str, message: str, expression: str = "") -> None:
    """Join a rule to those that a schema has. `expression` is CEL for a message that shows what was found."""
    entry = {"rule": rule, "message": message, **({"messageExpression": expression} if expression else {})}
    if entry not in (rules := schema.setdefault(RULES, [])):
        rules.append(entry)


def add_prefixes(schema: Schema, prefixes: Sequence[str]) -> None:
    """The string starts with one of these, for example `ipp_`. The API server's message shows the string itself."""
    rule = " || ".join(f"self.startsWith('{prefix}')" for prefix in prefixes)
    add_rule(schema, rule, f"should start with {listed(prefixes)}")


def listed(words: Sequence[str], last: str = "or") -> str:
    """`a`, `a or b`, `a, b or c`."""
    *head, tail = words
    return f"{', '.join(head)} {last} {tail}" if head else tail


def _structural(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> Schema:
    merged = _resolved(schema, defs)
    found = {key: merged[key] for key in _ORDER if key in merged and key != RULES}
    if "const" in merged:
        found["enum"] = [merged["const"]]
    if found.get("default", ...) in (None, "", []):
        del found["default"]  # absent and empty mean the same: nothing to write into anybody's resource
    if found.get("additionalProperties") is False:
        del found["additionalProperties"]  # the API server prunes what it does not know, and clients warn of it
    if "additionalProperties" in found:
        found["additionalProperties"] = _structural(found["additionalProperties"], defs)
    if "items" in found:
        found["items"] = _structural(found["items"], defs)
        _unordered(found)
    for rule in merged.get(RULES, ()):
        add_rule(found, **rule)
    if "properties" in found:
        _members(found, defs)
    _marks(found, merged)
    return found


def _resolved(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> Schema:
    """One plain schema out of references, the union with null, and what stands beside them. Rules are joined."""
    rest = dict(schema)
    while "$ref" in rest or "anyOf" in rest:
        if "$ref" in rest:
            inner = defs[rest.pop("$ref").rsplit("/", 1)[1]]
        else:
            options = [option for option in rest.pop("anyOf") if option.get("type") != "null"]
            if len(options) != 1:
                raise TypeError(f"write a OneOf instead of a union: {schema}")
            inner = options[0]
        rules = [*inner.get(RULES, ()), *rest.pop(RULES, ())]
        rest = {**inner, **rest, **({RULES: rules} if rules else {})}
    return rest


def _members(found: Schema, defs: Mapping[str, Any]) -> None:
    """The members of an object; one that is fixed may neither change, nor appear, nor disappear."""
    members: Schema = {}
    for name, raw in found["properties"].items():
        members[name] = _structural(raw, defs)
        if raw.get("x-immutable"):
            add_rule(members[name], "self == oldSelf", FIXED)
            if name not in found.get("required", ()):
                add_rule(found, f"has(self.{name}) == has(oldSelf.{name})", f"{name} {FIXED}")
    found["properties"] = members


def _unordered(found: Schema) -> None:
    """A set of objects is legal, and yet server-side apply refuses it: objects with one member are a map by it."""
    items = found["items"]
    if found.get("x-kubernetes-list-type") == "set" and items["type"] == "object":
        if len(items["properties"]) != 1:
            raise TypeError(f"an unordered list of objects needs objects with one member: {found}")
        found |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [*items["properties"]]}
        items.pop("x-kubernetes-map-type", None)


def _marks(found: Schema, merged: Mapping[str, Any]) -> None:
    """What the marks of `declare` and `api.wire` ask for, in CEL."""
    if limit := merged.get("x-max-bytes"):
        allowed = f"at most {limit} are allowed, so shorten it"
        shown = f"'has %d bytes; {allowed}'.format([bytes(self).size()])"  # a sum of strings has no bounded cost
        add_rule(found, f"bytes(self).size() <= {limit}", f"too many bytes; {allowed}", shown)
    names = merged.get("propertyNames", {})
    if longest := names.get("maxLength"):
        add_rule(found, f"self.all(k, k.size() <= {longest})", f"names have at most {longest} characters")
    if names.get("minLength"):
        add_rule(found, "self.all(k, k.size() > 0)", "names must not be empty")
    if reference := merged.get("x-reference"):
        add_prefixes(found["properties"]["id"], reference["ids"])
        if "kind" in found["properties"]:
            found["properties"]["kind"]["enum"] = list(reference["kinds"])
