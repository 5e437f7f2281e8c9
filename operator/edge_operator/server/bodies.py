"""Reads a request body: strict JSON, then its shape; messages name each wrong member by its wire path."""

from __future__ import annotations

import json
import math
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NoReturn

from annotated_types import Ge, Le
from pydantic import BaseModel, ValidationError

from edge_operator.api.wire import Body
from edge_operator.server.problems import FOREIGN_TEXT, INVALID_BODY, INVALID_FIELD, Problem, shown
from edge_operator.server.required import REQUIRED

LARGEST_BODY_BYTES: Final = 1024 * 1024
_MESSAGES: Final = 5
"""At most so many wrong members are named in one answer."""

Path = tuple[str | int, ...]
Speller = Callable[[Sequence[str | int]], Path]
"""Turns a path in neutral names into one in wire names."""


def dotted(path: Path) -> str:
    """`("hostports", 1)` as `hostports[1]`, `("backends", "bkdhr_1")` as `backends.bkdhr_1`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text if len(text) <= FOREIGN_TEXT else text[:FOREIGN_TEXT] + "…"


def parse(raw: bytes) -> dict[str, Any]:
    """The JSON object in the body.

    Raises:
        Problem: too large, not UTF-8, not JSON (NaN and infinities are none), a member given twice, a lone surrogate,
            nested too deeply, or not an object.
    """
    if len(raw) > LARGEST_BODY_BYTES:
        raise Problem(INVALID_BODY, f"the body is too large; at most {LARGEST_BODY_BYTES} bytes are allowed")
    try:
        text = raw.decode()
        value = json.loads(text, object_pairs_hook=_members, parse_constant=_not_json, parse_float=_finite)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeError:
        raise Problem(INVALID_BODY, "the body is not valid UTF-8 text") from None
    except RecursionError:
        raise Problem(INVALID_BODY, "the body is nested too deeply") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise Problem(INVALID_BODY, f"the body is not valid JSON: {error.msg} at {where}") from None
    except ValueError:  # an integer with thousands of digits
        raise Problem(INVALID_BODY, "the body holds a number that is out of range") from None
    if not isinstance(value, dict):
        raise Problem(INVALID_BODY, f"the body is {_kind(value)}; a JSON object is expected")
    return value


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value] # the idiom: add returns None
        raise Problem(INVALID_BODY, f"the body gives the member {_printable(twice)} twice in one object")
    return members


def _not_json(constant: str) -> NoReturn:
    raise Problem(INVALID_BODY, f"the body holds {constant}, which is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise Problem(INVALID_BODY, "the body holds a number that is out of range")
    return number


def _printable(text: str) -> str:
    return shown(text).encode("ascii", "backslashreplace").decode()


def given(shape: type[Body], value: dict[str, Any], spell: Speller) -> dict[str, Any]:
    """The members that the body gives, checked; null counts as not given, in nested objects too.

    Raises:
        Problem: members that are unknown, of the wrong type, out of range or missing, up to five of them.
    """
    try:
        body = shape.model_validate(value)
        texts = [f"{dotted(spell(path))}: is required" for path in _missing(body, ())]
        if not texts:
            return body.model_dump(exclude_none=True)
    except ValidationError as error:
        found = error.errors(include_url=False)
        texts = list(dict.fromkeys(_message(shape, one, spell) for one in found))
    more = f"; and {len(texts) - _MESSAGES} more" if len(texts) > _MESSAGES else ""
    raise Problem(INVALID_FIELD, "; ".join(texts[:_MESSAGES]) + more)


def _missing(body: Body, path: Path) -> Iterator[Path]:
    """Where a required member is not given, in the body and in the objects within it."""
    for name in REQUIRED.get(type(body), ()):
        if getattr(body, name) is None:
            yield (*path, name)
    for name, value in body:
        if isinstance(value, Body):
            yield from _missing(value, (*path, name))


def _message(shape: type[Body], error: Any, spell: Speller) -> str:
    path = tuple(part for part in error["loc"] if part != "[key]")
    annotation, bounds = _declared(shape, path)
    where = dotted(spell(path)).encode("ascii", "backslashreplace").decode()
    return (
        f"{where}: {_reason(error, annotation, bounds, lambda name: str(spell((*path[:-1], name))[-1]), shape, path)}"
    )


_EXPECTED: Final = {
    "string_type": "a string",
    "string_unicode": "valid Unicode text",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "bool_type": "true or false",
    "float_type": "a number",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
}


def _reason(
    error: Any,
    annotation: Any,
    bounds: tuple[Any, Any],
    spell_name: Callable[[str], str],
    shape: type[Body],
    path: Path,
) -> str:
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    if kind == "extra_forbidden":
        members = sorted(
            spell_name(name) for name in _members_of(_declared(shape, path[:-1])[0] if path[1:] else shape)
        )
        return f"is not a member here; expected are {', '.join(members) or 'none'}"
    if kind == "too_many_bytes":
        return f"has {context['found']} bytes; at most {context['limit']} are allowed"
    if kind in {"greater_than_equal", "less_than_equal"}:
        return f"{_number(value)} is not in {bounds[0]}..{bounds[1]}"
    if kind == "literal_error":
        found = shown(value) if isinstance(value, str) else _number(value) if isinstance(value, int) else _kind(value)
        return f"{found} is not one of {', '.join(_choices(annotation))}"
    if kind in _EXPECTED:
        return f"is {_kind(value)}; {_EXPECTED[kind]} is expected"
    return f"is {_kind(value)}, which is not allowed here"


def _number(value: float) -> str:
    text = str(value) if isinstance(value, float) or abs(value) < 10**20 else "a number of more than 20 digits"
    return text if not isinstance(value, bool) else str(value).lower()


def _kind(value: Any) -> str:
    """What a JSON value is, without saying its content."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return "a number"
        case float():
            return "a number with a fraction"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "an object"


def _members_of(annotation: Any) -> list[str]:
    return list(annotation.model_fields) if isinstance(annotation, type) and issubclass(annotation, BaseModel) else []


def _choices(annotation: Any) -> list[str]:
    """The values of a literal type, without `""` and 0, which mean "not given"."""
    return [str(choice) for choice in typing.get_args(annotation) if choice not in ("", 0)]


def _declared(shape: type[Body], path: Path) -> tuple[Any, tuple[Any, Any]]:
    """The declared type at a path in a shape, without None, and its bounds (None where it has none)."""
    annotation: Any = shape
    low: Any = None
    high: Any = None
    for part in path:
        annotation, marks = _step(annotation, part)
        lows: list[Any] = [mark.ge for mark in marks if isinstance(mark, Ge)]
        highs: list[Any] = [mark.le for mark in marks if isinstance(mark, Le)]
        low, high = max(lows, default=None), min(highs, default=None)
    return annotation, (low, high)


def _step(annotation: Any, part: str | int) -> tuple[Any, list[Any]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        field = annotation.model_fields.get(str(part))
        return _plain(field.annotation, list(field.metadata)) if field else (None, [])
    arguments = typing.get_args(annotation)
    return _plain(arguments[-1], []) if arguments else (None, [])


def _plain(annotation: Any, marks: list[Any]) -> tuple[Any, list[Any]]:
    """The type without Optional and Annotated, and the marks found on the way."""
    origin = typing.get_origin(annotation)
    if origin in (types.UnionType, typing.Union):
        inner = next(a for a in typing.get_args(annotation) if a is not type(None))
        return _plain(inner, marks)
    if origin is typing.Annotated:
        inner, *more = typing.get_args(annotation)
        return _plain(inner, [*marks, *more])
    return annotation, marks
