"""Lives of a resource that adopts what somebody else made, and what has to hold of the object that it adopts."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from typing import Any

from doubles.apiserver import Object, copied
from doubles.effects import Died
from doubles.foreign import FOREIGN, foreign
from doubles.lives import Act, End, Scenario, secret_of
from doubles.rig import Rig
from doubles.scenarios import EDITS
from doubles.tally import hold
from edge_operator.declare import Issued
from edge_operator.derive import samples
from edge_operator.engine import marker
from edge_operator.engine.state import CLAIM, FINALIZER
from edge_operator.kinds import KINDS

ELDER = "elder"
"""The name of a resource that has the object first."""


def of(kind: str) -> Iterator[Scenario]:
    """Every scenario of a kind in which an object is adopted."""
    yield _scenario(kind, "adopted, unlike", _adopt_unlike, _left_over)
    yield _scenario(kind, "adopted and deleted", _adopt_and_delete, _left_over, end=End.GONE)
    yield _scenario(kind, "adopted, changed", _change, _adopted)
    yield _scenario(kind, "adopted, retained", _delete, _adopted_for_now, end=End.LEFT)
    yield _scenario(kind, "adopted, vanished", _vanish, _adopted, stalls="RemoteMissing", rounds=(kind,))
    yield _scenario(kind, "adopted, observed", _observe_unlike, _left_over)
    yield _scenario(kind, "adopted, of another", _adopt, _anothers, stalls="OwnershipConflict")
    yield _scenario(kind, "adopted, let go by another", _let_go, _wanted_by_two)


def _scenario(kind: str, name: str, act: Act, prepare: Act, **members: Any) -> Scenario:
    part = functools.partial
    return Scenario(name, part(prepare, kind), part(act, kind), adopts=True, **members)


# Before --------------------------------------------------------------------------------------------


async def _left_over(kind: str, rig: Rig) -> None:
    """An object as the example would make it, which nobody has, and whose metadata is not ours."""
    rig.sample(kind)
    await rig.settle()
    assert rig.ready(kind), rig.message(kind)
    id_ = rig.id(kind)
    rig.annotate(kind, abandon="true")
    rig.delete(kind)
    await rig.settle()
    if rig.published(secret_of(kind)):
        rig.api.delete(("Secret", "default", secret_of(kind)))
    await rig.outside.of(KINDS[kind].api).raw.update(id_, {"metadata": "theirs"}, **_path(kind, rig))
    await foreign(rig, kind)


async def _adopted(kind: str, rig: Rig, **members: Any) -> None:
    await _left_over(kind, rig)
    await _adopt(kind, rig, **members)
    await rig.settle()
    assert rig.ready(kind), rig.message(kind)


async def _adopted_for_now(kind: str, rig: Rig) -> None:
    await _adopted(kind, rig, deletionPolicy="Retain")


async def _anothers(kind: str, rig: Rig) -> None:
    """An object that another resource made."""
    rig.sample(kind, ELDER)
    await rig.settle()
    assert rig.ready(kind, ELDER), rig.message(kind, ELDER)
    await foreign(rig, kind)


async def _wanted_by_two(kind: str, rig: Rig) -> None:
    await _left_over(kind, rig)
    rig.apply(kind, ELDER, {**_wish(kind, rig), "deletionPolicy": "Retain"})
    await rig.settle()
    rig.world.advance(2)
    await _adopt(kind, rig)
    await rig.settle()
    assert rig.ready(kind, ELDER), rig.message(kind, ELDER)
    assert rig.reason(kind) == "OwnershipConflict"


def _path(kind: str, rig: Rig) -> dict[str, str]:
    return {"edge_id": rig.id("HTTPSEdge")} if kind == "HTTPSRoute" else {}


def _wish(kind: str, rig: Rig) -> dict[str, Any]:
    """The example's spec for the object that is there. A certificate keeps the key that it was made for."""
    (there,) = _ours(kind, rig)
    spec = {**copied(samples.spec(KINDS[kind])), "metadata": marker.split(there["metadata"])[0]}
    if isinstance(KINDS[kind].lifecycle, Issued):
        spec = {k: v for k, v in spec.items() if k != "privateKey"} | {"publicKey": {"value": there["public_key"]}}
    return {**spec, "externalID": there["id"], "deletionPolicy": "Delete"}


# What happens --------------------------------------------------------------------------------------


async def _adopt(kind: str, rig: Rig, **members: Any) -> None:
    rig.apply(kind, samples.NAME, {**_wish(kind, rig), **members})


async def _adopt_unlike(kind: str, rig: Rig) -> None:
    await _adopt(kind, rig, **_unlike(kind))


async def _observe_unlike(kind: str, rig: Rig) -> None:
    await _adopt(kind, rig, managementPolicy="Observe", description="not as it is")


