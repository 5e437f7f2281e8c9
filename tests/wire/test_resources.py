"""The document's fields, held against the custom resources and their reference pages, in both directions.

Known differences are those of `resources.py`: an id becomes a reference, a secret a pointer into a Secret, a map by
child a list of children. A field that is missing on either side fails, by its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from wire import document, resources, shapes
from wire.resources import KINDS, NOT_YET, OTHERS, SHOWN, Field, Page, Schema, spelt

CRDS = resources.crds()
PAGES = resources.pages()

every_kind = pytest.mark.parametrize("kind", KINDS)
every_answer = pytest.mark.parametrize("kind", [*KINDS, *SHOWN])


def fields(kind: str) -> list[Field]:
    """Every member that the create operation takes, and the ids in its address."""
    return resources.fields(kind, CRDS[kind]["spec"])


# Which there are -----------------------------------------------------------------------------


def test_every_collection_of_the_document_has_a_resource_or_a_reason() -> None:
    collections = {o.path for o in document.OPERATIONS if o.answer in document.PREFIXES and "{id}" not in o.path}
    assert collections == {*KINDS.values(), *SHOWN.values(), *NOT_YET}
    assert not NOT_YET.keys() & {*KINDS.values(), *SHOWN.values()}
    assert all(NOT_YET.values())


def test_every_crd_and_every_page_is_of_a_known_resource_with_its_collection() -> None:
    assert CRDS.keys() == PAGES.keys() == {*KINDS, *SHOWN, *OTHERS}
    assert {kind: page.collection for kind, page in PAGES.items() if page.collection} == KINDS


def test_what_is_said_of_fields_is_said_of_members_that_there_are() -> None:
    known = {f"{field.shape}.{field.member}" for kind in KINDS for field in fields(kind)}
    known |= {f"*.{name.partition('.')[2]}" for name in known}
    assert set() == resources.FIELDS.keys() - known


def test_the_limits_of_single_fields_are_those_of_the_limits_section() -> None:
    assert document.DESCRIPTION_BYTES == resources.FIELDS["*.description"].bytes
    assert document.METADATA_BYTES == resources.FIELDS["*.metadata"].bytes
    assert document.LARGEST_WEIGHT == resources.FIELDS["WeightedBackend.backends"].high
    breaker = "EndpointCircuitBreakerMutate"
    assert document.LARGEST_NUM_BUCKETS == resources.FIELDS[f"{breaker}.num_buckets"].high
    assert document.LARGEST_ERROR_FRACTION == resources.FIELDS[f"{breaker}.error_threshold_percentage"].high
    assert document.LARGEST_UINT32 == resources.FIELDS["*.maximum_duration"].high
    sizes = resources.FIELDS["SSHCertificateAuthority.key_size"].one_of
    assert tuple(map(str, document.RSA_KEY_SIZES)) == sizes


# Specs ---------------------------------------------------------------------------------------


def _form(field: Field, schema: Schema) -> str:
    """What the schema is, in the words of the document's types."""
    properties, items = schema.get("properties", {}), schema.get("items", {})
    if properties.keys() in ({"name", "id"}, {"kind", "name", "id"}, {"id"}):
        return "reference"
    if "secretKeyRef" in properties:
        return "text" if "value" in properties else "secret"
    if schema["type"] == "array" and items["type"] == "object":
        inside = items["properties"].keys()
        if inside == {"ref", "weight"}:
            return "weights"
        return "references" if _form(field, items) == "reference" else f"objects with {sorted(inside)}"
    if schema["type"] == "object" and "additionalProperties" in schema:
        return f"map of {schema['additionalProperties']['type']}s"
    if schema["type"] == "object":
        return "tls secret" if properties.keys() == {"name"} else "part"
    return f"list of {items['type']}s" if schema["type"] == "array" else str(schema["type"])


_FORMS = {
    "str": "string",
    "time": "string",
    "bool": "boolean",
    "int": "integer",
    "float": "number",
    "list": "list of strings",
    "map": "map of strings",
    "weights": "weights",
}


def _expected(field: Field) -> str:
    if field.member in resources.UPLOADED:
        return "tls secret"
    if field.member in resources.SECRETS:
        return "secret"
    if field.member in resources.TEXTS:
        return "text"
    if field.member in resources.REFERENCES or (field.shape, field.member) == ("FailoverBackend", "backends"):
        return "references" if field.type == "list" else "reference"
    return _FORMS.get(field.type, "part")


@every_kind
def test_every_member_of_a_request_is_a_field_of_the_spec(kind: str) -> None:
    assert [] == [str(field) for field in fields(kind) if field.schema is None]


@every_kind
def test_every_field_of_a_spec_has_the_type_of_its_member(kind: str) -> None:
    found = {str(f): (_expected(f), _form(f, f.schema)) for f in fields(kind) if f.schema}
    assert {} == {name: forms for name, forms in found.items() if forms[0] != forms[1]}


def _paths(schema: Schema, known: set[str], path: str = "") -> Iterator[str]:
    """The paths of a spec's fields. A field is looked into where the document has members below it."""
    for name, inner in schema["properties"].items():
        yield path + name
        if any(other.startswith(f"{path}{name}.") for other in known):
            yield from _paths(inner, known, f"{path}{name}.")


