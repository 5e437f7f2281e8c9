"""Counts what is injected and what is checked, for the summary and for docs/reliability.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

MANY = "many of all kinds"
"""What the state machine tries."""


@dataclass
class Tally:
    """What was run, for the summary and for docs/reliability.md."""

    schedules: Counter[str] = field(default_factory=Counter)
    """By kind, as all that end in `of`."""
    injected: Counter[str] = field(default_factory=Counter)
    """By what was done; once for each time that it happened."""
    injected_of: Counter[str] = field(default_factory=Counter)
    checked: Counter[str] = field(default_factory=Counter)
    """By invariant."""
    checked_of: Counter[str] = field(default_factory=Counter)
    violated_of: Counter[str] = field(default_factory=Counter)
    kind: str = MANY
    """What is being tried, for counting."""

    def inject(self, what: Iterable[str]) -> None:
        """Count what was done to the kind that is being tried."""
        done = Counter(what)
        self.injected += done
        self.injected_of[self.kind] += done.total()

    def figures(self) -> dict[str, dict[str, int]]:
        """What was counted, as JSON."""
        return {name: dict(counted) for name, counted in vars(self).items() if isinstance(counted, Counter)}


TALLY = Tally()


def hold(invariant: str, holds: bool, found: str = "") -> None:
    """Count that an invariant was looked at, and insist that it holds."""
    TALLY.checked[invariant] += 1
    TALLY.checked_of[TALLY.kind] += 1
    assert holds, f"{invariant}: {found}"
