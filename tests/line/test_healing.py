"""Two controllers that want different things do not fight: healing of the same field slows down and says so."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from doubles.rig import Rig
from edge_operator.engine.state import stamp

from .test_drift import touch
from .test_life import made

RESYNC = 600.0


async def fought(rig: Rig, times: int, kind: str = "TLSEdge", **body: Any) -> None:
    """Somebody changes a field so often, and a look at the account follows each time."""
    for _ in range(times):
        await touch(rig, kind, body or {"description": "theirs"})
        rig.world.advance(RESYNC)
        await rig.resync(kind)


def healed(rig: Rig, kind: str = "TLSEdge") -> bool:
    return rig.remote(kind)[0]["description"] == rig.get(kind)["spec"].get("description", "")


async def slowed(rig: Rig) -> None:
    """A resource whose description somebody fights for, waiting for its next healing; empty logs."""
    await made(rig, "TLSEdge")
    await fought(rig, 3)
    assert healed(rig)
    rig.forget()
    await touch(rig, "TLSEdge", {"description": "theirs"})
    rig.world.advance(RESYNC)
    await rig.resync("TLSEdge")


@pytest.mark.fault("another controller changes the same field again and again")
async def test_the_fourth_healing_waits_and_the_status_says_what_until_when_and_what_to_do():
    async with Rig() as rig:
        await slowed(rig)
        assert not healed(rig)
        assert rig.reason("TLSEdge") == "HealingSlowed"
        assert rig.message("TLSEdge") == (
            "somebody or something keeps changing spec.description in the service; it is set right again at "
            f"{_after(rig, RESYNC)}, and later each time. Stop the other writer, or put its value into the spec; the "
            "annotation edge-operator.dev/reconcile-requested-at sets it right now"
        )
        assert rig.condition("TLSEdge", type_="Reconciling") is not None
        drift = rig.condition("TLSEdge", type_="DriftDetected")
        assert drift is not None
        assert drift["message"] == "the service holds something else at spec.description"
        assert [(e.reason, e.warning) for e in rig.events()] == [("HealingSlowed", True)]


def _after(rig: Rig, seconds: float) -> str:
    return stamp(rig.world.now() + timedelta(seconds=seconds))


async def test_waiting_is_quiet():
    async with Rig() as rig:
        await slowed(rig)
        rig.forget()
        for _ in range(4):
            rig.world.advance(10)
            await rig.resync("TLSEdge")
        assert {call.split()[0] for call in rig.calls} == {"GET"}
        assert (rig.writes, rig.events()) == ([], [])


async def test_when_the_pause_is_over_it_is_healed_and_ready_and_the_next_pause_is_longer():
    async with Rig() as rig:
        await slowed(rig)
        rig.forget()
        await rig.sleep(RESYNC + 1)
        assert healed(rig)
        assert rig.ready("TLSEdge")
        assert rig.condition("TLSEdge", type_="DriftDetected") is None
        assert [e.reason for e in rig.events()] == ["DriftCorrected"]
        await fought(rig, 1)
        assert rig.reason("TLSEdge") == "HealingSlowed"
        rig.forget()
        await rig.sleep(2 * RESYNC)
        assert not healed(rig)
        await rig.sleep(2 * RESYNC)
        assert healed(rig)


async def test_what_nobody_fights_for_is_healed_at_once_meanwhile():
    async with Rig() as rig:
        await slowed(rig)
        await touch(rig, "TLSEdge", {"hostports": ["theirs.example.com:443"]})
        await rig.resync("TLSEdge")
        assert rig.remote("TLSEdge")[0]["hostports"] == rig.get("TLSEdge")["spec"]["hostports"]
        assert not healed(rig)
        assert rig.reason("TLSEdge") == "HealingSlowed"


async def test_an_edit_is_carried_out_and_heals_at_once():
    async with Rig() as rig:
        await slowed(rig)
        rig.edit("TLSEdge", hostports=["new.example.com:443"])
        await rig.settle()
        assert rig.ready("TLSEdge")
        assert healed(rig)
        assert rig.remote("TLSEdge")[0]["hostports"] == ["new.example.com:443"]
        await fought(rig, 2)
        assert healed(rig), "it counts from one again"


async def test_the_annotation_heals_at_once():
    async with Rig() as rig:
        await slowed(rig)
        rig.annotate("TLSEdge", reconcile_requested_at="now")
        await rig.settle()
        assert rig.ready("TLSEdge")
        assert healed(rig)
        assert rig.status("TLSEdge")["lastHandledReconcileAt"] == "now"
        rig.annotate("TLSEdge", reconcile_requested_at=None)
        await fought(rig, 3)
        assert not healed(rig), "once, not for ever"


async def test_taking_the_others_value_into_the_spec_ends_it():
    async with Rig() as rig:
        await slowed(rig)
        rig.forget()
        rig.edit("TLSEdge", description="theirs")
        await rig.settle()
        assert rig.ready("TLSEdge")
        assert {call.split()[0] for call in rig.calls} <= {"GET", "PATCH"}
        assert rig.remote("TLSEdge")[0]["description"] == "theirs"


async def test_a_restart_heals_once_and_slows_down_again():
    async with Rig() as rig:
        await slowed(rig)
        await rig.restart()
        await rig.settle()
        assert healed(rig)
        await fought(rig, 3)
        assert rig.reason("TLSEdge") == "HealingSlowed"


async def test_a_module_that_is_fought_for_slows_down_too():
    async with Rig() as rig:
        await made(rig, "HTTPSRoute")
        for _ in range(4):
            await touch(rig, "HTTPSRoute", {"enabled": False}, "compression")
            rig.world.advance(RESYNC)
            await rig.resync("HTTPSRoute")
        assert rig.reason("HTTPSRoute") == "HealingSlowed"
        assert "spec.compression.enabled" in rig.message("HTTPSRoute")
        assert rig.remote("HTTPSRoute")[0]["compression"]["enabled"] is False


async def test_drift_now_and_then_is_healed_at_once_for_ever():
    async with Rig() as rig:
        await made(rig, "TLSEdge")
        for _ in range(12):
            rig.world.advance(40 * RESYNC)
            await fought(rig, 1)
            assert healed(rig)
