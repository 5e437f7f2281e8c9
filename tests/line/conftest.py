from __future__ import annotations

import pytest

from doubles.crashes import TALLY


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if TALLY.schedules:
        terminalreporter.write_line(f"crash schedules: {TALLY.schedules}, faults injected: {TALLY.injected}")
