"""What a plan is made of, and the ways a pass can end before its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from edge_operator.declare import Body
from edge_operator.engine.reasons import Events, Stalls, Waits

Path = Mapping[str, str]
"""Ids in the address of an object, for example {"edge_id": "edghts_1"}; empty for most."""


@dataclass(frozen=True)
class KeyPair:
    """An SSH key pair in OpenSSH form; the private half never shows in a repr."""

    public: str
    private: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class KeyRequest:
    """A key pair to be made: `rsa` with 2048, `ecdsa` with 256, `ed25519`."""

    algorithm: str
    size: int | None


@dataclass(frozen=True)
class Claim:
    """Finalizer and claim annotation in one write, before any POST."""

    nonce: str


@dataclass(frozen=True)
class Create:
    """POST. `key`: make this key pair first and send its public half as `public_key`.

    `overlap`: how long a predecessor stays.
    """

    body: Body = field(repr=False)
    path: Path
    key: KeyRequest | KeyPair | None = None
    overlap: timedelta = field(default_factory=timedelta)


@dataclass(frozen=True)
class Update:
    """PATCH with what differs."""

    id: str
    body: Body = field(repr=False)
    path: Path


@dataclass(frozen=True)
class PutModule:
    """PUT of a whole module to its own path."""

    id: str
    segment: str
    body: Body = field(repr=False)
    path: Path


@dataclass(frozen=True)
class DeleteModule:
    """DELETE of a module; where the service does not offer that, the module is switched off instead."""

    id: str
    segment: str
    path: Path


@dataclass(frozen=True)
class Read:
    """GET of the object, whose answer later operations use."""

    id: str
    path: Path


@dataclass(frozen=True)
class Publish:
    """Write the outputs of the object at hand into its Secret, after they were verified.

    `key` is the pair that it keeps; `material` are values by source that the object at hand does not have.
    """

    secret: str
    key: KeyPair | None = None
    material: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Delete:
    """DELETE of an object: the current one, a predecessor, or a duplicate."""

    id: str
    path: Path


@dataclass(frozen=True)
class Disown:
    """Take the owner reference off the Secret, so that it outlives the resource."""

    secret: str


@dataclass(frozen=True)
class TakeOver:
    """Make the Secret of a resource that is gone this one's, by its owner reference."""

    secret: str


@dataclass(frozen=True)
class Release:
    """Take the finalizer off: the last write to an object that is being deleted."""


Operation = Claim | Create | Update | PutModule | DeleteModule | Read | Publish | Delete | Disown | TakeOver | Release


@dataclass(frozen=True)
class Plan:
    """Operations in the order they must run, what they amount to, and when to look again.

    `event` is what to tell when all of it is done; `drift` names fields that somebody else changed; `kept` are
    predecessors whose time is over, and whose token a connection still uses.
    """

    operations: tuple[Operation, ...] = ()
    event: Events | None = None
    why: str = ""
    drift: tuple[str, ...] = ()
    due: datetime | None = None
    kept: tuple[str, ...] = ()


class Waiting(Exception):
    """Something else has to happen first; the loop comes back on its own.

    `after_seconds`: not before. `unsettled`: a POST may have arrived, so recovery comes before the next one.
    `detail`: what the connection says of it, where `message` is what all its resources say alike.
    """

    def __init__(
        self,
        reason: Waits,
        message: str,
        *,
        after_seconds: float | None = None,
        unsettled: bool = False,
        detail: str = "",
    ) -> None:
        super().__init__(message)
        self.reason, self.message, self.detail = reason, message, detail or message
        self.after_seconds, self.unsettled = after_seconds, unsettled


class Stalled(Exception):
    """Only a change by somebody can help; tried again when something changes, and at each resync."""

    def __init__(self, reason: Stalls, message: str) -> None:
        super().__init__(message)
        self.reason, self.message = reason, message


UNANSWERED = "the service does not answer, or with an error of its own; see the status of the connection"
"""What every resource says in an outage. It names no error: each other text would be another write."""
SEARCHED = "it is not known whether a creation arrived; the service is searched before it is tried again"


class Missing(Exception):
    """The remote object that an operation was for is not there."""


class Unsupported(Exception):
    """The service does not offer an operation. `unsettled`: it may have carried it out all the same."""

    def __init__(self, message: str, *, unsettled: bool = False) -> None:
        super().__init__(message)
        self.unsettled = unsettled


class Restart(Exception):
    """What was known of the resource was out of date; begin again from a live read."""


def shown(value: Any, limit: int = 256) -> str:
    """Foreign text as it may appear in a message: one line, cut at `limit` characters."""
    text = " ".join(str(value).split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


@dataclass(frozen=True)
class Shut:
    """Why nobody may call an account at all."""

    reason: Waits | Stalls
    message: str

    def as_error(self) -> Waiting | Stalled:
        """What a pass that needs a call ends with."""
        if isinstance(self.reason, Waits):
            return Waiting(self.reason, self.message)
        return Stalled(self.reason, self.message)
