"""Where something listens: `host:port`. Assumed: its form; hosts have no case, an IPv6 address stands in brackets."""

from __future__ import annotations

import ipaddress
import re
from typing import Final

HOST: Final = r"(?:\*\.)?[0-9A-Za-z_](?:[0-9A-Za-z_-]*[0-9A-Za-z_])?(?:\.[0-9A-Za-z_](?:[0-9A-Za-z_-]*[0-9A-Za-z_])?)*"
_ADDRESS: Final = re.compile(rf"(?:(?P<host>{HOST})|\[(?P<six>[0-9A-Fa-f:.]+)\]):(?P<port>[1-9][0-9]{{0,4}})")
_LONGEST_HOST: Final = 253
_LARGEST_PORT: Final = 65_535


def canonical(text: str) -> str | None:
    """The one spelling of an address, for comparing; None where the text is none."""
    found = _ADDRESS.fullmatch(text)
    if not found or int(found["port"]) > _LARGEST_PORT or len(found["host"] or "") > _LONGEST_HOST:
        return None
    if found["host"]:
        return text.lower()
    try:
        return f"[{ipaddress.IPv6Address(found['six'])}]:{found['port']}"
    except ValueError:
        return None
