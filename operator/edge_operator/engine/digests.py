"""Short keyed digests of what was last sent, one for each field: memory without the values.

They answer which fields of a spec changed, were removed, or were never sent: without a read, without storing a secret.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

LENGTH_BYTES = 9  # 72 bits in 12 characters: a chance of 1 in 10^21 that a change goes unnoticed


def known(key: bytes, recorded: Mapping[str, str]) -> dict[str, str]:
    """Those of recorded digests that were made with this key. One made with another key says nothing."""
    mine = key_id(key)
    return {field: value for field, value in recorded.items() if value.startswith(mine)}


def key_id(key: bytes) -> str:
    """Four characters that stand in front of every digest made with the key."""
    return base64.urlsafe_b64encode(hashlib.sha256(b"id\0" + key).digest()[:3]).decode()


def digest(key: bytes, uid: str, field: str, value: Any) -> str:
    """The digest of one field's value, bound to the resource and the field: `"c29tkq3J0b5hXo2p"`."""
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    mac = hmac.new(key, f"{uid}\0{field}\0{canonical}".encode(), hashlib.sha256).digest()
    return key_id(key) + base64.urlsafe_b64encode(mac[:LENGTH_BYTES]).decode()