@every_kind
def test_every_field_of_a_spec_is_a_member_of_the_document_or_the_operators(kind: str) -> None:
    known, own = {field.path for field in fields(kind)}, {*resources.OPERATORS_FIELDS[kind]}
    assert known | own == set(_paths(CRDS[kind]["spec"], known))
    assert set() == known & own


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _largest_bytes(field: Field) -> int | None:
    """Of metadata, a part is kept for the operator's marker."""
    limit = field.said.bytes
    return limit - resources.MARKER_BYTES if limit and field.member == "metadata" else limit


def _bounded(schema: Schema) -> Schema:
    """Where the bounds of a field stand: a weight's are inside the list of children."""
    inside: Schema = schema.get("items", {}).get("properties", {})
    return inside.get("weight", schema)


def _rules(schema: Schema) -> list[str]:
    return [rule["rule"] for rule in schema.get("x-kubernetes-validations", ())]


def _differences(field: Field, spec: Schema) -> Iterator[str]:
    """Where the CRD's default, enumeration or limit is not the document's."""
    schema, said = field.schema or {}, field.said
    if said.default != (_shown(schema["default"]) if "default" in schema else None):
        yield f"{field}: default is {schema.get('default')!r}, not {said.default!r}"
    if said.one_of != tuple(map(_shown, schema.get("enum", ()))):
        yield f"{field}: one of {schema.get('enum')}, not {said.one_of}"
    bounds = _bounded(schema)
    if (said.low, said.high) != (bounds.get("minimum"), bounds.get("maximum")):
        yield f"{field}: {bounds.get('minimum')} to {bounds.get('maximum')}, not {said.low} to {said.high}"
    if (limit := _largest_bytes(field)) and f"bytes(self).size() <= {limit}" not in _rules(schema):
        yield f"{field}: no limit of {limit} bytes"
    if said.keys and not any(str(list(said.keys)) in rule and field.path in rule for rule in _rules(spec)):
        yield f"{field}: names are not limited to {said.keys}"


@every_kind
def test_every_field_of_a_spec_has_the_default_and_the_limits_of_the_document(kind: str) -> None:
    assert [] == [text for field in fields(kind) if field.schema for text in _differences(field, CRDS[kind]["spec"])]


def _prefixes(schema: Schema) -> set[str]:
    """What an id starts with, by the rules of the field, wherever in it the id stands."""
    found = {prefix for rule in _rules(schema) for prefix in re.findall(r"self\.startsWith\('(\w+_)'\)", rule)}
    for inner in (schema.get("items"), *schema.get("properties", {}).values()):
        found |= _prefixes(inner) if inner else set()
    return found


@every_kind
def test_a_reference_takes_the_ids_that_its_member_takes(kind: str) -> None:
    """In the CRD and on the page; an object that is adopted has an id of its kind."""
    prefix = document.PREFIXES[resources.shape(kind)]
    assert (prefix, {prefix}) == (PAGES[kind].prefix, _prefixes(CRDS[kind]["spec"]["properties"]["externalID"]))
    for field in fields(kind):
        wanted = set(resources.PREFIXES.get(field.member, ()))
        if field.type not in shapes.SENT:
            assert wanted == _prefixes(field.schema or {}), field
        rows = [PAGES[kind].row(path) or ("", "") for path in (field.path, f"{field.path}[].ref")]
        assert [] == [p for p in wanted if f"`{p}`" not in rows[0][1] + rows[1][1]], field


# Reference pages: specs ----------------------------------------------------------------------


def _wanted_words(field: Field) -> Iterator[str]:
    """What the page has to say of the field, besides its meaning."""
    said = field.said
    if said.default:
        yield f"Default: `{said.default}`."
    yield from (f"`{value}`" for value in said.one_of)
    yield from said.keys
    yield from said.settled or ()
    if said.high is not None:
        yield f"{said.low} to {said.high}"
    if limit := _largest_bytes(field):
        yield f"at most {limit:,} bytes"


def _missing(field: Field, page: Page) -> Iterator[str]:
    row = page.row(field.path)
    if row is None:
        yield f"{field}: no row"
        return
    wire = f"`{{{field.member}}}` in the address" if field.type == "id" else f"`{field.member}`"
    if wire not in row[2]:
        yield f"{field}: {row[2]} is no {wire}"
    text = row[1]
    if field.type == "weights":
        name, value = (page.row(f"{field.path}[].{child}") or ("", "", "") for child in ("ref", "weight"))
        text += value[1]
        if (name[2], value[2]) != (f"a name in {wire}", f"its value in {wire}"):
            yield f"{field}: children travel as {name[2]!r} and {value[2]!r}"
    yield from (f"{field}: does not say {word!r}" for word in _wanted_words(field) if word not in text)


@every_kind
def test_the_reference_page_has_every_member_of_a_request_with_its_default_and_limits(kind: str) -> None:
    assert [] == [text for field in fields(kind) for text in _missing(field, PAGES[kind])]


