"""Transcripts: conversations with the API, written by hand from the API document, as text that reads like one.

    # A weight is an integer from 0 to 10000
    > Limits weight
    POST /backends/weighted {"backends": {"bkdhr_a": 10000}}
    -> 201 WeightedBackend as one {"backends": {"bkdhr_a": 10000}}
    PATCH /backends/weighted/{one}
    with {"backends": {"bkdhr_a": 10001}} -> 400 naming backends
    with {"backends": {"bkdhr_a": "5"}}   -> 400 naming backends

`#` is the title, `>` a rule of `rules.py` that it shows, `server {…}` settings of the server that differ from the
defaults. Below a request may stand headers. `with` sends several bodies to the same address. An answer is a status,
then a shape of `shapes.py` or `list` and a shape, `as` a name under which later lines find it, `naming` a word that the
message of a refusal has, and JSON that the answer has beyond the shape's defaults. `matching.py` says what `<…>` means.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).with_name("transcripts")
ABSENT: Final = object()
"""No body."""

_DECODER: Final = json.JSONDecoder()
_REQUEST: Final = re.compile(r"(GET|POST|PUT|PATCH|DELETE) (/\S*)")
_HEADER: Final = re.compile(r"([A-Z][A-Za-z-]+): ?(.*)")
_ANSWER: Final = re.compile(
    r"-> (?P<status>\d{3})(?: (?P<list>list )?(?P<shape>[A-Z]\w+))?(?: as (?P<name>\w+))?(?: naming (?P<word>\S+))?"
)


@dataclass(frozen=True)
class Exchange:
    """One request and the answer that it should have."""

    line: int
    method: str
    path: str
    body: Any
    headers: dict[str, str]
    status: int
    shape: str | None = None
    is_list: bool = False
    name: str | None = None
    word: str | None = None
    expected: Any = ABSENT


@dataclass
class Transcript:
    topic: str
    line: int
    title: str
    cites: list[str] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    exchanges: list[Exchange] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.topic}:{self.line} {self.title}"


class _Reader:
    """Reads one file from its first character to its last."""

    def __init__(self, topic: str, text: str) -> None:
        self._topic, self._text, self._at = topic, text, 0

    def transcripts(self) -> Iterator[Transcript]:
        current: Transcript | None = None
        while self._skip_space():
            if self._text.startswith("# ", self._at):
                if current:
                    yield current
                current = Transcript(self._topic, self._line, self._rest()[2:])
                continue
            assert current is not None, f"{self._topic}:{self._line}: no title yet"
            if self._text.startswith("> ", self._at):
                current.cites.append(self._rest()[2:])
            elif self._text.startswith("server ", self._at):
                self._at += len("server ")
                current.settings = self._json()
            else:
                current.exchanges.extend(self._exchanges())
        if current:
            yield current

    def _exchanges(self) -> Iterator[Exchange]:
        method, path = self._expect(_REQUEST).groups()
        body = self._maybe_json()
        headers = {}
        while self._skip_space() and (header := _HEADER.match(self._text, self._at)):
            headers[header[1]] = header[2].strip()
            self._at = header.end()
        if not self._text.startswith("with ", self._at):
            yield self._answered(method, path, body, headers)
        while self._skip_space() and self._text.startswith("with ", self._at):
            self._at += len("with ")
            yield self._answered(method, path, self._json(), headers)

    def _answered(self, method: str, path: str, body: Any, headers: dict[str, str]) -> Exchange:
        self._skip_space()
        line = self._line
        found = self._expect(_ANSWER)
        return Exchange(
            line, method, path, body, headers, int(found["status"]), found["shape"], bool(found["list"]), found["name"],
            found["word"], self._maybe_json(),
        )  # fmt: skip

    def _expect(self, pattern: re.Pattern[str]) -> re.Match[str]:
        found = pattern.match(self._text, self._at)
        assert found, f"{self._topic}:{self._line}: cannot read {self._rest()!r}"
        self._at = found.end()
        return found

    def _maybe_json(self) -> Any:
        return self._json() if self._skip_space() and self._text[self._at] in "{[" else ABSENT

    def _json(self) -> Any:
        self._skip_space()
        try:
            value, self._at = _DECODER.raw_decode(self._text, self._at)
        except json.JSONDecodeError as error:
            raise AssertionError(f"{self._topic}:{self._line}: {error}") from None
        return value

    def _skip_space(self) -> bool:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1
        return self._at < len(self._text)

    def _rest(self) -> str:
        end = self._text.find("\n", self._at)
        line = self._text[self._at : end if end >= 0 else len(self._text)]
        self._at += len(line)
        return line.strip()

    @property
    def _line(self) -> int:
        return self._text.count("\n", 0, self._at) + 1


def read_all() -> list[Transcript]:
    """Every transcript, by file name and line."""
    return [
        transcript
        for file in sorted(FOLDER.glob("*.txt"))
        for transcript in _Reader(file.stem, file.read_text(encoding="utf-8")).transcripts()
    ]
