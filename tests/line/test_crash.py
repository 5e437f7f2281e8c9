"""The process is stopped before and after each effect, answers are lost, writes conflict; all ends as it should."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator

import pytest

from doubles.crashes import Meddling, Scenario, effects_of, foreign, pairs, schedules, survive
from doubles.effects import Died, Fate
from doubles.rig import Rig
from doubles.scenarios import EDITS
from edge_operator.kinds import KINDS

RECREATED = [kind for kind in KINDS if KINDS[kind].on_remote_missing == "Recreate"]


async def _in_sync(kind: str, rig: Rig) -> None:
    rig.sample(kind)
    await rig.settle()
    await foreign(rig, kind)


async def _needs_only(kind: str, rig: Rig) -> None:
    await _in_sync(kind, rig)
    rig.delete(kind)
    await rig.settle()
    rig.forget()


async def _create(kind: str, rig: Rig) -> None:
    rig.sample(kind)


async def _edit(kind: str, members: dict[str, object], rig: Rig) -> None:
    rig.edit(kind, **members)


async def _delete(kind: str, rig: Rig) -> None:
    rig.delete(kind)


async def _vanish(kind: str, rig: Rig) -> None:
    path = {"edge_id": rig.id("HTTPSEdge")} if kind == "HTTPSRoute" else {}
    await rig.outside.of(KINDS[kind].api).raw.delete(rig.id(kind), **path)


async def _two_thirds_of_the_lifetime(rig: Rig) -> None:
    await rig.sleep(61 * 86_400)


async def _lose_secret(rig: Rig) -> None:
    rig.api.delete(("Secret", "default", "example-sshhostcertificate"))


async def _wipe_status(kind: str, rig: Rig) -> None:
    """Somebody edits the status: the id is gone, the claim stays."""
    gone = dict.fromkeys(rig.status(kind))
    rig.api.patch_status((kind, "default", "example"), None, gone, "user")


async def _wipe_id(kind: str, rig: Rig) -> None:
    rig.api.patch_status((kind, "default", "example"), None, {"id": None}, "user")


async def _create_and_delete(kind: str, rig: Rig) -> None:
    """Deleted before the operator looks twice."""
    rig.sample(kind)
    with contextlib.suppress(Died):
        await rig.work()
    if rig.exists(kind):
        rig.delete(kind)


def scenarios(kind: str) -> Iterator[Scenario]:
    part = functools.partial
    yield Scenario("create", part(_needs_only, kind), part(_create, kind))
    for edit in EDITS[kind]:
        yield Scenario(f"edit {edit}", part(_in_sync, kind), part(_edit, kind, edit.members))
    yield Scenario("status wiped", part(_in_sync, kind), part(_wipe_status, kind))
    yield Scenario("id wiped", part(_in_sync, kind), part(_wipe_id, kind))
    yield Scenario("create and delete", part(_needs_only, kind), part(_create_and_delete, kind), gone=True)
    yield Scenario("delete", part(_in_sync, kind), part(_delete, kind), gone=True)
    if kind in RECREATED:
        yield Scenario("vanish", part(_in_sync, kind), part(_vanish, kind), rounds=True)
    if kind == "SSHHostCertificate":
        yield Scenario("renewal", part(_in_sync, kind), _two_thirds_of_the_lifetime)
        yield Scenario("Secret lost", part(_in_sync, kind), _lose_secret)


EVERY = [pytest.param(kind, scenario, id=f"{kind}: {scenario}") for kind in KINDS for scenario in scenarios(kind)]


@pytest.mark.parametrize(("kind", "scenario"), EVERY)
async def test_one_fault_at_each_effect(kind: str, scenario: Scenario):
    for fates in schedules(await effects_of(kind, scenario)):
        await survive(kind, scenario, fates)


@pytest.mark.parametrize(("kind", "scenario"), EVERY)
async def test_two_deaths(kind: str, scenario: Scenario):
    for fates in pairs(await effects_of(kind, scenario)):
        await survive(kind, scenario, fates)


def _edited(kind: str, rig: Rig) -> None:
    if rig.exists(kind) and not rig.get(kind)["metadata"].get("deletionTimestamp"):
        rig.edit(kind, metadata='{"edited": "meanwhile"}')


def _labelled(kind: str, rig: Rig) -> None:
    if rig.exists(kind):
        rig.api.apply((kind, "default", "example"), {"metadata": {"labels": {"touched": "meanwhile"}}})


def _deleted(kind: str, rig: Rig) -> None:
    if rig.exists(kind):
        rig.delete(kind)


def _secret_deleted(kind: str, rig: Rig) -> None:
    if rig.published(f"example-{kind.lower()}"):
        rig.api.delete(("Secret", "default", f"example-{kind.lower()}"))


def meddlings(kind: str) -> Iterator[Meddling]:
    yield Meddling("edit", functools.partial(_edited, kind))
    yield Meddling("label", functools.partial(_labelled, kind))
    yield Meddling("delete", functools.partial(_deleted, kind), gone=True)
    if KINDS[kind].outputs:
        yield Meddling("Secret deleted", functools.partial(_secret_deleted, kind))


@pytest.mark.parametrize(("kind", "scenario"), EVERY)
async def test_a_user_meddles_at_each_effect(kind: str, scenario: Scenario):
    """Edits, labels, deletes, takes the Secret away: just before any effect, and with a death right after it."""
    for number, _ in enumerate(await effects_of(kind, scenario), 1):
        for meddling in meddlings(kind):
            await survive(kind, scenario, {}, {number: meddling})
            await survive(kind, scenario, {number: Fate.DIE_AFTER}, {number: meddling})


@pytest.mark.parametrize(("kind", "scenario"), EVERY)
async def test_a_cache_that_is_behind(kind: str, scenario: Scenario):
    """Each pass is first made with the resource as it was one change ago."""
    await survive(kind, scenario, {}, stale=True)
    for number, _ in enumerate(await effects_of(kind, scenario), 1):
        await survive(kind, scenario, {number: Fate.DIE_AFTER}, stale=True)
