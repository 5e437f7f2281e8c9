"""Slows the healing of a field that somebody or something keeps changing, so that two controllers do not fight.

Three times it is set right as soon as it is seen, then after pauses of two, four, eight resyncs, up to a day.
A field that stayed as it should for a good while longer than its last pause is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

PATIENCE = 3
"""So often a field is healed at once."""
LONGEST_SECONDS = 86_400.0
_FORGIVEN_ROUNDS = 4
_FORGIVEN_PAUSES = 2


@dataclass
class _Healed:
    times: int
    last: float
    """Monotonic seconds."""
    at: datetime
    """The same by the wall clock, for people."""


@dataclass(frozen=True)
class Held:
    """Fields that are left as they are until a time: in monotonic seconds, and by the wall clock for people."""

    paths: frozenset[str]
    until: float
    at: datetime


@dataclass
class Healing:
    """How often each field of one resource was healed, as this process knows."""

    _fields: dict[str, _Healed] = field(default_factory=dict)

    def forget(self) -> None:
        """Begin anew: somebody asked for a healing."""
        self._fields.clear()

    def done(self, paths: Sequence[str], now: float, at: datetime) -> None:
        """These were healed."""
        for path in paths:
            healed = self._fields.setdefault(path, _Healed(0, now, at))
            healed.times, healed.last, healed.at = healed.times + 1, now, at

    def held(self, paths: Iterable[str], now: float, resync_seconds: float) -> Held | None:
        """Those of the fields that are to be left alone for now, and until when the first of them is."""
        ends: dict[str, tuple[float, datetime]] = {}
        for path in paths:
            if (healed := self._fields.get(path)) is None:
                continue
            wait = pause(healed.times, resync_seconds)
            if now > healed.last + _FORGIVEN_ROUNDS * resync_seconds + _FORGIVEN_PAUSES * wait:
                del self._fields[path]
            elif now < healed.last + wait:
                ends[path] = (healed.last + wait, healed.at + timedelta(seconds=wait))
        return Held(frozenset(ends), *min(ends.values())) if ends else None


def pause(times: int, resync_seconds: float) -> float:
    """Seconds to wait after so many healings.

    >>> [pause(times, 600.0) for times in (1, 2, 3, 4, 5, 30)]
    [0.0, 0.0, 1200.0, 2400.0, 4800.0, 86400.0]
    """
    if times < PATIENCE:
        return 0.0
    return min(resync_seconds * 2.0 ** min(times - PATIENCE + 1, 40), LONGEST_SECONDS)
