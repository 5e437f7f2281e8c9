"""A whole application, applied and deleted in one command each, in any order and by any number of workers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest

from doubles.apiserver import Key, Object
from doubles.rig import Rig
from edge_operator.kinds import KINDS

SEEDS = range(10)
WORKERS = (1, 3, 16)


async def application() -> list[tuple[Key, Object]]:
    """Every sample with all that it needs, as one folder of manifests would have it."""
    async with Rig() as rig:
        for kind in KINDS:
            rig.sample(kind)
        return list(rig.api.objects.items())


async def work(rig: Rig, workers: int, dice: random.Random, watch: Callable[[set[Key]], None]) -> None:
    """Work until nothing is to be done, so many passes at a time; `watch` after each, with those under way."""
    running: dict[asyncio.Task[None], Key] = {}
    limit = rig.world.elapsed + 400
    while True:
        free = [key for key in rig.process.dirty if key not in running.values()]
        while free and len(running) < workers:
            key = free.pop(dice.randrange(len(free)))
            running[asyncio.create_task(rig.work(key))] = key
        if not running:
            if not rig._wait(limit):
                return
            continue
        done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            del running[task]
            await task
        watch(set(running.values()))


def says_who_waits_for_whom(rig: Rig, running: set[Key]) -> int:
    """Whoever is being deleted and has had its pass names what still uses it, and nothing that is gone; how many do."""
    waiting = 0
    for key, resource in rig.api.objects.items():
        if key[0] not in KINDS or not resource["metadata"].get("deletionTimestamp"):
            continue
        if key in running or key in rig.process.dirty:
            continue
        message = rig.message(key[0], key[2])
        assert rig.reason(key[0], key[2]) == "DeletionBlocked", f"{key}: {message}"
        named = message.removeprefix("still used by ").removesuffix("; delete them first").partition(" and ")[0]
        for user in named.split(", "):
            kind, name = user.split("/")
            assert rig.exists(kind, name), f"{key} waits for {user}, which is gone"
        waiting += 1
    return waiting


def nothing(_: set[Key]) -> None:
    """Watch nothing."""


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.fault("a whole application, in any order, at any parallelism")
async def test_any_order_of_applying_and_deleting_at_once_leaves_nothing_and_tells_who_waits(seed, workers):
    dice = random.Random(seed)
    async with Rig(seed=seed) as rig:
        manifests = await application()
        dice.shuffle(manifests)
        for key, manifest in manifests:
            rig.api.apply(key, {k: v for k, v in manifest.items() if k in ("spec", "type", "data")})
        await work(rig, workers, dice, nothing)
        keys = [key for key, _ in manifests if key[0] in KINDS]
        assert [key for key in keys if not rig.ready(key[0], key[2])] == []
        assert len(rig.everything_remote()) == len(keys)

        rig.forget()
        dice.shuffle(keys)
        for key in keys:
            rig.api.delete(key)
        waiting: list[int] = []
        await work(rig, workers, dice, lambda running: waiting.append(says_who_waits_for_whom(rig, running)))
        assert workers > 1 or max(waiting) > 0, "nobody ever waited"  # many workers may be through before anybody looks

        assert [key for key in rig.api.objects if key[0] in KINDS] == []
        assert rig.everything_remote() == []
        assert {call.split()[0] for call in rig.calls} == {"DELETE"}
        assert {call.split()[2] for call in rig.calls} == {"204"}, "nothing was tried that had to fail"


@pytest.mark.parametrize("seed", SEEDS)
async def test_what_is_deleted_while_it_comes_up_leaves_nothing(seed):
    """Some passes are made, then all is deleted; answers get lost on the way."""
    dice = random.Random(seed)
    async with Rig(seed=seed) as rig:
        manifests = await application()
        dice.shuffle(manifests)
        for key, manifest in manifests:
            rig.api.apply(key, {k: v for k, v in manifest.items() if k in ("spec", "type", "data")})
        rig.faults({"kind": "cut", "when": "after", "count": 3})
        for _ in range(dice.randrange(5, 40)):
            if rig.process.dirty:
                await rig.work(dice.choice(list(rig.process.dirty)))
        keys = [key for key in rig.api.objects if key[0] in KINDS]
        dice.shuffle(keys)
        for key in keys:
            rig.api.delete(key)
        rig.faults()
        await work(rig, 3, dice, nothing)
        await rig.settle()
        assert [key for key in rig.api.objects if key[0] in KINDS] == []
        assert rig.everything_remote() == []


async def test_half_of_it_deleted_waits_for_the_other_half_and_goes_with_it():
    async with Rig() as rig:
        for key, manifest in await application():
            rig.api.apply(key, {k: v for k, v in manifest.items() if k in ("spec", "type", "data")})
        await rig.settle()
        for kind in ("SSHCertificateAuthority", "WeightedBackend", "HTTPSEdge", "TLSCertificate"):
            rig.delete(kind)
        await rig.settle()
        assert says_who_waits_for_whom(rig, set()) > 0
        waiting = {kind for kind in KINDS if rig.exists(kind) and rig.reason(kind) == "DeletionBlocked"}
        assert waiting >= {"SSHCertificateAuthority", "WeightedBackend", "HTTPSEdge"}
        for key in [key for key in rig.api.objects if key[0] in KINDS]:
            rig.api.delete(key)
        await rig.settle()
        assert rig.everything_remote() == []
