"""The fields of a spec and of a status as rows of a table: what a reader of the reference looks up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from edge_operator.declare import Part, TLSSecretRef
from edge_operator.derive.structural import RULES, Schema, listed
from edge_operator.engine import project
from edge_operator.policies import Publishing


@dataclass(frozen=True)
class Row:
    """One field, at `path` below `spec`."""

    path: str
    type: str
    required: bool
    meaning: str
    wire: str


@dataclass
class Table:
    """The rows of a spec, and the rules over several fields that were met on the way, as (path, message)."""

    rows: list[Row] = field(default_factory=list)
    rules: list[tuple[str, str]] = field(default_factory=list)
    seen: dict[type[Part], str] = field(default_factory=dict)


def spec(part: type[Part], schema: Schema) -> Table:
    """Every field of a spec with this structural schema, those that all specs have last. No shape is shown twice."""
    table = Table()
    _walk(table, part, schema, "", sent=True)
    table.rows.sort(key=lambda row: row.path.split(".")[0] in _SHARED)
    return table


_SHARED = frozenset(shared.alias for shared in project.fields(Publishing))


def _walk(
    table: Table, part: type[Part], schema: Schema, path: str, *, sent: bool, within: project.Field | None = None
) -> None:
    table.rules += [(f"spec.{path}".rstrip("."), rule.message) for rule in part.rules]
    for member in project.fields(part):
        child = schema["properties"][member.alias]
        here = path + member.alias
        known = table.seen.get(member.part) if member.part else None
        tls = part.model_fields[member.name].annotation is TLSSecretRef
        kind = "Secret of the type kubernetes.io/tls" if tls else _type(member, child)
        kind += f" like `{known}`" if known else ""
        travels = sent and not member.local
        meaning = " ".join((child["description"], *_notes(member, child)))
        wires = ", ".join(f"`{wire}`" for wire in TLSSecretRef.wires) if tls else _wire(member, within)
        wire = wires if travels else "never sent"
        table.rows.append(Row(here, kind, member.alias in schema.get("required", ()), meaning, wire))
        if member.part and not known:
            entry = f"{here}[]" if child["type"] == "array" else here
            table.seen[member.part] = entry
            _walk(table, member.part, child.get("items", child), f"{entry}.", sent=travels, within=member)


def _type(member: project.Field, schema: Schema) -> str:
    if member.secret:
        return "text, or value from a Secret" if "value" in schema["properties"] else "value from a Secret"
    match schema:
        case {"type": "array", "items": {"type": inner}}:
            return f"list of {'reference' if member.reference else inner}s"
        case {"additionalProperties": {"type": inner}}:
            return f"map of {inner}s"
        case {"pattern": str(pattern)} if "h)" in pattern:
            return "duration"
        case _:
            return "reference" if member.reference else str(schema["type"])


def _wire(member: project.Field, within: project.Field | None) -> str:
    if within and within.keyed:  # a list here, a map on the wire
        return f"{'a name' if member.name == within.keyed.by else 'its value'} in `{within.wire}`"
    return f"`{{{member.in_path}}}` in the address" if member.in_path else f"`{member.wire}`"


def _notes(member: project.Field, schema: Schema) -> Iterator[str]:
    if "default" in schema:
        yield f"Default: `{shown(schema['default'])}`."
    if "enum" in schema:
        yield f"One of {listed([f'`{shown(value)}`' for value in schema['enum']])}."
    yield from _limits(schema)
    if member.reference:
        prefixes = listed([f"`{prefix}`" for prefix in member.reference.ids])
        by_id = f"by an id that starts with {prefixes}."
        kinds = member.reference.kinds
        yield f"{listed(kinds)} of the same namespace by name, or {by_id}" if kinds else f"B{by_id[1:]}"
    texts = (
        (member.immutable, "Fixed at creation."),
        (member.reissues, "A change issues a new one."),
        (member.unordered, "Order has no meaning."),
        (member.keyed, "Order has no meaning; each may stand here once."),
        (member.caseless, "Case has no meaning."),
        (member.module, "Removed from the remote object when absent."),
        (member.module and member.module.protects, "Protects: goes on before other changes and comes off after them."),
    )
    yield from (text for applies, text in texts if applies)


def _limits(schema: Schema) -> Iterator[str]:
    if any("bytes(self)" in rule["rule"] for rule in schema.get(RULES, ())):
        return  # the description says how many
    ranges = (
        ("minimum", "maximum", ""),
        ("minItems", "maxItems", " entries"),
        ("minProperties", "maxProperties", " entries"),
        ("minLength", "maxLength", " characters"),
    )
    for low, high, unit in ranges:
        if low in schema and high in schema:
            yield f"{schema[low]} to {schema[high]}{unit}."
        elif high in schema:
            yield f"At most {schema[high]}{unit}."


def shown(value: Any) -> str:
    """A value as it is written in YAML."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def status(schema: Schema, path: str = "") -> Iterator[tuple[str, str, str]]:
    """Path, type and meaning of every member of a status."""
    properties: Mapping[str, Schema] = schema["properties"]
    for name, child in properties.items():
        match child:
            case {"type": "array", "items": {"type": inner}}:
                kind = f"list of {inner}s"
            case {"additionalProperties": {"type": inner}}:
                kind = f"map of {inner}s"
            case _:
                kind = str(child["type"])
        yield path + name, kind, child["description"]
        if "properties" in child:
            yield from status(child, f"{path}{name}.")
