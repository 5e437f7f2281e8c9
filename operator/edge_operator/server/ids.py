"""Identifiers and tokens.

Assumed: an id is its prefix and 27 base62 characters that sort by time, as a KSUID does: 4 bytes of seconds, then,
unlike a KSUID, 4 bytes of nanoseconds so that ids of one second keep their order, then 12 random bytes.
A token is `<27 characters>_<21 characters>`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from edge_operator.server.world import World

_ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_DIGITS: Final = {character: value for value, character in enumerate(_ALPHABET)}
_EPOCH_SECONDS: Final = 1_400_000_000
_LENGTH: Final = 27
_SECRET_LENGTH: Final = 21
_NANOSECONDS: Final = 1_000_000_000
_TEXT: Final = re.compile(rf"[0-9A-Za-z]{{{_LENGTH}}}")


def _base62(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, 62)
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))


def well_formed(identifier: str, prefix: str) -> bool:
    """Whether the text could be an id that this server made."""
    return identifier.startswith(prefix) and _TEXT.fullmatch(identifier, len(prefix)) is not None


class Ids:
    """Makes ids, each greater than the one before, also when the clock steps back or the server starts again."""

    def __init__(self, world: World, last: str | None = None) -> None:
        """`last` is the greatest id made so far, without its prefix."""
        self._world = world
        self._last = self._nanoseconds(last) if last else 0

    def new(self, prefix: str) -> str:
        since = self._world.now().astimezone(UTC) - datetime.fromtimestamp(_EPOCH_SECONDS, UTC)
        now = (since.days * 86_400 + since.seconds) * _NANOSECONDS + since.microseconds * 1000
        self._last = max(now, self._last + 1)
        seconds, nanoseconds = divmod(self._last, _NANOSECONDS)
        head = seconds.to_bytes(4, "big") + nanoseconds.to_bytes(4, "big")
        return prefix + _base62(int.from_bytes(head + self._world.random_bytes(12), "big"), _LENGTH)

    def token(self) -> str:
        """A bearer token; 125 of its bits are random."""
        secret = int.from_bytes(self._world.random_bytes(17), "big")
        return f"{self.new('')}_{_base62(secret, _SECRET_LENGTH)}"

    @staticmethod
    def _nanoseconds(text: str) -> int:
        if not _TEXT.fullmatch(text):
            return 0
        number = 0
        for character in text:
            number = number * 62 + _DIGITS[character]
        head = (number >> 96) & (2**64 - 1)
        return (head >> 32) * _NANOSECONDS + (head & (2**32 - 1))
