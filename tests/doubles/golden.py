"""Golden logs: all that a scenario asked the service and wrote to the cluster, in order, with what changes masked."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from doubles.wire import Exchanged

REGENERATE = "REGENERATE_GOLDEN"
_ID = re.compile(r"\b([a-z]+_)([0-9A-Za-z]{27})\b")
_UID = re.compile(r"00000000-0000-4000-8000-\d{12}")
_NONCE = re.compile(r"\bnonce\d+\b")
_MASKS = (
    (re.compile(r"(ssh-[a-z0-9]+|ecdsa-sha2-[a-z0-9]+)(-cert-v01@openssh.com)? [A-Za-z0-9+/=]+"), r"<\1\2>"),
    (re.compile(r"-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----(\\n)?"), "<certificate>"),
    (re.compile(r'"(\w+)": "[A-Za-z0-9_-]{16}"'), r'"\1": "<digest>"'),
)


class Masks:
    """Numbers what differs between runs, in the order it appears: `<bkdwd_1>`, `<uid 1>`."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def __call__(self, text: str) -> str:
        text = _ID.sub(lambda m: self._number(m[0], m[1]), text)
        text = _UID.sub(lambda m: self._number(m[0], "uid "), text)
        text = _NONCE.sub(lambda m: self._number(m[0], "nonce "), text)
        for pattern, mask in _MASKS:
            text = pattern.sub(mask, text)
        return text

    def _number(self, found: str, family: str) -> str:
        if found not in self._known:
            count = sum(known.startswith(f"<{family}") for known in self._known.values())
            self._known[found] = f"<{family}{count + 1}>"
        return self._known[found]


def lines(journal: Sequence[Any], masks: Masks) -> list[str]:
    """A journal as text, one effect or call after the other."""
    return [masks(_text(entry)) for entry in journal]


def _text(entry: Any) -> str:
    if isinstance(entry, Exchanged):
        body = "" if entry.body is None else "\n" + _indented(entry.body)
        return f"{entry.method} {entry.path} → {entry.status}{body}"
    head, brace, rest = str(entry).partition(" {")
    return f"cluster: {head}" + (f"\n{_indented(json.loads(brace[1:] + rest))}" if brace else "")


def _indented(value: Any) -> str:
    text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)
    return "\n".join(f"    {line}" for line in text.splitlines())


def compare(file: Path, text: str) -> None:
    """Hold the text to the file; with REGENERATE_GOLDEN=1 the file is written instead."""
    if os.environ.get(REGENERATE):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        return
    expected = file.read_text() if file.exists() else ""
    assert expected == text, f"{file.name} differs; if that is meant, run with {REGENERATE}=1 and look at the diff"
