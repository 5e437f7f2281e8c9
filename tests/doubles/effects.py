"""All that a process does to the outside passes here, so that a test can stop it, or lose an answer, anywhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum


class Fate(StrEnum):
    """What becomes of one effect. The last four are for calls of the service, the three before for cluster writes."""

    DIE_BEFORE = "die before"
    DIE_AFTER = "die after"
    OVERTAKEN = "frozen after its last check, while another replica goes on"
    CONFLICT = "conflict"
    LOST_WRITE = "written, answer lost"
    CUT_BEFORE = "cut before commit"
    CUT_AFTER = "cut after commit"
    FAULT_AFTER = "503 after commit"
    GARBAGE_AFTER = "garbage after commit"


_INSTEAD = {
    True: {
        Fate.CUT_BEFORE: Fate.CONFLICT,
        Fate.CUT_AFTER: Fate.LOST_WRITE,
        Fate.FAULT_AFTER: Fate.LOST_WRITE,
        Fate.GARBAGE_AFTER: Fate.LOST_WRITE,
    },
    False: {Fate.CONFLICT: Fate.CUT_BEFORE, Fate.LOST_WRITE: Fate.CUT_AFTER, Fate.OVERTAKEN: Fate.DIE_BEFORE},
}
"""What a fate means to an effect of the other sort; after a first disturbance nobody knows which sort comes next."""


class Died(BaseException):
    """The process was stopped; what it knew is gone. Not an Exception: nothing in the line may catch it."""


class Unreachable(Exception):
    """The API server did not answer; the write may have happened."""


@dataclass
class Effects:
    """Counts effects from 1 and keeps their names: "cluster PATCH TLSEdge/db status", "POST /edges/tls"."""

    log: list[str] = field(default_factory=list)
    fates: dict[int, Fate] = field(default_factory=dict)
    met: list[tuple[int, Fate]] = field(default_factory=list)
    meddling: dict[int, Callable[[], object]] = field(default_factory=dict)
    """What a user does just before the effect of that number."""

    def begin(self, name: str) -> Fate | None:
        """The fate of this effect. Raises Died where the process stops before it."""
        self.log.append(name)
        if meddle := self.meddling.pop(len(self.log), None):
            meddle()
        fate = self.fates.pop(len(self.log), None)
        if fate is not None:
            fate = _INSTEAD[name.startswith("cluster")].get(fate, fate)
            self.met.append((len(self.log), fate))
        if fate is Fate.DIE_BEFORE:
            raise Died(name)
        return fate

    @staticmethod
    def end(fate: Fate | None, name: str) -> None:
        """Raises Died where the process stops after the effect."""
        if fate is Fate.DIE_AFTER:
            raise Died(name)
        if fate is Fate.LOST_WRITE:
            raise Unreachable(name)
