"""What is done to a scenario at which of its effects: every single thing, and every two of them, or a sample of those.

The sample is the same for the same seed: EDGE_OPERATOR_SEED. EDGE_OPERATOR_SIZE is the size of the run.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from doubles.effects import Fate
from doubles.foreign import FOREIGN
from doubles.hands import NAMESPACE
from doubles.lives import End, secret_of
from doubles.rig import Rig
from edge_operator.kinds import KINDS

SEED = int(os.environ.get("EDGE_OPERATOR_SEED", "1"))


class Size(NamedTuple):
    """How much is tried."""

    pairs: int | None
    """So many pairs of disturbances of each scenario; None for all."""
    machine_runs: int
    machine_steps: int
    mishaps: int
    """So many things happen to real processes."""


SIZES = {
    "common": Size(10, 200, 40, 100),
    "large": Size(300, 1000, 50, 600),
    "nightly": Size(None, 3000, 60, 2000),
}
SIZE_NAME = os.environ.get("EDGE_OPERATOR_SIZE") or "common"
SIZE = SIZES[SIZE_NAME]
TIMEOUT_SECONDS = 600 if SIZE_NAME == "common" else 0
"""After so long one test is over; 0 for never."""

_CLUSTER = (Fate.DIE_BEFORE, Fate.DIE_AFTER, Fate.CONFLICT, Fate.LOST_WRITE, Fate.OVERTAKEN)
_REMOTE = (Fate.DIE_BEFORE, Fate.DIE_AFTER, Fate.CUT_BEFORE, Fate.CUT_AFTER, Fate.FAULT_AFTER, Fate.GARBAGE_AFTER)
_LATER = 3
"""So many effects more than undisturbed, at most, the second thing is done at: the first one leads to more effects."""


@dataclass(frozen=True)
class Meddling:
    """What a user, or the clock, does just before an effect; `undo` comes when everything has come to rest.

    `act` says what is to be left at the end where that is another thing now.
    """

    what: str
    act: Callable[[str, Rig], End | None]
    undo: Callable[[str, Rig], None] | None = None
    record: bool = False
    """Whether it changes what the resource remembers of its objects; a drift round may have to find what it led to."""

    def __str__(self) -> str:
        return self.what


Disturbance = Fate | Meddling
Schedule = tuple[tuple[int, Disturbance], ...]
"""What is done at the effects of those numbers, counted from 1."""


def singles(kind: str, effects: Sequence[str], *, records: bool = True) -> Iterator[Schedule]:
    """Each disturbance at each effect; what a user does also after the last."""
    for number, name in enumerate(effects, 1):
        for disturbance in (*_fates(name), *meddlings(kind, records=records)):
            yield ((number, disturbance),)


def pairs(kind: str, effects: Sequence[str], *, records: bool = True) -> Iterator[Schedule]:
    """Each two disturbances at each two effects, and at one effect what a user does with each fate."""
    for number, name in enumerate(effects, 1):
        for first in (*_fates(name), *meddlings(kind, records=records)):
            if isinstance(first, Meddling):
                yield from (((number, first), (number, fate)) for fate in _fates(name))
            later = range(number + 1, len(effects) + _LATER + 1)
            for second in itertools.product(later, (*_REMOTE, *meddlings(kind, records=records))):
                yield ((number, first), second)


def sample(name: str, of: Sequence[Schedule], common: int | None = None) -> Sequence[Schedule]:
    """As many of them as the size says, the same for the same name and seed; in the common size `common`, if given."""
    count = common if common is not None and SIZE_NAME == "common" else SIZE.pairs
    if count is None or len(of) <= count:
        return of
    return random.Random(f"{SEED} {name}").sample(of, count)


def _fates(effect: str) -> tuple[Fate, ...]:
    return _CLUSTER if effect.startswith("cluster") else _REMOTE


# What a user does ------------------------------------------------------------------------------------


def meddlings(kind: str, *, records: bool = True) -> tuple[Meddling, ...]:
    """What can be done to a resource of that kind; without what is done to its record, if so asked."""
    every = (*_ALWAYS, *_WITH_SECRET) if KINDS[kind].outputs else _ALWAYS
    return every if records else tuple(meddling for meddling in every if not meddling.record)


def _living(kind: str, rig: Rig) -> bool:
    """Whether it is there and stays."""
    return rig.exists(kind) and not rig.get(kind)["metadata"].get("deletionTimestamp")


def _edit(kind: str, rig: Rig) -> None:
    if _living(kind, rig):
        rig.edit(kind, metadata='{"edited": "meanwhile"}')


def _label(kind: str, rig: Rig) -> None:
    if rig.exists(kind):
        rig.api.apply((kind, NAMESPACE, "example"), {"metadata": {"labels": {"touched": "meanwhile"}}})


def _delete(kind: str, rig: Rig) -> End | None:
    if not _living(kind, rig):
        return None
    rig.delete(kind)
    return End.GONE


def _retain(kind: str, rig: Rig) -> End | None:
    if not _living(kind, rig):
        return None
    rig.edit(kind, deletionPolicy="Retain")
    rig.delete(kind)
    return End.LEFT


def _abandon(kind: str, rig: Rig) -> End | None:
    if not rig.exists(kind):
        return None
    rig.annotate(kind, abandon="true")
    if _living(kind, rig):
        rig.delete(kind)
    return End.LEFT


def _pause(kind: str, rig: Rig) -> None:
    if rig.exists(kind):
        rig.annotate(kind, paused="true")


def _resume(kind: str, rig: Rig) -> None:
    if rig.exists(kind):
        rig.annotate(kind, paused=None)


def _lose_secret(kind: str, rig: Rig) -> None:
    if rig.published(secret_of(kind)):
        rig.api.delete(("Secret", NAMESPACE, secret_of(kind)))


def _empty_secret(kind: str, rig: Rig) -> None:
    if rig.published(secret_of(kind)):
        rig.api.apply(("Secret", NAMESPACE, secret_of(kind)), {"data": {}})


def _foreign(kind: str, rig: Rig) -> str | None:
    """The id of an object in the account that nobody marked."""
    found = (doc["id"] for doc in rig.remote(kind) if doc["description"] == FOREIGN and doc["metadata"] == "mine")
    return next(found, None)


def _patch_status(kind: str, rig: Rig, **members: Any) -> None:
    rig.api.patch_status((kind, NAMESPACE, "example"), None, members, "user")


def _name_foreign(kind: str, rig: Rig) -> None:
    if rig.exists(kind) and (id_ := _foreign(kind, rig)):
        _patch_status(kind, rig, id=id_)


def _forget_foreign(kind: str, rig: Rig) -> None:
    """What a person does where the resource has no object, so that nothing tells which one is meant."""
    if _living(kind, rig) and rig.reason(kind) == "OwnershipConflict":
        _patch_status(kind, rig, id=None)


def _name_foreign_predecessor(kind: str, rig: Rig) -> None:
    if rig.exists(kind) and (id_ := _foreign(kind, rig)):
        previous = rig.status(kind).get("previous") or []
        _patch_status(kind, rig, previous=[*previous, {"id": id_, "deleteAfter": "2020-01-01T00:00:00Z"}])


def _take_claim_of_another(kind: str, rig: Rig) -> None:
    """Another resource's manifest is applied over this one; where there is none, that of one that is gone."""
    others = [o["metadata"]["uid"] for key, o in sorted(rig.api.objects.items()) if key[0] in KINDS and key[0] != kind]
    if rig.exists(kind):
        rig.annotate(kind, claim=f"{[*others, '99999999-0000-4000-8000-000000000001'][0]}.theirs")


