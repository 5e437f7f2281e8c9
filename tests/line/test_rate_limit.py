"""A service that refuses more than so many calls a minute: everything gets done, steadily, and nothing twice."""

from __future__ import annotations

import pytest

from doubles.rig import Rig
from edge_operator.server.settings import ServerSettings

KIND = "WeightedBackend"
SPEC = {"backends": [{"ref": {"id": "bkdtg_1"}, "weight": 1}]}
PER_MINUTE = 120


def apply(rig: Rig, count: int) -> list[str]:
    """Declare so many resources at once; their names."""
    names = [f"r{number:04}" for number in range(count)]
    for name in names:
        rig.api.apply((KIND, "default", name), {"spec": SPEC})
    return names


@pytest.mark.parametrize("retry_after", [True, False])
async def test_thirty_resources_are_there_within_ninety_seconds_of_120_calls_a_minute(retry_after: bool):
    async with Rig(ServerSettings(rate_limit=PER_MINUTE, retry_after=retry_after, page_size=3)) as rig:
        began = rig.world.elapsed
        names = apply(rig, 30)
        await rig.settle(90)
        assert [n for n in names if not rig.ready(KIND, n)] == []
        assert rig.world.elapsed - began < 90
        assert len(rig.remote(KIND)) == 30


@pytest.mark.fault("a service that takes 120 calls a minute, and a thousand resources")
async def test_a_thousand_resources_make_steady_progress_and_none_is_made_twice():
    async with Rig(ServerSettings(rate_limit=PER_MINUTE, page_size=3)) as rig:
        names = apply(rig, 1000)
        before = 0
        for minute in range(1, 10):
            await rig.sleep(60)
            made = len(rig.remote(KIND))
            assert made >= min(1000, before + PER_MINUTE * 0.8), f"minute {minute}: {made} after {before}"
            before = made
        assert len(rig.remote(KIND)) == 1000
        assert [n for n in names if not rig.ready(KIND, n)] == []
        assert len([c for c in rig.calls if c.startswith("POST") and c.endswith("201")]) == 1000
        refused = len([c for c in rig.calls if c.endswith("429")])
        assert refused < 100, "a pause is kept by all"


async def test_waiting_for_a_rate_is_said_once():
    async with Rig(ServerSettings(rate_limit=PER_MINUTE, page_size=3)) as rig:
        apply(rig, 300)
        await rig.sleep(600)
        statuses = [w for w in rig.writes if "status" in w]
        assert 300 <= len(statuses) <= 2 * 300, "once that it waits, once that it is there"
