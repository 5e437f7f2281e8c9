"""Runs a scenario with something done to it at some of its effects, and judges how it ends."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives import serialization

from doubles.apiserver import Object
from doubles.cluster import ID
from doubles.effects import Fate
from doubles.foreign import FOREIGN
from doubles.frozen import Frozen, freeze, thaw
from doubles.lives import End, Scenario, secret_of
from doubles.rig import GRACE_SECONDS, Rig
from doubles.schedules import PAUSED, Meddling, Schedule
from edge_operator.declare import Issued, Token
from edge_operator.engine import marker, ssh
from edge_operator.engine.state import CLAIM, FINALIZER
from edge_operator.kinds import KINDS

LAG = {"kind": "lag", "seconds": 0.6 * GRACE_SECONDS}
"""Lists leave out what is younger than that; the grace is longer, as it has to be."""
OVERLAP_SECONDS = 30 * 3600.0
"""Longer than any overlap here: a rotation that came late is over then."""
STEADY = Scenario("steady", None, None)  # type: ignore[arg-type]  # only what is judged of it


MANY = "many of all kinds"
"""What the state machine tries."""


@dataclass
class Tally:
    """What was run, for the summary and for docs/reliability.md."""

    schedules: Counter[str] = field(default_factory=Counter)
    """By kind, as all that end in `of`."""
    injected: Counter[str] = field(default_factory=Counter)
    """By what was done; once for each time that it happened."""
    injected_of: Counter[str] = field(default_factory=Counter)
    checked: Counter[str] = field(default_factory=Counter)
    """By invariant."""
    checked_of: Counter[str] = field(default_factory=Counter)
    violated_of: Counter[str] = field(default_factory=Counter)
    kind: str = MANY
    """What is being tried, for counting."""

    def inject(self, what: Iterable[str]) -> None:
        """Count what was done to the kind that is being tried."""
        done = Counter(what)
        self.injected += done
        self.injected_of[self.kind] += done.total()

    def figures(self) -> dict[str, dict[str, int]]:
        """What was counted, as JSON."""
        return {name: dict(counted) for name, counted in vars(self).items() if isinstance(counted, Counter)}


TALLY = Tally()


def hold(invariant: str, holds: bool, found: str = "") -> None:
    """Count that an invariant was looked at, and insist that it holds."""
    TALLY.checked[invariant] += 1
    TALLY.checked_of[TALLY.kind] += 1
    assert holds, f"{invariant}: {found}"


@dataclass(frozen=True)
class Begun:
    """A scenario that is prepared, with the names of its effects, undisturbed."""

    kind: str
    scenario: Scenario
    frozen: Frozen = field(repr=False)
    effects: tuple[str, ...]


async def begun(kind: str, scenario: Scenario) -> Begun:
    """Prepare a scenario and run it once undisturbed."""
    TALLY.kind = kind
    async with Rig() as rig:
        await scenario.prepare(rig)
        await rig.sleep(2 * GRACE_SECONDS)  # so that nothing is as young as the grace
        frozen = freeze(rig)
    async with thaw(frozen) as rig:
        await _run(rig, scenario)
        effects = tuple(rig.effects.log)
        await judge(rig, kind, scenario)
        return Begun(kind, scenario, frozen, effects)


async def survive(begun: Begun, schedule: Schedule, *, stale: int = 0) -> int:
    """How many fates were met of that schedule, counted from where `act` begins. The end is judged."""
    kind, scenario = begun.kind, begun.scenario
    TALLY.kind = kind
    async with thaw(begun.frozen) as rig:
        ends: list[End] = [scenario.end]
        last: list[Object] = []
        rig.api.listeners.append(lambda _, was, now, __: last.append(was) if was and not now else None)
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
            if rig.exists(kind) and "previous" in rig.status(kind):
                await rig.sleep(OVERLAP_SECONDS)
            await judge(rig, kind, scenario, ends, [o for o in last if o["kind"] == kind])
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
    rig: Rig, kind: str, scenario: Scenario = STEADY, ends: Sequence[End] = (), last: Sequence[Object] = ()
) -> None:
    """What has to hold at the end of every scenario. `ends` is what was asked for; `last`, what went as it was last."""
    ours = [doc for doc in rig.remote(kind) if doc["description"] != FOREIGN]
    others = len(rig.remote(kind)) - len(ours)
    hold("objects of others are untouched", others == scenario.foreign, f"{others} of {scenario.foreign}")
    hold("it comes to rest", not rig.process.dirty, "something is still to be done")
    asked = ends or [scenario.end]
    if asked[-1] is not End.LIVES:
        vanished = bool(scenario.rounds)
        _judge_parted(rig, kind, {doc["id"] for doc in ours}, asked, {} if vanished or not last else last[-1])
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
    hold(
        "the marker names the resource",
        owner is not None and (owner.uid, owner.nonce) == (meta["uid"], status["nonce"]),
        str(owner),
    )
    _judge_secret(rig, kind, ours[0])
    await _judge_quiet(rig, kind)


def _judge_parted(rig: Rig, kind: str, ids: set[str], ends: Sequence[End], last: Object) -> None:
    """The resource is gone: with everything, unless it was asked first to leave what there was."""
    hold("a deleted resource goes", not rig.exists(kind), rig.message(kind) if rig.exists(kind) else "")
    secret = rig.published(secret_of(kind))
    if End.LEFT not in ends:
        hold("nothing is left after deletion", (ids, secret) == (set(), None), f"{ids}, {secret}")
        return
    status = last.get("status") or {}
    unrecorded = ids - {status.get("id"), *(p["id"] for p in status.get("previous") or ())}
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


async def _judge_quiet(rig: Rig, kind: str) -> None:
    """A list finds nothing to heal, and a restart nothing to do."""
    rig.forget()
    await rig.resync(kind)
    assert {call.split()[0] for call in rig.calls} <= {"GET"}, f"a list found something to heal: {rig.calls}"
    assert rig.writes == []
    rig.forget()
    await rig.restart()
    await rig.settle()
    assert (rig.calls, rig.writes) == ([], []), "a restart found something to do"
