"""Says at the end of a run what was injected and checked, on one process or on several.

EDGE_OPERATOR_TALLY names a file for the figures, which docs/reliability.md is written from.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from doubles import schedules
from doubles.tally import TALLY

_COUNTED: dict[str, Counter[str]] = {}


def _count(figures: dict[str, dict[str, int]]) -> None:
    for what, numbers in figures.items():
        _COUNTED.setdefault(what, Counter()).update(numbers)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    _count(getattr(node, "workeroutput", {}).get("tally", {}))


def pytest_sessionfinish(session: pytest.Session) -> None:
    figures = TALLY.figures()
    output = getattr(session.config, "workeroutput", None)
    if output is None:
        _count(figures)
    else:
        output["tally"] = figures


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    runs = _COUNTED.get("schedules", Counter())
    if not runs.total():
        return
    size = f"{schedules.SIZE_NAME} size, EDGE_OPERATOR_SEED={schedules.SEED}"
    each = ", ".join(f"{kind} {number}" for kind, number in sorted(runs.items()))
    terminalreporter.write_line(f"crash schedules run, {size}: {runs.total()} ({each})")
    if path := os.environ.get("EDGE_OPERATOR_TALLY"):
        failed = len(terminalreporter.stats.get("failed", []))
        said = {**_COUNTED, "failed": failed, "seed": schedules.SEED, "size": schedules.SIZE_NAME}
        Path(path).write_text(json.dumps(said, indent=1, sort_keys=True))
