"""Says at the end of a run how many crash schedules there were, on one process or on several."""

from __future__ import annotations

from typing import Any

import pytest

from doubles.crashes import TALLY

_COUNTED: dict[str, int] = {}


def _count(kinds: dict[str, int]) -> None:
    for kind, number in kinds.items():
        _COUNTED[kind] = _COUNTED.get(kind, 0) + number


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    _count(getattr(node, "workeroutput", {}).get("crash_schedules", {}))


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is None:
        _count(TALLY.by_kind)
    else:
        output["crash_schedules"] = TALLY.by_kind


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _COUNTED:
        each = ", ".join(f"{kind} {number}" for kind, number in sorted(_COUNTED.items()))
        terminalreporter.write_line(f"crash schedules survived: {sum(_COUNTED.values())} ({each})")
