"""Keeps what was sent in confidence out of messages. Foreign text is cleaned here before it enters an error."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, get_args

from pydantic import BaseModel

from edge_operator.api import catalog

MESSAGE_CHARACTERS: Final = 256
HIDDEN: Final = "[hidden]"

_SHORTEST = 3
"""Shorter strings hide nothing, and hiding them would make any message unreadable."""
_HEAD = 8
"""Service messages quote long values in part: whatever starts like a secret is hidden as far as it agrees."""


@functools.cache
def secret_members() -> frozenset[str]:
    """Names of members that hold secrets, taken from the shapes: every field that no repr shows."""
    found: set[str] = set()
    seen: set[type[BaseModel]] = set()

    def visit(annotation: Any) -> None:
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            if annotation in seen:
                return
            seen.add(annotation)
            for name, shape in annotation.model_fields.items():
                if not shape.repr:
                    found.add(name)
                visit(shape.annotation)
        for inner in get_args(annotation):
            visit(inner)

    for collection in catalog.COLLECTIONS.values():
        for model in (collection.read, collection.create, collection.update):
            visit(model)
        for module in collection.modules.values():
            visit(module.read)
            visit(module.write)
    return frozenset(found)


def secrets_in(body: Any) -> Iterator[str]:
    """The secret strings in a neutral body; a text of several lines also line by line, as services quote it."""
    if isinstance(body, Mapping):
        for name, value in body.items():
            if name in secret_members() and isinstance(value, str):
                yield value
                yield from (line.strip() for line in value.splitlines() if not line.startswith("-----"))
            else:
                yield from secrets_in(value)
    elif isinstance(body, list | tuple):
        for item in body:
            yield from secrets_in(item)


def clean(text: str, secrets: Iterable[str], *, characters: int = MESSAGE_CHARACTERS) -> str:
    r"""The text on one line, without the secrets, cut.

    `clean("key 'abcdefghij' is\nwrong", ["abcdefghij"])` is `key '[hidden]' is wrong`.
    """
    for secret in sorted({s for s in secrets if len(s) >= _SHORTEST}, key=len, reverse=True):
        text = _hide(text, secret)
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= characters else line[: characters - 1] + "…"


def _hide(text: str, secret: str) -> str:
    head = secret[:_HEAD]
    parts: list[str] = []
    at = 0
    while (start := text.find(head, at)) >= 0:
        end = start + len(head)
        while end < len(text) and end - start < len(secret) and text[end] == secret[end - start]:
            end += 1
        parts += text[at:start], HIDDEN
        at = end
    return "".join([*parts, text[at:]])
