"""The process is stopped, answers are lost, writes conflict, users meddle, clocks step: all ends as it should."""

from __future__ import annotations

import itertools

import pytest

from doubles import adoptions, lives, schedules, unmarked
from doubles.crashes import begun, survive
from doubles.effects import Fate
from doubles.lives import Scenario
from edge_operator.kinds import KINDS

EVERY = [pytest.param(kind, scenario, id=f"{kind}: {scenario}") for kind in KINDS for scenario in lives.of(kind)]
OTHERS = [
    pytest.param(kind, scenario, id=f"{kind}: {scenario}")
    for kind in KINDS
    for scenario in (*adoptions.of(kind), *unmarked.of(kind))
]
SINGLES, FEW_PAIRS = 14, 4
"""So many of each of these in the common size. Each kind's are others, so that together they leave little out."""
BEHIND = [1, 2] if schedules.SIZE_NAME == "common" else [1, 2, 4]

pytestmark = pytest.mark.timeout(schedules.TIMEOUT_SECONDS)

every = pytest.mark.parametrize(("kind", "scenario"), EVERY)


@pytest.mark.fault("the process dies before or after any effect")
@pytest.mark.fault("a cluster write that conflicts, or whose answer is lost")
@pytest.mark.fault("a call that is cut, or whose answer is lost, a 503 or garbage")
@pytest.mark.fault("the user edits, deletes, retains, abandons or pauses at any effect")
@pytest.mark.fault("the output Secret is deleted or emptied at any effect")
@pytest.mark.fault("status, predecessors or claim are edited at any effect")
@pytest.mark.fault("the clock steps back or forward at any effect")
@pytest.mark.fault("the leader freezes just before any cluster write, which arrives after another one went on")
@every
async def test_one_thing_at_each_effect(kind: str, scenario: Scenario):
    """Every death, every lost answer, everything that a user does, and a clock that steps: at every single effect."""
    life = await begun(kind, scenario)
    for schedule in schedules.singles(kind, life.effects):
        await survive(life, schedule)


@pytest.mark.fault("the process dies twice")
@every
async def test_two_deaths(kind: str, scenario: Scenario):
    """A death after each effect, and another after each effect of the next life, however long that is."""
    life = await begun(kind, scenario)
    for first, _ in enumerate(life.effects, 1):
        for second in itertools.count(first + 1):
            if await survive(life, ((first, Fate.DIE_AFTER), (second, Fate.DIE_AFTER))) < 2:
                break


@pytest.mark.fault("any two of these at any two effects")
@every
async def test_two_things_at_any_two_effects(kind: str, scenario: Scenario):
    """All pairs, or a sample that the seed chooses."""
    life = await begun(kind, scenario)
    pairs = list(schedules.pairs(kind, life.effects))
    for schedule in schedules.sample(f"{kind}: {scenario}", pairs):
        await survive(life, schedule)


@pytest.mark.fault("a watch that is one, two or four changes behind")
@every
@pytest.mark.parametrize("behind", BEHIND)
async def test_a_cache_that_is_behind(kind: str, scenario: Scenario, behind: int):
    """Each pass is first made with the resource as it was so many changes ago."""
    life = await begun(kind, scenario)
    await survive(life, (), stale=behind)
    for number, _ in enumerate(life.effects, 1):
        await survive(life, ((number, Fate.DIE_AFTER),), stale=behind)


@pytest.mark.fault("any of these at any effect of an adoption, or where owner markers are off")
@pytest.mark.parametrize(("kind", "scenario"), OTHERS)
async def test_an_object_of_somebody_else_or_without_a_marker(kind: str, scenario: Scenario):
    """What is adopted has no second and goes or stays as asked; what may be there unmarked is left to a person."""
    life = await begun(kind, scenario)
    singles = schedules.singles(kind, life.effects, records=scenario.marked)
    pairs = schedules.pairs(kind, life.effects, records=scenario.marked)
    for schedule in schedules.sample(f"{kind}: {scenario}, singles", list(singles), SINGLES):
        await survive(life, schedule)
    for schedule in schedules.sample(f"{kind}: {scenario}", list(pairs), FEW_PAIRS):
        await survive(life, schedule)
    for behind in BEHIND[:1] if schedules.SIZE_NAME == "common" else BEHIND:
        for number, _ in enumerate(life.effects, 1):
            await survive(life, ((number, Fate.DIE_AFTER),), stale=behind)
