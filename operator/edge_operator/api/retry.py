"""Whether and when a failed call is made again. Decides only: no clock, no randomness, no I/O."""

from __future__ import annotations

import math
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Final

from edge_operator.api import errors

LONGEST_RETRY_AFTER_SECONDS: Final = 3600.0
"""What a Retry-After header asks for beyond this is taken as this."""

IDEMPOTENT: Final = frozenset({"GET", "HEAD", "PUT", "PATCH", "DELETE"})
"""Methods that may be repeated although the first may have arrived. A PATCH is one: in this API it sets values."""


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """How often one call is made, and how long it waits in between.

    Waits grow from `base_seconds`, doubling up to `cap_seconds`, times a random number (full jitter).
    Where the service asks for a longer pause than `longest_wait_seconds`, the call ends at once with that error: the
    pause concerns every caller, so it is for them to keep.
    """

    attempts: int = 4
    base_seconds: float = 0.5
    cap_seconds: float = 8.0
    longest_wait_seconds: float = 30.0

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise errors.Misuse(f"retry.attempts: {self.attempts} should be 1 (no repetition) or more")
        waits = (self.base_seconds, self.cap_seconds, self.longest_wait_seconds)
        if not all(math.isfinite(wait) and wait >= 0 for wait in waits):
            raise errors.Misuse(f"retry: waits {waits} should be finite seconds, not below 0")


NEVER: Final = RetryPolicy(attempts=1)


def delay_seconds(
    method: str, attempt: int, error: errors.APIError, policy: RetryPolicy, jitter: float
) -> float | None:
    """Seconds to wait before the next attempt, or None to give up with this error.

    `attempt` counts from 1 and is the one that failed; `jitter` is a random number from 0 to 1.
    """
    if attempt >= policy.attempts or not _repeatable(method, error):
        return None
    backoff = jitter * min(policy.cap_seconds, policy.base_seconds * 2.0 ** min(attempt - 1, 62))
    asked = error.retry_after_seconds if isinstance(error, errors.StatusError) else None
    if asked is None:
        return backoff
    # The jitter comes on top, or all callers that were told the same moment come back in it.
    return asked + backoff if asked <= policy.longest_wait_seconds else None


def _repeatable(method: str, error: errors.APIError) -> bool:
    match error:
        case errors.NotSent() | errors.RateLimited():
            return True
        case errors.OutcomeUnknown() | errors.ServerFault():
            return method in IDEMPOTENT
        case _:
            return False


def retry_after_seconds(header: str | None, now: float) -> float | None:
    """Seconds that a Retry-After header asks for: a number, or an HTTP date against `now` (seconds since 1970, UTC).

    At least 0 and at most LONGEST_RETRY_AFTER_SECONDS; None for no header and for one that is neither.
    """
    if header is None:
        return None
    text = header.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:12]), LONGEST_RETRY_AFTER_SECONDS)
    try:
        moment = parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return min(max(moment - now, 0.0), LONGEST_RETRY_AFTER_SECONDS)
