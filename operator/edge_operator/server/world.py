"""Time and randomness as a value, so that a test can hold both still."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class World:
    """What the server takes from outside; keys and nonces of certificates come from the library's own source."""

    now: Callable[[], datetime] = _utc_now
    """Wall-clock time, in UTC."""
    monotonic: Callable[[], float] = time.monotonic
    """Seconds that never go backwards."""
    random_bytes: Callable[[int], bytes] = os.urandom
    """Unguessable bytes."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Waits for so many seconds."""


def timestamp(moment: datetime) -> str:
    """`2026-01-02T03:04:05Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
