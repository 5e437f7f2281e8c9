"""The seal of a status: a keyed digest over what says which remote objects are the resource's, and in which account.

A status that somebody edited, or that came along with another resource, does not fit its seal, and is not believed.
The seal is written as `<digest> <connection>`: which connection it names can be read without the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from edge_operator.engine import digests
from edge_operator.engine.references import ConnectionKey

MEMBER = "seal"
SEALED = ("id", "nonce", "path", "previous")


class Seal(Enum):
    """How a status and its seal go together."""

    FITS = "fits"
    UNKNOWN = "unknown"
    """There is none, or it was made with another key: it says nothing."""
    BROKEN = "broken"
    """It was made with the operator's key, and not for this."""


def of(key: bytes, uid: str, status: Mapping[str, Any], through: str) -> str | None:
    """The seal of a status whose objects were made through that connection; None where it names no object."""
    if not status.get("id") and not status.get("previous"):
        return None
    said = [status.get(name) or None for name in SEALED]
    return f"{digests.digest(key, uid, MEMBER, [*said, through])} {through}"


def judged(key: bytes, uid: str, status: Mapping[str, Any]) -> Seal:
    """Whether a status is as the operator wrote it for the resource with that uid."""
    written = str(status.get(MEMBER) or "")
    if not digests.known(key, {MEMBER: written}):
        return Seal.UNKNOWN
    return Seal.FITS if written == of(key, uid, status, written.partition(" ")[2]) else Seal.BROKEN


def connection(status: Mapping[str, Any], namespace: str) -> ConnectionKey | None:
    """The connection that the seal of a status names, whether it fits or not."""
    return named(str(status.get(MEMBER) or "").partition(" ")[2], namespace)


def named(text: str, namespace: str) -> ConnectionKey | None:
    """A connection from its short form; None where that is none: `Connection/main`."""
    kind, _, name = text.partition("/")
    if not name or kind not in ("Connection", "ClusterConnection"):
        return None
    return (kind, "" if kind == "ClusterConnection" else namespace, name)


def short(through: ConnectionKey) -> str:
    """A connection in short: `Connection/main`. Its namespace is the resource's own, or it has none."""
    return f"{through[0]}/{through[2]}"
