"""The log of requests: what was asked and how it ended, never what was in it."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, TextIO

_REMEMBERED: Final = 200_000


@dataclass
class Entry:
    """One request. `status` is None while it is under way and where the connection was cut."""

    number: int
    method: str
    path: str
    status: int | None = None
    key_id: str | None = None
    fault: str | None = None


class Journal:
    """Keeps the last requests in memory where a test may read them, and appends each to a file where one is given."""

    def __init__(self, file: Path | None, *, remember: bool) -> None:
        self._entries: deque[Entry] = deque(maxlen=_REMEMBERED if remember else 0)
        self._file: TextIO | None = file.open("a", encoding="utf-8", buffering=1) if file else None
        self._number = 0

    def begin(self, method: str, path: str) -> Entry:
        self._number += 1
        entry = Entry(self._number, method, path)
        self._entries.append(entry)
        return entry

    def end(self, entry: Entry) -> None:
        if self._file is not None:
            self._file.write(json.dumps(asdict(entry)) + "\n")

    def entries(self) -> list[dict[str, Any]]:
        return [asdict(entry) for entry in self._entries]

    def clear(self) -> None:
        """Forgets the entries; numbers go on."""
        self._entries.clear()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