@pytest.mark.parametrize("kind", CRDS)
def test_the_reference_page_has_the_fields_of_the_crd_and_no_others(kind: str) -> None:
    def there(path: str, schema: Schema) -> bool:
        name, _, rest = path.partition(".")
        inner = schema.get("properties", {}).get(name.removesuffix("[]"))
        inner = inner["items"] if inner and name.endswith("[]") else inner
        return bool(inner) and (not rest or there(rest, inner))

    for part, rows in (("spec", PAGES[kind].spec), ("status", PAGES[kind].status)):
        assert rows
        assert [] == [path for path in rows if not there(path, CRDS[kind][part])], part
        assert set() == CRDS[kind][part]["properties"].keys() - rows.keys(), part


@every_kind
def test_the_reference_page_says_that_the_operators_fields_are_never_sent(kind: str) -> None:
    own = {path: PAGES[kind].row(path) for path in resources.OPERATORS_FIELDS[kind]}
    assert [] == [path for path, row in own.items() if row is None or row[2] != "never sent"]


# Statuses ------------------------------------------------------------------------------------


def _unsaid(shape: str, answer: dict[str, str], body: dict[str, str], path: str = "") -> Iterator[tuple[str, str, str]]:
    """The members of an answer that no field of the spec says: path, shape and member, and type."""
    for member, kind in answer.items():
        sent_as = resources.RETURNED.get(member, member)
        known = body.get(sent_as) or body.get(member)
        if known is None:
            yield f"{path}{member}", f"{shape}.{member}", kind
        elif known in shapes.SENT and kind.strip("?") in shapes.ANSWERED:
            inner = kind.strip("?")
            yield from _unsaid(inner, shapes.ANSWERED[inner], shapes.SENT[known], f"{path}{member}.")


def unsaid(kind: str) -> list[tuple[str, str, str]]:
    shape = resources.shape(kind)
    return list(_unsaid(shape, shapes.ANSWERED[shape], resources.body(kind)))


def _status(kind: str, path: str) -> Schema | None:
    schema: Schema | None = CRDS[kind]["status"]
    for part in path.split("."):
        properties = (schema or {}).get("properties", {})
        schema = properties.get(spelt(part, properties))
    return schema


@every_answer
def test_every_member_of_an_answer_that_the_spec_does_not_say_is_in_the_status_or_left_out_for_a_reason(
    kind: str,
) -> None:
    absent = {member for path, member, _ in unsaid(kind) if _status(kind, path) is None}
    shape = resources.shape(kind)
    assert absent == {member for member in resources.LEFT_OUT if member.partition(".")[0] == shape}


@every_answer
def test_a_member_of_a_status_has_the_type_of_the_answers(kind: str) -> None:
    words = {"bool": "boolean", "int": "integer", "list": "array"}
    for path, member, type_ in unsaid(kind):
        if schema := _status(kind, path):
            plain = type_.strip("?")
            assert schema["type"] == ("object" if plain in shapes.ANSWERED else words.get(plain, "string")), member
            if plain in shapes.ANSWERED:
                below = {name.replace("_", "").lower() for name in shapes.ANSWERED[plain]}
                assert below == {name.lower() for name in schema["properties"]}, member


@every_answer
def test_what_the_service_settles_when_the_spec_leaves_it_open_is_in_the_status(kind: str) -> None:
    """The end of a certificate and the owner of a token. What a module is left open in stays with the service."""
    open_ = [f for f in fields(kind) if "." not in f.path and (f.said.settled is not None or f.member == "owner_id")]
    texts = [field.path for field in open_ if field.type in {"str", "time"}]
    assert [] == [path for path in texts if path not in CRDS[kind]["status"]["properties"]]


def _leaves(schema: Schema, path: str = "") -> Iterator[str]:
    for name, inner in schema.get("properties", {}).items():
        yield path + name
        yield from _leaves(inner, f"{path}{name}.")


@every_answer
def test_a_status_has_nothing_else_and_no_secret(kind: str) -> None:
    whole = {path.replace("_", "").lower() for path, _, _ in unsaid(kind)}
    known = whole | {field.path.lower() for field in fields(kind)}
    status = CRDS[kind]["status"]["properties"]
    others = {"properties": {name: status[name] for name in status.keys() - resources.OPERATORS_STATUS}}
    leaves = {path: path.lower() for path in _leaves(others)}
    assert [] == [p for p, low in leaves.items() if low not in known and low.rpartition(".")[0] not in whole]
    secrets = {name.replace("_", "").lower() for name in resources.SECRETS}
    assert [] == [path for path, low in leaves.items() if low.rpartition(".")[2] in secrets]


@every_answer
def test_the_reference_page_has_every_member_of_the_status(kind: str) -> None:
    own = [name for name in CRDS[kind]["status"]["properties"] if name in resources.OPERATORS_STATUS]
    paths = [path for path, _, _ in unsaid(kind) if _status(kind, path) is not None]
    rows = {path.replace(".", "").lower() for path in PAGES[kind].status}
    assert [] == [path for path in (*own, *paths) if path.replace("_", "").replace(".", "").lower() not in rows]
    assert len(PAGES[kind].status) == len(set(PAGES[kind].status))
