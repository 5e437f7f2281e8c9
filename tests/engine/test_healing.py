"""How long a field that is changed again and again is left alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from edge_operator.engine.healing import LONGEST_SECONDS, Healing, pause

RESYNC = 600.0
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def fought(times: int, *, path: str = "a") -> tuple[Healing, float]:
    """A field healed so often, as soon as that was possible; and when that was the last time."""
    healing, now = Healing(), 0.0
    for _ in range(times):
        now += RESYNC
        while (held := healing.held([path], now, RESYNC)) is not None:
            now = held.until
        healing.done([path], now, NOON + timedelta(seconds=now))
    return healing, now


def test_it_is_healed_at_once_three_times_and_then_after_pauses_that_double() -> None:
    ends = []
    for times in range(1, 7):
        healing, now = fought(times)
        held = healing.held(["a"], now + 1, RESYNC)
        ends.append((held.until - now) / RESYNC if held else 0)

    assert ends == [0, 0, 2, 4, 8, 16]


@given(st.integers(0, 10_000), st.floats(0.01, 1e6))
def test_a_pause_never_is_longer_than_a_day_and_never_shorter_than_the_one_before(times: int, resync: float) -> None:
    assert 0 <= pause(times, resync) <= pause(times + 1, resync) <= LONGEST_SECONDS


def test_other_fields_are_healed_meanwhile() -> None:
    healing, now = fought(3)

    held = healing.held(["a", "b"], now + 1, RESYNC)

    assert held is not None
    assert held.paths == {"a"}


def test_the_time_that_is_told_does_not_move_while_it_is_waited_for() -> None:
    healing, now = fought(3)

    told = {healing.held(["a"], now + later, RESYNC) for later in (1.0, 7.3, 1199.0)}

    assert len(told) == 1
    assert [h.at for h in told if h] == [NOON + timedelta(seconds=now + 1200)]


def test_a_field_that_stayed_in_order_for_long_is_forgiven() -> None:
    healing, now = fought(4)
    later = now + 4 * RESYNC + 2 * pause(4, RESYNC)

    assert healing.held(["a"], later + 1, RESYNC) is None
    healing.done(["a"], later + 1, NOON)
    assert healing.held(["a"], later + 2, RESYNC) is None, "it counts from one again"


def test_a_field_that_did_not_stay_in_order_for_long_is_remembered() -> None:
    healing, now = fought(4)
    later = now + 4 * RESYNC + 2 * pause(4, RESYNC)

    assert healing.held(["a"], later, RESYNC) is None
    healing.done(["a"], later, NOON)
    held = healing.held(["a"], later + 1, RESYNC)
    assert held is not None
    assert held.until == later + pause(5, RESYNC)


def test_a_wish_ends_every_pause() -> None:
    healing, now = fought(5)
    healing.forget()

    assert healing.held(["a"], now + 1, RESYNC) is None