async def _adopt_and_delete(kind: str, rig: Rig) -> None:
    """Deleted before the operator looks twice."""
    await _adopt(kind, rig)
    with contextlib.suppress(Died):
        await rig.work()
    if rig.exists(kind):
        rig.delete(kind)


async def _change(kind: str, rig: Rig) -> None:
    rig.edit(kind, **_unlike(kind))


async def _delete(kind: str, rig: Rig) -> None:
    rig.delete(kind)


async def _vanish(kind: str, rig: Rig) -> None:
    await rig.outside.of(KINDS[kind].api).raw.delete(rig.id(kind), **_path(kind, rig))


async def _let_go(kind: str, rig: Rig) -> None:
    rig.delete(kind, ELDER)


def _unlike(kind: str) -> dict[str, Any]:
    """The edit of the kind that takes the most calls, of those that change the object in its place."""
    edits = [e for e in EDITS[kind] if all(call.startswith(("PATCH", "PUT")) for call in e.calls)]
    return max(edits, key=lambda e: len(e.calls)).members


# What has to hold ----------------------------------------------------------------------------------


def _ours(kind: str, rig: Rig) -> list[Object]:
    return [doc for doc in rig.remote(kind) if doc["description"] != FOREIGN]


def found(kind: str, rig: Rig) -> Object:
    """The object to adopt, before anything is done."""
    (there,) = _ours(kind, rig)
    return there


def judge(rig: Rig, kind: str, scenario: Scenario, was: Object, asked: Sequence[End], last: Object) -> None:
    """What has to hold at the end. `was` is the object as it was found; `last`, the resource as it was last."""
    made = [name for name in rig.effects.log if name.startswith("POST ")]
    hold("an adoption makes nothing", not made, str(made))
    now = _ours(kind, rig)
    if rig.exists(kind, ELDER):
        hold("whoever has the object first keeps it", rig.ready(kind, ELDER), rig.message(kind, ELDER))
    if asked[-1] is not End.LIVES:
        hold("a deleted resource goes", not rig.exists(kind), rig.message(kind) if rig.exists(kind) else "")
        _judge_parted(rig, kind, scenario, was, asked, last)
    elif scenario.stalls:
        said = f"{rig.reason(kind)}: {rig.message(kind)}"
        hold("what cannot be adopted says so", rig.reason(kind) == scenario.stalls and was["id"] in said, said)
        _untouched(now, [] if scenario.stalls == "RemoteMissing" else [was])
    else:
        _judge_adopted(rig, kind, scenario, was)


def _judge_adopted(rig: Rig, kind: str, scenario: Scenario, was: Object) -> None:
    resource, now = rig.get(kind), _ours(kind, rig)
    hold("every resource ends in sync", rig.ready(kind), f"{rig.reason(kind)}: {rig.message(kind)}")
    status, meta = resource["status"], resource["metadata"]
    hold("what is adopted is the object", [doc["id"] for doc in now] == [was["id"]] == [status["id"]], f"{now}")
    if resource["spec"].get("managementPolicy") == "Observe":
        hold("what is observed is not taken hold of", FINALIZER not in meta.get("finalizers", ()), str(meta))
        _untouched(now, [was])
        return
    hold("finalizer and claim stay", FINALIZER in meta["finalizers"], "no finalizer")
    hold("finalizer and claim stay", meta["annotations"][CLAIM] == f"{meta['uid']}.{status['nonce']}", str(meta))
    owner = marker.split(now[0]["metadata"])[1]
    if not scenario.marked:
        hold("no marker where they are off", owner is None, str(owner))
    elif owner is None:
        _untouched(now, [was])
    else:
        same = (owner.uid, owner.nonce) == (meta["uid"], status["nonce"])
        hold("the marker names the resource", same, f"{owner}, {meta['uid']}, {status['nonce']}")


def _judge_parted(rig: Rig, kind: str, scenario: Scenario, was: Object, asked: Sequence[End], last: Object) -> None:
    """The object went only if it was taken hold of, and nobody asked to keep it."""
    now = _ours(kind, rig)
    if scenario.stalls:
        _untouched(now, [] if scenario.stalls == "RemoteMissing" else [was])
    elif last["spec"].get("managementPolicy") == "Observe" or FINALIZER not in last["metadata"].get("finalizers", ()):
        _untouched(now, [was])
    elif End.LEFT not in asked:
        hold("an adopted object goes with its resource", now == [], str(now))
    elif End.GONE not in asked:
        hold("what is retained or abandoned stays", [doc["id"] for doc in now] == [was["id"]], str(now))
        owner = marker.split(now[0]["metadata"])[1]
        hold("its marker, if any, names who had it last", owner is None or owner.uid == last["metadata"]["uid"], "")
        if owner is None and scenario.marked:
            _untouched(now, [was])


def _untouched(now: list[Object], was: list[Object]) -> None:
    hold("an object that was adopted at most is as it was found", now == was, f"{now}, was {was}")
