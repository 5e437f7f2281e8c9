"""What an answer should look like, and where it does not.

In expected JSON, a string in angle brackets stands for what cannot be known beforehand:

    <any> <text> <bool> <int or null> …   a value of that type; <text> is a string that is not empty
    <time>                                 RFC 3339 in UTC, 2026-01-02T03:04:05Z
    <id ak_>                               the prefix and 27 letters or digits
    <token>                                27 and 21 letters or digits with `_` between
    <uri>                                  an address on the host that the caller used
    <like REGEX>                           the whole string matches
    <255 bytes> <255 bytes of é>           so many bytes of text; in requests, too
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from wire import document, shapes

_PATHS: Final = {
    o.answer: o.path for o in document.OPERATIONS if o.answer in document.PREFIXES and o.path.endswith("}")
}
_BYTES: Final = re.compile(r"<(\d+) bytes(?: of (.))?>")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "str": str, "bool": bool, "int": int, "float": (int, float), "list": list, "map": dict,
}  # fmt: skip
ID_LENGTH: Final = 27
_PATTERN: Final = re.compile(
    r"<(any|text|time|token|uri|id \w+|like .+|(?:str|bool|int|float|list|map)(?: or null)?)>", re.DOTALL
)


class Resource(dict[str, Any]):
    """The members of an answer of a known shape."""

    def __init__(self, shape: str, members: Mapping[str, Any]) -> None:
        super().__init__(members)
        self.shape = shape


def complete(kind: str, given: Any) -> Any:
    """What is given, with everything that an answer of this type has besides."""
    kind = kind.removesuffix("?")
    if kind.startswith("[") and isinstance(given, list):
        return [complete(kind[1:-1], item) for item in given]
    if kind not in shapes.ANSWERED or not isinstance(given, dict):
        return given
    fields = shapes.ANSWERED[kind]
    assert given.keys() <= fields.keys(), f"{kind} has no member {given.keys() - fields.keys()}"
    return Resource(kind, {n: complete(t, given[n]) if n in given else _default(kind, n, t) for n, t in fields.items()})


def _default(shape: str, name: str, kind: str) -> Any:
    """What a member is when a transcript does not say. Source: API document, Conventions 3, 5, 6 and 7."""
    if name in {"description", "metadata"}:
        return ""
    if name == "enabled":
        return True
    if kind == "id":
        return f"<id {document.PREFIXES[shape]}>"
    if kind in {"uri", "time"}:
        return f"<{kind}>"
    if kind.startswith("[") or kind == "list":
        return []
    if kind in {"map", "weights"}:
        return {}
    if kind.endswith("?"):
        kind = kind.removesuffix("?")
        return None if kind in shapes.ANSWERED or kind == "time" else f"<{kind} or null>"
    return complete(kind, {}) if kind in shapes.ANSWERED else f"<{kind}>"


def differences(expected: Any, found: Any, base: str, where: str = "answer") -> Iterator[str]:
    """One sentence for each place where the answer is not as expected."""
    if isinstance(expected, Mapping):
        yield from _in_object(expected, found, base, where)
    elif isinstance(expected, list):
        if not isinstance(found, list) or len(found) != len(expected):
            yield f"{where}: {found!r} should have {len(expected)} items"
            return
        for index, (one, other) in enumerate(zip(expected, found, strict=True)):
            yield from differences(one, other, base, f"{where}[{index}]")
    elif isinstance(expected, str) and (pattern := _PATTERN.fullmatch(expected)):
        if not _fits(pattern[1], found, base):
            yield f"{where}: {found!r} should be {expected}"
    elif expected != found or type(expected) is not type(found):
        yield f"{where}: {found!r} should be {expected!r}"


def _in_object(expected: Mapping[str, Any], found: Any, base: str, where: str) -> Iterator[str]:
    if not isinstance(found, dict):
        yield f"{where}: {found!r} should be an object"
        return
    for name in expected.keys() - found.keys():
        yield f"{where}: has no member {name}"
    for name in found.keys() - expected.keys():
        yield f"{where}: has a member {name} that it should not have"
    for name in expected.keys() & found.keys():
        yield from differences(expected[name], found[name], base, f"{where}.{name}")
    if isinstance(expected, Resource) and isinstance(found.get("uri"), str):
        address = _address(expected.shape, found)
        if address is not None and found["uri"] != base + address:
            yield f"{where}.uri: {found['uri']!r} should be {base + address!r}"
        if not found["uri"].startswith(base + "/"):
            yield f"{where}.uri: {found['uri']!r} should be on {base}"


def _address(shape: str, found: Mapping[str, Any]) -> str | None:
    """Where a resource, or what a Ref points at, has to be; None for what this API has no operations for."""
    if shape == "Ref":
        prefix = str(found.get("id")).partition("_")[0] + "_"
        shape = next((name for name, known in document.PREFIXES.items() if known == prefix), "")
    path = _PATHS.get(shape)
    return path.format(**found) if path and set(re.findall(r"{(\w+)}", path)) <= found.keys() else None


def _fits(pattern: str, value: Any, base: str) -> bool:
    kind, _, argument = pattern.partition(" ")
    if kind == "any":
        return True
    if argument == "or null":
        return value is None or _is(kind, value)
    if kind in _TYPES:
        return _is(kind, value)
    tests: dict[str, Callable[[str], Any]] = {
        "text": lambda text: text,
        "time": _TIME.fullmatch,
        "id": lambda text: re.fullmatch(rf"{argument}[0-9A-Za-z]{{{ID_LENGTH}}}", text),
        "token": lambda text: re.fullmatch(r"[0-9A-Za-z]{27}_[0-9A-Za-z]{21}", text),
        "uri": lambda text: text.startswith(base + "/"),
        "like": lambda text: re.fullmatch(argument, text),
    }
    return isinstance(value, str) and bool(tests[kind](value))


def _is(kind: str, value: Any) -> bool:
    if kind in {"int", "float"} and isinstance(value, bool):
        return False
    return isinstance(value, _TYPES[kind])


def expand(value: Any, known: Mapping[str, Any]) -> Any:
    """The value with `{name}`, `{name.member}` and `<255 bytes>` filled in, names of members included."""
    if isinstance(value, dict):
        return {expand(name, known): expand(item, known) for name, item in value.items()}
    if isinstance(value, list):
        return [expand(item, known) for item in value]
    if not isinstance(value, str):
        return value
    if found := _BYTES.fullmatch(value):
        return text_of(int(found[1]), found[2] or "x")
    return re.sub(r"\{([a-z]\w*(?:\.\w+)*)\}", lambda match: _looked_up(match[1], known), value)


def text_of(size: int, character: str) -> str:
    """So many bytes of UTF-8, of that character as far as it goes and of `x` for the rest."""
    count, rest = divmod(size, len(character.encode()))
    return character * count + "x" * rest


def _looked_up(name: str, known: Mapping[str, Any]) -> str:
    value: Any = known
    for part in name.split("."):
        value = value[part]
    return str(value["id"] if isinstance(value, Mapping) else value)
