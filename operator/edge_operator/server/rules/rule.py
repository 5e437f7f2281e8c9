"""The vocabulary that rules are written in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from edge_operator.api.catalog import COLLECTIONS, REFERENCED_ONLY
from edge_operator.api.profiles import Profile
from edge_operator.api.wire import Collection
from edge_operator.server import bodies
from edge_operator.server.ids import Ids
from edge_operator.server.problems import INVALID_FIELD, Problem, shown
from edge_operator.server.settings import ServerSettings
from edge_operator.server.store import Claim, Transaction
from edge_operator.server.world import World

Doc = dict[str, Any]
Sent = Mapping[str, Any]

_KIND_OF_PREFIX: Final = {c.prefix: c.name for c in COLLECTIONS.values()}
_OPAQUE: Final = re.compile(r"[0-9A-Za-z_-]{1,128}")


@dataclass(frozen=True)
class Caller:
    """Who calls: the key that was shown, and the user that it belongs to."""

    key_id: str
    owner_id: str
    admin: bool


@dataclass(frozen=True)
class Place:
    """Where in a body something stands. `place / "members" / 0` is a place within it."""

    spell: bodies.Speller
    path: tuple[str | int, ...] = ()

    def __truediv__(self, part: str | int) -> Place:
        return Place(self.spell, (*self.path, part))

    def problem(self, text: str) -> Problem:
        """A refusal of what stands here: `backends.bkdhr_1: is given twice`."""
        return Problem(INVALID_FIELD, f"{self}: {text}")

    def __str__(self) -> str:
        return bodies.dotted(self.spell(self.path)).encode("ascii", "backslashreplace").decode()


@dataclass(frozen=True, kw_only=True)
class Context:
    """One request, as far as rules may know it."""

    tx: Transaction
    world: World
    ids: Ids
    settings: ServerSettings
    profile: Profile
    collection: Collection[Any]
    caller: Caller
    now: datetime
    place: Place
    item_id: str = ""
    """The id of the resource that is written."""
    prepared: Any = None
    """What the collection's `prepare` made outside of the transaction."""


FieldRule = Callable[[Context, Any, Place], Any]
"""Checks one given member and returns what is stored of it."""


@dataclass(frozen=True)
class Claimed:
    """A value that must be unique, and where in the body it came from."""

    claim: Claim
    place: tuple[str | int, ...]
    shown: str


def _nothing(_doc: Doc) -> tuple[()]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What is special about one collection. Everything has a neutral default."""

    fields: Mapping[str, FieldRule] = field(default_factory=dict)
    """Checks of single members and modules, by name; run on create, update and module PUT."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """What a new document holds where the body says nothing."""
    prepare: Callable[[World, Sent, Place], Any] | None = None
    """Slow work for a create, done before the transaction begins: making a key."""
    complete: Callable[[Context, Doc], Doc | None] | None = None
    """Fills what the service makes itself when it creates; returns what is to be hidden."""
    check: Callable[[Context, Doc], None] | None = None
    """Rules over several members; run on the whole document before each write."""
    derived: Callable[[Context, Doc], Doc] | None = None
    """Members of an answer that are not stored but worked out when it is read."""
    claims: Callable[[Doc], Iterable[Claimed]] = _nothing
    """What must be unique."""
    uses: Callable[[Doc], Iterable[str]] = _nothing
    """Ids of other resources that must not be deleted while this one is there."""
    token: bool = False
    """Whether a create makes a token."""


def reference(context: Context, identifier: str, place: Place, *prefixes: str) -> str:
    """The id itself, if its prefix fits and, where this API holds such resources, the resource is there.

    Source: API document, Identifier prefixes. Assumed: ids of objects without operations here are accepted when the
    prefix fits, unless the settings register some.
    """
    prefix = next((p for p in prefixes if identifier.startswith(p)), None)
    if prefix is None or not _OPAQUE.fullmatch(identifier, len(prefix)):
        raise place.problem(f"{shown(identifier)} is not an id that starts with {' or '.join(prefixes)}")
    if prefix in REFERENCED_ONLY:
        registered = context.settings.registered_ids
        known = registered is None or identifier in registered
    else:
        known = context.tx.get(_KIND_OF_PREFIX[prefix], identifier) is not None
    if not known:
        raise place.problem(f"{shown(identifier)} does not exist")
    return identifier


def references(prefix: str) -> FieldRule:
    """A list of ids, each once."""

    def rule(context: Context, value: list[str], place: Place) -> list[str]:
        return distinct([reference(context, one, place / i, prefix) for i, one in enumerate(value)], place)

    return rule


def distinct(values: list[str], place: Place) -> list[str]:
    seen: set[str] = set()
    for index, value in enumerate(values):
        if value in seen:
            raise (place / index).problem(f"{shown(value)} is given twice")
        seen.add(value)
    return values