def _wipe_status(kind: str, rig: Rig) -> None:
    if rig.exists(kind):
        _patch_status(kind, rig, **dict.fromkeys(rig.status(kind)))


def _clock(span: timedelta) -> Callable[[str, Rig], None]:
    return lambda _, rig: rig.world.step(span)


_DAY, _SOON = timedelta(days=1), timedelta(hours=2)
PAUSED = Meddling("paused for a while", _pause, _resume)
_ALWAYS = (
    Meddling("edited", _edit),
    Meddling("labelled", _label),
    Meddling("deleted", _delete),
    Meddling("deleted, retained", _retain),
    Meddling("abandoned", _abandon),
    PAUSED,
    Meddling("status edited to name a foreign object", _name_foreign, _forget_foreign, record=True),
    Meddling("previous edited to name a foreign object", _name_foreign_predecessor, record=True),
    Meddling("claim of another resource written over", _take_claim_of_another, record=True),
    Meddling("status taken off", _wipe_status, record=True),
    Meddling("clock stepped back", _clock(-_DAY), _clock(_DAY)),
    Meddling("clock stepped forward", _clock(_SOON), _clock(-_SOON)),
)
_WITH_SECRET = (Meddling("Secret deleted", _lose_secret), Meddling("Secret emptied", _empty_secret))
