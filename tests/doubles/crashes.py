"""Runs a scenario with something done to it at some of its effects, and judges how it ends."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cryptography.hazmat.primitives import serialization

from doubles import adoptions, unmarked
from doubles.apiserver import Key, Object
from doubles.cluster import ID
from doubles.effects import Fate
from doubles.foreign import FOREIGN
from doubles.frozen import Frozen, freeze, thaw
from doubles.hands import NAMESPACE
from doubles.lives import End, Scenario, secret_of
from doubles.rig import GRACE_SECONDS, Rig
from doubles.schedules import PAUSED, Meddling, Schedule
from doubles.tally import TALLY, hold
from edge_operator.declare import Issued, Token
from edge_operator.derive import samples
from edge_operator.engine import marker, ssh
from edge_operator.engine.state import CLAIM, FINALIZER
from edge_operator.kinds import KINDS

LAG = {"kind": "lag", "seconds": 0.6 * GRACE_SECONDS}
"""Lists leave out what is younger than that; the grace is longer, as it has to be."""
OVERLAP_SECONDS = 30 * 3600.0
"""Longer than any overlap here: a rotation that came late is over then."""
STEADY = Scenario("steady", None, None)  # type: ignore[arg-type]  # only what is judged of it


@dataclass(frozen=True)
class Begun:
    """A scenario that is prepared, with the names of its effects, undisturbed."""

    kind: str
    scenario: Scenario
    frozen: Frozen = field(repr=False)
    effects: tuple[str, ...]
    was: Object
    """The object to adopt as it was found."""


_BEGUN: dict[tuple[str, Scenario], Begun] = {}


async def begun(kind: str, scenario: Scenario) -> Begun:
    """Prepare a scenario and run it once undisturbed. What was begun once is begun from there again."""
    TALLY.kind = kind
    if (kind, scenario) not in _BEGUN:
        _BEGUN[kind, scenario] = await _begin(kind, scenario)
    return _BEGUN[kind, scenario]


async def _begin(kind: str, scenario: Scenario) -> Begun:
    async with Rig() as rig:
        await scenario.prepare(rig)
        await rig.sleep(2 * GRACE_SECONDS)  # so that nothing is as young as the grace
        frozen = freeze(rig)
        was = adoptions.found(kind, rig) if scenario.adopts else {}
    life = Begun(kind, scenario, frozen, (), was)
    async with thaw(frozen) as rig:
        last = _parting(rig, kind)
        await _run(rig, scenario)
        effects = tuple(rig.effects.log)
        await _answer(rig, life)
        await _judge(rig, life, [scenario.end], last)
        return replace(life, effects=effects)


async def survive(begun: Begun, schedule: Schedule, *, stale: int = 0) -> int:
    """How many fates were met of that schedule, counted from where `act` begins. The end is judged."""
    kind, scenario = begun.kind, begun.scenario
    TALLY.kind = kind
    async with thaw(begun.frozen) as rig:
        ends: list[End] = [scenario.end]
        last = _parting(rig, kind)
        rig.faults(LAG)
        rig.stale = stale
        meddled = _arrange(rig, kind, schedule, ends)
        try:
            await _run(rig, scenario)
            rig.effects.fates, rig.effects.meddling, rig.stale = {}, {}, 0
            await rig.settle()
            if PAUSED in meddled:
                await _judge_paused(rig, kind)
            for meddling in meddled:
                if meddling.undo is not None:
                    meddling.undo(kind, rig)
            rig.wake_all()
            await _rest(rig, scenario)
            edited = [meddling for meddling in meddled if meddling.record]
            for meddling in edited:
                if meddling.undo is not None:  # a person answers once the resource says what is wrong
                    meddling.undo(kind, rig)
            if edited and rig.exists(kind):
                await rig.settle()
                await rig.resync(kind)
            if rig.exists(kind) and "previous" in rig.status(kind):
                await rig.sleep(OVERLAP_SECONDS)
            await _answer(rig, begun)
            await _judge(rig, begun, ends, last, believed=not edited)
        except Exception as error:
            TALLY.violated_of[kind] += 1
            told = "\n  ".join(rig.effects.log)
            what = {number: str(disturbance) for number, disturbance in schedule}
            raise AssertionError(
                f"{kind}, {scenario}, {what}{f' {stale} behind' * bool(stale)}: {error!r}\n  {told}"
            ) from error
        TALLY.schedules[kind] += 1
        behind = [f"cache {stale} changes behind"] if stale else []
        TALLY.inject([*(str(fate) for _, fate in rig.effects.met), *map(str, meddled), *behind])
        return len(rig.effects.met)


def _parting(rig: Rig, kind: str) -> list[Object]:
    """Fills with the resource as it was last, once it is gone."""
    last: list[Object] = []

    def gone(key: Key, was: Object | None, now: Object | None, by: str) -> None:
        del by
        if key == (kind, NAMESPACE, samples.NAME) and was and not now:
            last.append(was)

    rig.api.listeners.append(gone)
    return last


async def _answer(rig: Rig, life: Begun) -> None:
    """Say what only a person can tell. An adoption makes nothing, so that there is nothing to tell of it."""
    if not life.scenario.marked and not life.scenario.adopts:
        await unmarked.answer(rig, life.kind)


async def _judge(rig: Rig, life: Begun, ends: Sequence[End], last: Sequence[Object], *, believed: bool = True) -> None:
    if not life.scenario.adopts:
        await judge(rig, life.kind, life.scenario, ends, last if believed else None)
        return
    _judge_others(rig, life.kind, life.scenario)
    adoptions.judge(rig, life.kind, life.scenario, life.was, ends, last[-1] if last else {})
    if ends[-1] is End.LIVES:
        if isinstance(KINDS[life.kind].lifecycle, Issued) and rig.reason(life.kind) == "Available":
            _judge_secret(rig, life.kind, adoptions.found(life.kind, rig))
        await _judge_quiet(rig, life.kind, looked_at=rig.reason(life.kind) != "Available")


def _judge_others(rig: Rig, kind: str, scenario: Scenario) -> None:
    others = len([doc for doc in rig.remote(kind) if doc["description"] == FOREIGN])
    hold("objects of others are untouched", others == scenario.foreign, f"{others} of {scenario.foreign}")
    hold("it comes to rest", not rig.process.dirty, "something is still to be done")


def _arrange(rig: Rig, kind: str, schedule: Schedule, ends: list[End]) -> list[Meddling]:
    """Lay the schedule out from here on; the list fills with what was met of a user."""
    meddled: list[Meddling] = []

    def meddle(meddling: Meddling) -> None:
        meddled.append(meddling)
        end = meddling.act(kind, rig)
        if end is not None:
            ends.append(end)

    for number, disturbance in schedule:
        if isinstance(disturbance, Fate):
            rig.effects.fates[number] = disturbance
        else:
            rig.effects.meddling[number] = functools.partial(meddle, disturbance)
    return meddled


async def _run(rig: Rig, scenario: Scenario) -> None:
    await scenario.act(rig)
    await _rest(rig, scenario)


async def _rest(rig: Rig, scenario: Scenario) -> None:
    """Work until nothing is to be done; with drift rounds where it takes those to notice what happened."""
    await rig.settle()
    for _ in range(2 if scenario.rounds else 0):
        await rig.resync(*scenario.rounds)


async def _judge_paused(rig: Rig, kind: str) -> None:
    rig.forget()
    rig.wake_all()
    await rig.settle()
    if rig.exists(kind):
        hold("what is paused is left alone", (rig.calls, rig.writes) == ([], []), f"{rig.calls} {rig.writes}")


async def judge(
    rig: Rig, kind: str, scenario: Scenario = STEADY, ends: Sequence[End] = (), last: Sequence[Object] | None = ()
) -> None:
    """What has to hold at the end of every scenario. `ends` is what was asked for; `last`, what went as it was last,
    None where its record is not to be believed.
    """
    ours = [doc for doc in rig.remote(kind) if doc["description"] != FOREIGN]
    _judge_others(rig, kind, scenario)
    asked = ends or [scenario.end]
    if asked[-1] is not End.LIVES:
        vanished = bool(scenario.rounds)
        parted = None if last is None else {} if vanished or not last else last[-1]
        _judge_parted(rig, kind, {doc["id"] for doc in ours}, asked, parted)
        return
    hold("every resource ends in sync", rig.ready(kind), f"{rig.reason(kind)}: {rig.message(kind)}")
    resource = rig.get(kind)
    status, meta = resource["status"], resource["metadata"]
    ids = [doc["id"] for doc in ours]
    hold("one current remote object", ids == [status["id"]], f"{ids}, recorded {status['id']}")
    hold("predecessors are gone in the end", "previous" not in status, str(status.get("previous")))
    hold("finalizer and claim stay", FINALIZER in meta["finalizers"], "no finalizer")
    claim = meta["annotations"][CLAIM]
    hold("finalizer and claim stay", claim == f"{meta['uid']}.{status['nonce']}", f"{claim}, {status['nonce']}")
    owner = marker.split(ours[0]["metadata"])[1]
    if scenario.marked:
        named = owner is not None and (owner.uid, owner.nonce) == (meta["uid"], status["nonce"])
        hold("the marker names the resource", named, str(owner))
    else:
        hold("no marker where they are off", owner is None, str(owner))
    _judge_secret(rig, kind, ours[0])
    await _judge_quiet(rig, kind)


def _judge_parted(rig: Rig, kind: str, ids: set[str], ends: Sequence[End], last: Object | None) -> None:
    """The resource is gone: with everything, unless it was asked first to leave what there was."""
    hold("a deleted resource goes", not rig.exists(kind), rig.message(kind) if rig.exists(kind) else "")
    secret = rig.published(secret_of(kind))
    if End.LEFT not in ends:
        hold("nothing is left after deletion", (ids, secret) == (set(), None), f"{ids}, {secret}")
        return
    status = (last or {}).get("status") or {}
    unrecorded = ids - {status.get("id"), *(p["id"] for p in status.get("previous") or ())}
    if last is not None:
        hold("what is left was recorded, or is one creation under way", len(unrecorded) <= 1, str(unrecorded))
    if End.GONE in ends:
        return
    if status.get("id"):
        hold("what is retained or abandoned stays", status["id"] in ids, f"{ids}, {status['id']}")
    if secret is not None:
        hold("a retained Secret has no owner", "ownerReferences" not in secret["metadata"], str(secret["metadata"]))


def _judge_secret(rig: Rig, kind: str, remote: dict[str, Any]) -> None:
    outputs = KINDS[kind].outputs
    if not outputs:
        return
    name = secret_of(kind)
    secret = rig.published(name)
    assert secret is not None
    assert secret["metadata"]["annotations"][ID] == remote["id"], "the Secret is of another object"
    assert rig.status(kind)["secretName"] == name
    values = {o.source: secret["data"].get(o.key) for o in outputs}
    match KINDS[kind].lifecycle:
        case Issued():
            assert values["certificate"] is not None
            assert values["certificate"].strip() == remote["certificate"]
            _judge_certificate(rig, kind, values)
        case Token():
            if kind == "APIKey":
                with rig.app.store.read() as tx:
                    assert rig.app.keyring.holder(tx, values["token"] or "") == remote["id"], "the token opens nothing"
            assert values["token"], "a token was lost"
            assert values["id"] == remote["id"]
            assert values["previous.token"] is None, "a token of a predecessor that is gone"


def _judge_certificate(rig: Rig, kind: str, values: dict[str, Any]) -> None:
    spec, lifecycle = rig.get(kind)["spec"], KINDS[kind].lifecycle
    assert isinstance(lifecycle, Issued)
    wish = ssh.Wish(
        host=lifecycle.host,
        public_key=values["public_key"],
        principals=spec["principals"],
        authority=values["authority.public_key"],
    )
    ssh.verify(values["certificate"], wish, rig.world.now())
    if "privateKey" in spec:
        key = serialization.load_ssh_private_key(values["private_key"].encode(), None)
        public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
        assert public.decode() == values["public_key"].strip(), "private and public key do not belong together"


async def _judge_quiet(rig: Rig, kind: str, *, looked_at: bool = False) -> None:
    """A list finds nothing to heal, and a restart nothing to do. What is not in sync is looked at each time."""
    rig.forget()
    await rig.resync(kind)
    assert {call.split()[0] for call in rig.calls} <= {"GET"}, f"a list found something to heal: {rig.calls}"
    assert rig.writes == []
    rig.forget()
    await rig.restart()
    await rig.settle()
    calls = [call for call in rig.calls if not (looked_at and call.startswith("GET "))]
    assert (calls, rig.writes) == ([], []), "a restart found something to do"
