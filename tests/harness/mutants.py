"""Changes one thing at a time in `engine/` and sees whether a test notices: `make mutants`.

The tests are collected once. Each mutant is a fork of that process in which one function has other code; it is tried by
the tests that run through that function, the quickest first, until one fails or the time for it is over. What nothing
noticed is a survivor, and tests/harness/mutants.json keeps why it is let live.
"""

from __future__ import annotations

import argparse
import ast
import copy
import functools
import gc
import importlib
import inspect
import json
import os
import random
import sys
import time
import types
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.reliability import MUTANTS, ROOT

ENGINE = ROOT / "operator" / "edge_operator" / "engine"
TESTS = ("tests/engine", "tests/line")
LEFT_OUT = ("test_crash.py", "test_machine.py", "test_found_by_schedules.py", "test_rate_limit.py")
"""What takes longer than all the rest; a time-out while the tests are looked at would end the run."""
BUDGET_SECONDS = 25.0
"""For one mutant, of this process's own time: what else the machine does makes no survivors."""
_SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change of one function."""

    module: str
    function: str
    was: str
    now: str
    code: types.CodeType

    @property
    def where(self) -> str:
        return f"{self.module}.{self.function}"


def mutants(path: Path) -> Iterator[Mutant]:
    """Every mutant of a module, in the order of its lines."""
    tree = ast.parse(path.read_text())
    functions = [f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef)]
    for function in sorted(functions, key=lambda f: f.lineno):
        for number, _ in enumerate(_places(function)):
            again = copy.deepcopy(tree)
            twin = next(
                f for f in ast.walk(again) if getattr(f, "lineno", 0) == function.lineno and type(f) is type(function)
            )
            node, change = _places(twin)[number]
            was = ast.unparse(node)
            change()
            ast.fix_missing_locations(again)
            now = "no such condition" if isinstance(node, ast.Raise) else ast.unparse(node)
            code = _codes(compile(again, str(path), "exec")).get((function.lineno, function.name))
            if code is not None and was != now:
                yield Mutant(path.stem, code.co_qualname, was, now, code)


def _places(function: ast.AST) -> list[tuple[ast.AST, Callable[[], None]]]:
    """What can be changed in a function, and how; texts and types are left alone."""
    found: list[tuple[ast.AST, Callable[[], None]]] = []

    def swap(node: Any, attribute: str, value: Any) -> None:
        found.append((node, functools.partial(setattr, node, attribute, value)))

    for node in ast.walk(ast.Module(body=function.body, type_ignores=[])):  # type: ignore[attr-defined]
        match node:
            case ast.Compare(ops=[op]) if type(op) in _SWAPS:
                swap(node, "ops", [_SWAPS[type(op)]()])
            case ast.BoolOp(op=op) | ast.BinOp(op=op) if type(op) in _SWAPS:
                swap(node, "op", _SWAPS[type(op)]())
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
                found.append((test, functools.partial(setattr, node, "test", ast.UnaryOp(ast.Not(), test))))
            case ast.comprehension(ifs=[first, *_]):
                found.append((first, functools.partial(node.ifs.__setitem__, 0, ast.UnaryOp(ast.Not(), first))))
            case ast.Constant(value=bool(value)):
                swap(node, "value", not value)
            case ast.Constant(value=int(value)):
                swap(node, "value", value + 1)
    return found


def _codes(code: types.CodeType) -> dict[tuple[int, str], types.CodeType]:
    """Code objects by the line and name of their function."""
    found = {}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found[_line(constant), constant.co_name] = constant
            found |= _codes(constant)
    return found


def _line(code: types.CodeType) -> int:
    """The line of `def`; a code object begins at its first decorator."""
    source = Path(code.co_filename).read_text().splitlines()
    line = code.co_firstlineno
    while source[line - 1].lstrip().startswith("@"):
        line += 1
    return line


def living(module: types.ModuleType) -> dict[str, types.FunctionType]:
    """The functions of a module as they are in use, by qualified name."""
    found = {}
    for holder in (
        module,
        *(c for c in vars(module).values() if inspect.isclass(c) and c.__module__ == module.__name__),
    ):
        for value in list(vars(holder).values()):
            function = inspect.unwrap(getattr(value, "fget", None) or getattr(value, "__func__", value))
            if isinstance(function, types.FunctionType) and function.__module__ == module.__name__:
                found[function.__qualname__] = function
    return found


class Trial:
    """A plugin that takes the place of running the tests: it runs them against each mutant."""

    def __init__(self, count: int, seed: int, processes: int, only: str) -> None:
        self.count, self.seed, self.processes, self.only = count, seed, processes, only
        self.failed = False
        self.survivors: list[Mutant] = []
        self.run: Counter[str] = Counter()
        self.killed: Counter[str] = Counter()
        self.all = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        gc.collect()
        _CACHES.extend(o for o in gc.get_objects() if isinstance(o, functools._lru_cache_wrapper) and _ours(o))
        items = [item for item in session.items if item.path.name not in LEFT_OUT]
        modules = {
            p.stem: importlib.import_module(f"edge_operator.engine.{p.stem}") for p in sorted(ENGINE.glob("[a-z]*.py"))
        }
        functions = {name: living(module) for name, module in modules.items()}
        usable = [m for p in sorted(ENGINE.glob("[a-z]*.py")) for m in mutants(p) if m.function in functions[p.stem]]
        self.all = len(usable)
        chosen = [m for m in usable if m.where.startswith(self.only)]
        if self.count and self.count < len(chosen):
            chosen = random.Random(self.seed).sample(chosen, self.count)
        reached = self._reached(items)
        waiting, running = list(chosen), dict[int, Mutant]()
        while waiting or running:
            while waiting and len(running) < self.processes:
                mutant = waiting.pop()
                tests = reached.get(mutant.where, [])
                running[_fork(functools.partial(self._notice, mutant, functions, [items[n] for n in tests]))] = mutant
            pid, status = os.wait()
            self._count(running.pop(pid), noticed=status != 0)
        return True

    def _count(self, mutant: Mutant, *, noticed: bool) -> None:
        self.run[mutant.module] += 1
        self.killed[mutant.module] += noticed
        if not noticed:
            self.survivors.append(mutant)
            print(f"survives: {mutant.where}: {mutant.was} → {mutant.now}", file=sys.__stderr__, flush=True)

    def _reached(self, items: Sequence[pytest.Item]) -> dict[str, list[int]]:
        """Which tests run through a function, the quickest first; looked at in a process of its own."""
        file = Path(os.environ.get("TMPDIR", "/tmp")) / f"reached-{os.getpid()}.json"
        pid = _fork(functools.partial(self._look, items, file))
        os.waitpid(pid, 0)
        found: dict[str, list[int]] = json.loads(file.read_text())
        file.unlink()
        broken = frozenset(found.pop("", []))
        for number in sorted(broken):
            print(f"left out, for it fails without a mutant: {items[number].nodeid}", file=sys.__stderr__, flush=True)
        return {name: [n for n in tests if n not in broken] for name, tests in found.items()}

    def _look(self, items: Sequence[pytest.Item], file: Path) -> bool:
        seen: set[types.CodeType] = set()
        folder = str(ENGINE)
        found: dict[str, list[tuple[float, int]]] = {}

        def profile(frame: types.FrameType, event: str, _: Any) -> None:
            if event == "call" and frame.f_code not in seen and frame.f_code.co_filename.startswith(folder):
                seen.add(frame.f_code)

        for number, item in enumerate(items):
            seen.clear()
            _forget()
            began = time.process_time()
            sys.setprofile(profile)
            self._one(item)
            sys.setprofile(None)
            took = time.process_time() - began
            if self.failed:
                found.setdefault("", []).append((took, number))
                self.failed = False
            for name in {f"{Path(code.co_filename).stem}.{code.co_qualname}" for code in seen}:
                found.setdefault(name, []).append((took, number))
        file.write_text(json.dumps({name: [n for _, n in sorted(tests)] for name, tests in found.items()}))
        return False

    def _notice(
        self, mutant: Mutant, functions: dict[str, dict[str, types.FunctionType]], items: Sequence[pytest.Item]
    ) -> bool:
        """Whether a test fails with that mutant in place."""
        functions[mutant.module][mutant.function].__code__ = mutant.code
        until = time.process_time() + BUDGET_SECONDS
        for item in items:
            _forget()
            self._one(item)
            if self.failed:
                return True
            if time.process_time() > until:
                return False
        return False

    @staticmethod
    def _one(item: pytest.Item) -> None:
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)


def _fork(work: Callable[[], bool]) -> int:
    """A copy of this process that does that and ends, with 1 if it says yes or breaks."""
    if pid := os.fork():
        return pid
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    status = 1
    try:
        status = int(work())
    finally:
        os._exit(status)


def _forget() -> None:
    """Empty every cache: what was worked out once hides a mutant."""
    for wrapper in _CACHES:
        wrapper.cache_clear()
    importlib.import_module("edge_operator.engine.project")._FIELDS.clear()


_CACHES: list[Any] = []


def _ours(wrapper: Any) -> bool:
    """Caches of the operator, and of doubles that hold what it computes; key pairs and certificates may stay."""
    name = getattr(wrapper, "__module__", "") or ""
    return name.startswith("edge_operator.engine") or name in {"doubles.cluster", "edge_operator.fieldtypes"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="so many, chosen by the seed; 0: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", default="", help="module.function begins with this; nothing is written then")
    options = parser.parse_args()
    trial = Trial(options.count, options.seed, options.processes, options.only)
    status = pytest.main(
        ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "timeout=20", *TESTS], plugins=[trial]
    )
    if not options.only and status == 0:
        _write(trial)
    print(f"{sum(trial.killed.values())} of {sum(trial.run.values())} mutants killed")
    return int(status)


def _write(trial: Trial) -> None:
    before = json.loads(MUTANTS.read_text())["survivors"] if MUTANTS.exists() else []
    why = {(m["where"], m["was"], m["now"]): m["why"] for m in before}
    survivors = [
        {"where": m.where, "was": m.was, "now": m.now, "why": why.get((m.where, m.was, m.now), "")}
        for m in sorted(trial.survivors, key=lambda m: (m.where, m.was))
    ]
    run = sum(trial.run.values())
    sample = f"Run: {run} of {trial.all} mutants" + (f", a sample by seed {trial.seed}." if run < trial.all else ".")
    modules = {name: {"run": n, "killed": trial.killed[name]} for name, n in sorted(trial.run.items())}
    found = {"sample": sample, "modules": modules, "survivors": survivors}
    MUTANTS.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    sys.exit(main())
