"""Pages of a list. Assumed: `limit` (1..100, default 100) and `before_id`; newest first; anything else is refused."""

from __future__ import annotations

import re
import urllib.parse
from dataclasses import dataclass
from typing import Any, Final

from edge_operator.api.wire import Collection
from edge_operator.server import ids
from edge_operator.server.problems import INVALID_PARAMETER, Problem, shown

LARGEST_PAGE: Final = 100
_NUMBER: Final = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True)
class Page:
    """Which part of a list is asked for."""

    limit: int
    before: str | None = None

    def link(self, address: str, last: str) -> str:
        """The address of the page after this one."""
        return f"{address}?{urllib.parse.urlencode({'before_id': last, 'limit': self.limit})}"


def parameters(query: bytes) -> dict[str, str]:
    """The query's parameters, each given once.

    Raises:
        Problem: not of the form `name=value&…`, not UTF-8, or a parameter given twice.
    """
    if not query:
        return {}
    try:
        pairs = urllib.parse.parse_qsl(
            query.decode("ascii"), keep_blank_values=True, strict_parsing=True, errors="strict", max_num_fields=20
        )
    except ValueError:
        raise Problem(INVALID_PARAMETER, "the query is not of the form name=value&name=value") from None
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Problem(INVALID_PARAMETER, "the query gives a parameter twice")
    return found


def none_expected(query: bytes) -> None:
    for name in parameters(query):
        raise Problem(INVALID_PARAMETER, f"{shown(name)} is not a parameter here; none is expected")


def page(query: bytes, collection: Collection[Any], largest: int) -> Page:
    """The page that a list request asks for, of at most `largest` items."""
    found = parameters(query)
    limit = found.pop("limit", str(LARGEST_PAGE))
    before = found.pop("before_id", None)
    for name in found:
        raise Problem(INVALID_PARAMETER, f"{shown(name)} is not a parameter here; expected are before_id, limit")
    if not _NUMBER.fullmatch(limit) or not 1 <= int(limit) <= LARGEST_PAGE:
        raise Problem(INVALID_PARAMETER, f"limit: {shown(limit)} is not a number in 1..{LARGEST_PAGE}")
    if before is not None and not ids.well_formed(before, collection.prefix):
        raise Problem(INVALID_PARAMETER, f"before_id: {shown(before)} is not an id like {collection.prefix}…")
    return Page(min(int(limit), largest), before)
