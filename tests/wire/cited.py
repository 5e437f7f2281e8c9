"""Which rules a test shows, for tests that are no transcripts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def cites(*rules: str) -> Callable[[T], T]:
    """The rules of `rules.py` that the test shows; `test_coverage.py` reads them from the source."""
    assert all(isinstance(rule, str) for rule in rules)
    return lambda test: test
