"""Runs what is injected and checked, and writes docs/reliability.md: `make reliability`. No hand writes that page.

The table of faults is collected from the tests themselves: `@pytest.mark.fault("what goes wrong")`.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reliability.md"
MUTANTS = ROOT / "tests" / "harness" / "mutants.json"
FIGURES = ROOT / "tests" / "harness" / "reliability.json"
"""What the last run of each size counted, for writing the page again without a run."""
SIZES = {"common": "Common size", "large": "Large size", "nightly": "Every pair"}
COUNTED = {
    "schedules": "schedules",
    "injected_of": "faults injected",
    "checked_of": "invariants checked",
    "violated_of": "violations",
}
RUN = ("tests/line/test_crash.py", "tests/line/test_found_by_schedules.py", "tests/line/test_machine.py")


@dataclass(frozen=True)
class Shown:
    """A fault and the test that shows what becomes of it."""

    fault: str
    test: str


def shown(root: Path = ROOT) -> list[Shown]:
    """Every fault that a test is marked with, by the files and then in the order of the tests."""
    return [
        Shown(fault, f"{path.relative_to(root)}::{function.name}")
        for path in sorted((root / "tests").rglob("test_*.py"))
        for function in ast.parse(path.read_text()).body
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for fault in _marks(function)
    ]


def _marks(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.fault":
            yield str(ast.literal_eval(decorator.args[0]))


def faults_table(rows: Sequence[Shown]) -> str:
    """The table of faults, as it stands on the page."""
    return table(("Fault", "Shown by"), [(row.fault, f"`{row.test}`") for row in rows])


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Rows as Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(str(cell) for cell in line)} |\n" for line in lines)


def page(figures: Mapping[str, Any], mutants: Mapping[str, Any] | None, rows: Sequence[Shown]) -> str:
    """The whole page, from what the last run of each size counted."""
    sizes = [size for size in SIZES if size in figures]
    return f"""<!-- written by tests/harness/reliability.py (make reliability), do not edit -->

# Reliability

What is injected into the operator, what has to hold afterwards, and what was found.

- `make reliability` runs every single disturbance at every single effect, a death after every two effects, a sample \
of the pairs of all disturbances and 200 runs of the state machine; of adoptions, and of lives without owner markers, \
a sample of it all; `EDGE_OPERATOR_SEED` chooses others.
- `EDGE_OPERATOR_SIZE=large` takes thirty times as many pairs, and 1,000 runs of the state machine.
- `EDGE_OPERATOR_SIZE=nightly` leaves no pair out, and runs the state machine 3,000 times.

{chr(10).join(_total(size, figures[size]) for size in sizes)}
## Schedules

A schedule is one life of a resource (made, changed, each module put on and taken off, rotated, renewed, replaced, \
retained, deleted, adopted) with something done to it at one of its effects or at two.
The state machine does everything to resources of all kinds at once, in two accounts.
{"".join(f"{chr(10)}### {SIZES[size]}{chr(10)}{chr(10)}{_by_kind(figures[size])}" for size in sizes)}
## Injected

What a schedule injects is counted when it happens; what the state machine injects, when it is armed.

{_counted("What", "injected", figures, sizes)}
## Invariants

{_counted("What has to hold", "checked", figures, sizes)}
## Faults, and the tests that show what becomes of them

{faults_table(rows)}{_mutants(mutants)}"""


def _total(size: str, run: Mapping[str, Any]) -> str:
    each = (f"{sum(run[what].values()):,} {called}" for what, called in COUNTED.items() if what != "violated_of")
    when = f"{SIZES[size]}, run on {run['when']}" + ("" if size == "nightly" else f" with seed {run['seed']}")
    return f"**{when}: {', '.join(each)}, {run['failed']} violations.**\n"


def _by_kind(run: Mapping[str, Any]) -> str:
    kinds = sorted({*run["schedules"], *run["checked_of"]}, key=lambda kind: (kind not in run["schedules"], kind))
    rows = [(kind, *(run[what].get(kind, 0) for what in COUNTED)) for kind in kinds]
    return table(("Kind", *(called.capitalize() for called in COUNTED.values())), rows)


def _counted(head: str, what: str, figures: Mapping[str, Any], sizes: Sequence[str]) -> str:
    every = sorted({name for size in sizes for name in figures[size][what]})
    rows = [(name, *(figures[size][what].get(name, 0) for size in sizes)) for name in every]
    return table((head, *(SIZES[size] for size in sizes)), rows)


def _mutants(mutants: Mapping[str, Any] | None) -> str:
    if mutants is None:
        return ""
    rows = [(name, each["run"], each["killed"]) for name, each in sorted(mutants["modules"].items())]
    left = [(f"`{m['where']}`", f"`{m['was']}` → `{m['now']}`", m["why"]) for m in mutants["survivors"]]
    return f"""
## Mutants

`make mutants` changes one thing at a time in `engine/` and runs the tests of the engine, then quick ones of the line; \
a mutant that no test notices survives.
{mutants["sample"]}

{table(("Module", "Mutants", "Killed"), rows)}
{table(("Survivor", "Change", "Why it is let live"), left) if left else "None survives."}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", default="2")
    parser.add_argument("--faults-only", action="store_true", help="keep the figures; write the page anew")
    options = parser.parse_args()
    figures = _figures() if options.faults_only else _run(options.processes)
    known = json.loads(MUTANTS.read_text()) if MUTANTS.exists() else None
    PAGE.write_text(page(figures, known, shown()))
    failed = sum(run["failed"] for run in figures.values())
    print(f"wrote {PAGE.relative_to(ROOT)}; violations: {failed}")
    return 1 if failed else 0


def _run(processes: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        tally = Path(folder) / "tally.json"
        command = [sys.executable, "-m", "pytest", "-q", "-n", processes, *RUN]
        subprocess.run(command, cwd=ROOT, check=False, env={**os.environ, "EDGE_OPERATOR_TALLY": str(tally)})
        found: dict[str, Any] = json.loads(tally.read_text())
    figures = {**_figures(), found.pop("size"): {**found, "when": datetime.now(UTC).date().isoformat()}}
    FIGURES.write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n")
    return figures


def _figures() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    return found


if __name__ == "__main__":
    sys.exit(main())
