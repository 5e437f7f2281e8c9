"""Knows which API keys that resources made are those by which connections call the service.

Tokens are told apart by digests under a key of this process, which are kept in memory alone.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping

REMEMBERED = 5_000


class KeysInUse:
    """`calling` says by which tokens connections call now."""

    def __init__(self, calling: Callable[[], Iterable[str]] = tuple) -> None:
        self._calling, self._salt = calling, secrets.token_bytes(32)
        self._known: OrderedDict[str, bytes] = OrderedDict()

    def note(self, tokens: Mapping[str, str]) -> None:
        """Tokens by the ids of their objects, as an output Secret has them."""
        for id_, token in tokens.items():
            self._known[id_] = self._digest(token)
            self._known.move_to_end(id_)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)

    def ids(self) -> frozenset[str]:
        """Ids of the objects whose token some connection calls with."""
        if not self._known:
            return frozenset()
        calling = {self._digest(token) for token in self._calling()}
        return frozenset(id_ for id_, digest in self._known.items() if digest in calling)

    def _digest(self, token: str) -> bytes:
        return hashlib.blake2b(token.strip().encode(), key=self._salt, digest_size=16).digest()
