"""A renewal that fails is tried again before an eighth of the certificate's remaining life is over."""

from __future__ import annotations

import itertools

import pytest

from doubles.rig import Rig
from edge_operator.engine.state import parsed
from edge_operator.kinds import KINDS

from .test_certificates import ISSUED

HOUR = 3600.0


def left(rig: Rig, kind: str) -> float:
    """Seconds until the present certificate ends."""
    return (parsed(rig.status(kind)["validUntil"]) - rig.world.now()).total_seconds()


@pytest.mark.parametrize(("status", "reason"), [(500, "ServiceUnavailable"), (422, "InvalidSpec")])
@pytest.mark.parametrize("kind", ISSUED)
@pytest.mark.fault("the service refuses or fails at renewals for hours")
async def test_a_failed_renewal_never_waits_past_an_eighth_of_the_remaining_life(kind, status, reason):
    async with Rig() as rig:
        rig.sample(kind, validFor="9h", renewBefore="3h")
        await rig.settle()
        first, end = rig.id(kind), left(rig, kind)
        path = KINDS[kind].api.path
        rig.faults({"kind": "status", "status": status, "method": "POST", "path": path})
        attempts: list[float] = []
        while left(rig, kind) > 120:
            rig.forget()
            before = left(rig, kind)
            await rig.sleep(15)
            if any(call.startswith(f"POST {path} ") for call in rig.calls):
                attempts.append(before)
        assert rig.reason(kind) in (reason, "Recovering")
        assert attempts[0] > 0.99 * 3 * HOUR, f"due at two thirds of {end}"
        late = [(a, b) for a, b in itertools.pairwise(attempts) if a - b > max(a / 8, 60) + 60]
        assert late == []

        rig.faults()
        await rig.sleep(left(rig, kind) / 8 + 120)
        assert rig.id(kind) != first
        assert rig.ready(kind)
