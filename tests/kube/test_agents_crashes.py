"""At most once, wherever the operator dies, whatever answer or write is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from doubles.command_rig import CommandRig
from doubles.effects import Fate

ORDERS: dict[str, dict[str, Any]] = {
    "restart": {"command": "Restart"},
    "stop": {"command": "Stop"},
    "update": {"command": "Update"},
    "update and restart": {"command": "Update", "restartAfterUpdate": True},
}
EFFECTS = {
    "restart": ["cluster", "POST", "cluster", "cluster"],
    "stop": ["cluster", "POST", "cluster"],
    "update": ["cluster", "POST", "cluster"],
    "update and restart": ["cluster", "POST", "cluster", "cluster", "POST", "cluster", "cluster"],
}
"""What each order does, in this order."""
CLUSTER = (Fate.DIE_BEFORE, Fate.DIE_AFTER, Fate.CONFLICT, Fate.LOST_WRITE)
REMOTE = (Fate.DIE_BEFORE, Fate.DIE_AFTER, Fate.CUT_BEFORE, Fate.CUT_AFTER, Fate.FAULT_AFTER)
LETHAL = {Fate.DIE_BEFORE, Fate.DIE_AFTER, Fate.CUT_BEFORE, Fate.CUT_AFTER, Fate.FAULT_AFTER}
Fates = Mapping[int, Fate]


def fates(order: str) -> Iterator[tuple[int, Fate]]:
    for number, effect in enumerate(EFFECTS[order], 1):
        yield from ((number, fate) for fate in (CLUSTER if effect == "cluster" else REMOTE))


def forgets_an_answer(order: str, number: int, fate: Fate) -> bool:
    """Whether a command was, or seemed, under way when the process lost what it knew."""
    effects = EFFECTS[order]
    before_post = effects[number - 1] == "cluster" and effects[number : number + 1] == ["POST"]
    after_post = number > 1 and effects[number - 2] == "POST"
    return (
        (effects[number - 1] == "POST" and fate in LETHAL)
        or (before_post and fate is Fate.DIE_AFTER)
        or (after_post and fate is Fate.DIE_BEFORE)
    )


async def run(rig: CommandRig, order: str, chosen: Fates) -> None:
    session = await rig.online(metadata="the agent")
    rig.effects.fates = dict(chosen)
    rig.order(sessionID=session, **ORDERS[order])
    await rig.settle()


async def hold(rig: CommandRig) -> None:
    """What has to be so at every end."""
    told = Counter(post.split()[0] for post in rig.posts)
    assert set(told.values()) <= {1}, f"sent more than once: {rig.posts}"
    assert rig.reason() in {"Completed", "OutcomeUnknown"}, rig.message()
    assert "completionTime" in rig.status()
    if rig.reason() == "Completed":
        spec = ORDERS[next(name for name, spec in ORDERS.items() if spec.items() <= (rig.get() or {})["spec"].items())]
        words = [spec["command"].lower(), *(["restart"] if (rig.get() or {})["spec"]["restartAfterUpdate"] else [])]
        assert list(told) == words
    if successor := rig.status().get("successorID"):
        assert [s["id"] for s in await rig.sessions()] == [successor]


@pytest.mark.parametrize("order", ORDERS)
async def test_the_effects_are_those_that_are_disturbed_below(order: str) -> None:
    async with CommandRig() as rig:
        await run(rig, order, {})

        assert [name.split()[0] for name in rig.effects.log] == EFFECTS[order]
        assert rig.reason() == "Completed"
        await hold(rig)


@pytest.mark.parametrize(
    ("order", "number", "fate"),
    [pytest.param(o, n, f, id=f"{o}, {f} {n}") for o in ORDERS for n, f in fates(o)],
)
async def test_it_is_sent_at_most_once_whatever_happens_at_one_effect(order: str, number: int, fate: Fate) -> None:
    async with CommandRig() as rig:
        await run(rig, order, {number: fate})

        assert rig.effects.met == [(number, fate)]
        assert rig.reason() == ("OutcomeUnknown" if forgets_an_answer(order, number, fate) else "Completed")
        await hold(rig)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.fault("any disturbance at one and two effects of a command to an agent")
async def test_it_is_sent_at_most_once_whatever_happens_at_two_effects(order: str) -> None:
    singles = [*fates(order)]
    tried = 0
    for first, fate in singles:
        for distance in (1, 2, 3):
            for second in (*CLUSTER, Fate.CUT_AFTER):
                async with CommandRig() as rig:
                    await run(rig, order, {first: fate, first + distance: second})
                    await hold(rig)
                    tried += 1
    assert tried == len(singles) * 15


@pytest.mark.parametrize("fate", CLUSTER)
async def test_a_command_whose_time_is_over_goes_however_its_removal_is_disturbed(fate: Fate) -> None:
    async with CommandRig() as rig:
        rig.order(sessionID=await rig.online(), command="Stop", ttlSecondsAfterFinished=5)
        rig.effects.fates = {4: fate}

        await rig.settle()

        assert rig.effects.met == [(4, fate)]
        assert (rig.get(), rig.posts) == (None, ["stop 204"])


@pytest.mark.parametrize("number", [1, 2, 3])
async def test_a_user_who_deletes_it_meanwhile_is_obeyed(number: int) -> None:
    async with CommandRig() as rig:
        session = await rig.online()
        rig.effects.meddling = {number: rig.delete}
        rig.order(sessionID=session, command="Stop")

        await rig.settle()

        assert rig.get() is None
        assert rig.posts == ([] if number == 1 else ["stop 204"])
