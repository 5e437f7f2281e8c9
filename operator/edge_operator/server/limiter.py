"""The rate limit: so many requests of the account in any 60 seconds."""

from __future__ import annotations

import math
from collections import deque
from typing import Final

from edge_operator.server.world import World

_WINDOW_SECONDS: Final = 60.0


class Limiter:
    """A sliding window. Refused requests do not count."""

    def __init__(self, world: World, per_minute: int | None) -> None:
        self._world = world
        self._per_minute = per_minute
        self._times: deque[float] = deque()

    def take(self) -> int | None:
        """Counts a request. Returns None if it may pass, else in how many seconds to come back."""
        if self._per_minute is None:
            return None
        now = self._world.monotonic()
        while self._times and now - self._times[0] >= _WINDOW_SECONDS:
            self._times.popleft()
        if len(self._times) < self._per_minute:
            self._times.append(now)
            return None
        return max(1, math.ceil(_WINDOW_SECONDS - (now - self._times[0])))
