"""A clock that a test holds in its hand, for a server in the same process."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from edge_operator.server.world import World


@dataclass
class Clock:
    """Time moves by `advance` only."""

    at: datetime = datetime(2026, 1, 1, tzinfo=UTC)

    def advance(self, **span: float) -> None:
        self.at += timedelta(**span)

    def world(self) -> World:
        return World(now=lambda: self.at, monotonic=self._seconds)

    def _seconds(self) -> float:
        return self.at.timestamp()
