"""How long a resource whose pass failed waits for the next: as its failures say, and no longer than it may."""

from __future__ import annotations

import pytest

from edge_operator.kube.queue import Priority
from edge_operator.ports import Outcome

from .connected import KIND, scene
from .test_connection_uses import controller

KEY = (KIND, "a", "first")


@pytest.mark.parametrize(
    ("outcome", "seconds", "priority"),
    [
        (Outcome(ready=False, reason="ServiceUnavailable", failed=True), 1.0, Priority.RETRY),
        (Outcome(ready=False, reason="ServiceUnavailable", failed=True, at_most=0.25), 0.25, Priority.RETRY),
        (Outcome(ready=False, reason="ServiceUnavailable", failed=True, at_most=90.0), 1.0, Priority.RETRY),
        (Outcome(ready=False, reason="InvalidSpec", at_most=90.0), 90.0, Priority.RESYNC),
    ],
)
async def test_a_pause_is_as_long_as_the_failures_say_and_as_short_as_it_has_to_be(
    outcome: Outcome, seconds: float, priority: Priority
) -> None:
    async with scene() as found:
        found.resource("first")
        entry = found.index.get(KEY)
        assert entry is not None
        found.queue.offers.clear()
        before = found.world.monotonic()

        controller(found)._done(entry, None, outcome, entry.generation)

        ((key, due),) = found.queue.offers
        assert (key, found.queue.priorities[KEY][-1]) == (KEY, priority)
        assert due is not None
        assert before + seconds <= due <= before + seconds + 1
