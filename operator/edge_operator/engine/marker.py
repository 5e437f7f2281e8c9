"""The owner marker inside a remote object's metadata: which resource of which cluster made it.

`{"team": "a"}` becomes `{"team": "a","edge-operator.dev/owner":"v1 <cluster> <uid>.<nonce> <namespace>/<name>"}`, and a
plain text gets a last line `edge-operator.dev/owner=v1 …`. The user's bytes stay as they are, so taking the marker off
gives them back exactly. At most 256 bytes: a long namespace/name is replaced by a digest of it.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass

from edge_operator.policies import RESERVED_MEMBER

LIMIT_BYTES = 256
_OWNER = r"v1 (?P<cluster>[^\s\"\\]+) (?P<uid>[^\s\"\\.]+)\.(?P<nonce>[^\s\"\\]+) (?P<place>[^\s\"\\]+)"
_MEMBER = re.compile(rf',?"{re.escape(RESERVED_MEMBER)}":"{_OWNER}"(?=\}}[^}}]*\Z)')
_LINE = re.compile(rf"(?:\A|\n){re.escape(RESERVED_MEMBER)}={_OWNER}\Z")


@dataclass(frozen=True)
class Owner:
    """Who made an object. `place` is `<namespace>/<name>`, or `sha256:<hex>` of it where that is long."""

    cluster: str
    uid: str
    nonce: str
    place: str

    def __str__(self) -> str:
        return f"v1 {self.cluster} {self.uid}.{self.nonce} {self.place}"


def owner(cluster: str, uid: str, nonce: str, namespace: str, name: str) -> Owner:
    """The owner value for a resource, its place shortened where the marker would not fit its 256 bytes."""
    place = f"{namespace}/{name}"
    whole = Owner(cluster, uid, nonce, place)
    # The longer of the two forms: `,"…":"…"` around name and value is six bytes more than they are.
    if len(str(whole).encode()) + len(RESERVED_MEMBER) + 6 <= LIMIT_BYTES:
        return whole
    return Owner(cluster, uid, nonce, f"sha256:{hashlib.sha256(place.encode()).hexdigest()[:32]}")


def attach(metadata: str, who: Owner) -> str:
    """`metadata` with the marker in it."""
    if _is_object(metadata):
        at = metadata.rindex("}")
        comma = "" if metadata[:at].strip() == "{" else ","
        return f'{metadata[:at]}{comma}"{RESERVED_MEMBER}":"{who}"{metadata[at:]}'
    return f"{metadata}\n{RESERVED_MEMBER}={who}" if metadata else f"{RESERVED_MEMBER}={who}"


def split(metadata: str) -> tuple[str, Owner | None]:
    """The user's own metadata, and the owner where there is a marker."""
    found = _MEMBER.search(metadata) or _LINE.search(metadata)
    if found is None:
        return metadata, None
    return metadata[: found.start()] + metadata[found.end() :], Owner(**found.groupdict())


def _is_object(text: str) -> bool:
    if not text.lstrip().startswith("{"):
        return False
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
