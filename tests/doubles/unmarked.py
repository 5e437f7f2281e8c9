"""Lives through a connection without owner markers, where only a person can tell what became of a creation."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace

from doubles import adoptions, lives
from doubles.foreign import FOREIGN
from doubles.lives import Scenario
from doubles.rig import Rig
from doubles.tally import hold
from edge_operator.engine.state import CLAIM
from edge_operator.kinds import KINDS

LIVES = (
    "create and delete",
    "vanish",
    "status wiped",
    "rotation asked for",
    "Secret changed",
    "adopted and deleted",
)


def of(kind: str) -> Iterator[Scenario]:
    """The scenarios of a kind in which an object is made or sought."""
    for scenario in (*lives.of(kind), *adoptions.of(kind)):
        if scenario.name in LIVES:
            prepare = functools.partial(_unmarked, scenario)
            yield replace(scenario, name=f"{scenario.name}, unmarked", prepare=prepare, marked=False)


async def _unmarked(scenario: Scenario, rig: Rig) -> None:
    rig.marked = False
    await scenario.prepare(rig)


async def answer(rig: Rig, kind: str) -> None:
    """Where it is not known whether an object was made, look into the account as the message asks, and say so."""
    while rig.exists(kind) and rig.reason(kind) == "CreateOutcomeUnknown":
        said, status = rig.message(kind), rig.status(kind)
        hold("what only a person can tell is asked", f"take the annotation {CLAIM} off" in said, said)
        recorded = {status.get("id"), *(p["id"] for p in status.get("previous") or ())}
        there = {doc["id"] for doc in rig.remote(kind) if doc["description"] != FOREIGN} - recorded
        hold("without a marker nothing is made twice", len(there) <= 1, f"{there}, recorded {recorded}")
        path = {"edge_id": rig.id("HTTPSEdge")} if kind == "HTTPSRoute" else {}
        for id_ in there:
            await rig.outside.of(KINDS[kind].api).raw.delete(id_, **path)
        rig.annotate(kind, claim=None)
        await rig.settle()
