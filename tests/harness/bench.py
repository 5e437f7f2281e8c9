"""`make bench`: what N resources of a kind cost, in time, calls, writes, memory and CPU; figures, never a verdict.

For each kind: creation until all are Ready. Then a restart with nothing changed, until nothing more happens. Then
deletion until all are gone. Seconds of a creation are compared to plain writes on the same API server in the same run:
two to each of N resources of that kind, with as many at one time as the operator has workers, measured before and
after the rest.
"""

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from harness import bench_figures, bench_load
from harness.bench_figures import Figures, Meter, Usage
from harness.bench_load import SPECS, Load
from harness.control_plane import ControlPlane
from harness.demo_screen import Screen
from harness.operator import ROOT, Operator, ReferenceAPI, rights
from harness.processes import HarnessError

NAMESPACE, RAW_NAMESPACE = "bench", "bench-raw"
QUIET_SECONDS = 4.0
"""How long nothing may happen after a restart until it counts as settled; longer than a retry of the Lease."""
LIMIT_SECONDS = 1800.0
OK, FAILED = 0, 1


class Profiled(Operator):
    """The operator under cProfile, which writes `1.prof` for the first process, `2.prof` for the next, to a folder."""

    folder: Path
    starts = 0

    def _command(self) -> list[str | Path]:
        self.starts += 1
        python, *rest = super()._command()
        return [python, "-m", "cProfile", "-o", self.folder / f"{self.starts}.prof", *rest]


class Bench:
    """One run, on a control plane that nobody else uses."""

    def __init__(self, stack: ExitStack, screen: Screen, options: argparse.Namespace) -> None:
        self._screen = screen
        self._count: int = options.count
        self.raw: dict[str, list[float]] = {kind: [] for kind in SPECS}
        """Seconds that the plain writes took, by kind: before everything else, and after it."""
        self.figures: list[Figures] = []
        with screen.step("control plane", "with the CRDs and the chart's RBAC"):
            self._cluster = stack.enter_context(ControlPlane())
            account = rights(self._cluster)
            for namespace in (NAMESPACE, RAW_NAMESPACE):
                self._cluster.create_namespace(namespace)
            self._cluster.apply_crds(ROOT / "crds")
        with screen.step("reference API", f"with a latency of {options.latency}"):
            self._api = stack.enter_context(ReferenceAPI(self._cluster.folder, "--latency", options.latency))
        kind = Profiled if options.profile else Operator
        self._operator = kind(account, self._api, self._cluster.folder)
        if isinstance(self._operator, Profiled):
            self._operator.folder = options.profile.resolve()
        stack.callback(self._operator.stop)
        self._meter = Meter(self._cluster, self._api, account)

    def run(self) -> None:
        """All phases, one after the other.

        Raises:
            HarnessError: a phase does not end, or the operator does.
        """
        self._baseline()
        with self._screen.step("operator", "start"):
            self._operator.start()
            self._operator.wait_ready()
            self._settle(time.monotonic())
        for kind in SPECS:
            self._create(self._load(kind))
        self._restart()
        for kind in [*SPECS][::-1]:
            self._delete(self._load(kind))
        self._operator.stop()
        self._baseline()

    def _load(self, kind: str, namespace: str = NAMESPACE) -> Load:
        return bench_load.load(self._cluster, kind, namespace, self._count)

    def _baseline(self) -> None:
        """Measure the plain writes, while the operator is not there to react to them."""
        for kind in SPECS:
            with self._screen.step("raw writes", f"{2 * self._count} to {self._count} x {kind}") as done:
                raw = self._load(kind, RAW_NAMESPACE)
                raw.create()
                self.raw[kind].append(raw.write_plainly())
                raw.delete()
                done.append(f"{done[0]}: {self.raw[kind][-1]:.2f} s")

    def _create(self, load: Load) -> None:
        with self._screen.step("create", f"{load.count} x {load.kind.name}, until all are Ready") as done:
            self._meter.mark(self._usage())
            load.create()
            self._until(lambda: load.ready() == load.count, load.unready)
            time_ = self._meter.last_write() - self._meter.first("create", load.kind.plural)
            self._note("create", load.kind.name, load.count, time_.total_seconds(), done)

    def _restart(self) -> None:
        with self._screen.step("restart", "with nothing changed, until nothing more happens") as done:
            self._operator.stop()
            self._meter.mark()
            started = time.monotonic()
            self._operator.start()
            self._operator.wait_ready()
            seconds = self._settle(started)
            self._note("restart", "all", self._count * len(SPECS), seconds, done)

    def _delete(self, load: Load) -> None:
        with self._screen.step("delete", f"{load.count} x {load.kind.name}, until all are gone") as done:
            self._meter.mark(self._usage())
            load.delete()
            self._until(lambda: load.left() == 0, lambda: f"{load.left()} of {load.kind.name} are left")
            time_ = self._meter.last_write() - self._meter.first("delete", load.kind.plural)
            self._note("delete", load.kind.name, load.count, time_.total_seconds(), done)

    def _note(self, phase: str, kind: str, count: int, seconds: float, done: list[str]) -> None:
        self.figures.append(self._meter.figures(phase, kind, count, seconds, self._usage()))
        done.append(f"{done[0]}: {seconds:.2f} s")

    def _until(self, question: Callable[[], bool], explain: Callable[[], str]) -> None:
        """Ask seldom enough not to disturb; exact times come from the audit log."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while not question():
            if not self._operator.running or time.monotonic() > deadline:
                raise HarnessError(f"{explain()}\n{self._operator.process.tail()}")
            time.sleep(max(0.25, self._count / 2000))

    def _settle(self, started: float) -> float:
        """Wait until nothing happens any more; seconds from a start to the last thing that did."""
        seen, last = self._meter.activity(), time.monotonic()
        while time.monotonic() < last + QUIET_SECONDS:
            time.sleep(0.1)
            now = self._meter.activity()
            if now != seen:
                seen, last = now, time.monotonic()
        return last - started

    def _usage(self) -> Usage:
        return bench_figures.usage(self._operator.process.pid)


def report(bench: Bench, screen: Screen, options: argparse.Namespace, machine: dict[str, object]) -> None:
    """Print the table and write the file."""
    screen.title(f"{options.count} of each kind, the management API with a latency of {options.latency}")
    compared = [figures.compared(bench.raw) for figures in bench.figures]
    screen.table(bench_figures.COLUMNS, [figures.row for figures in compared])
    seconds = "; ".join(f"{kind} {before:.2f} and {after:.2f} s" for kind, (before, after) in bench.raw.items())
    screen.say("x raw: seconds as a ratio to two plain writes to each resource, at the same concurrency, in this run,")
    screen.say(f"       the mean of before and after: {seconds}. The further apart, the busier the machine was.")
    screen.say("Calls, writes, reads: of the operator; to the management API, to the API server, of the API server.")
    document = {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "count": options.count,
        "latency": options.latency,
        "machine": machine,
        "raw_write_concurrency": bench_load.CONCURRENCY,
        "raw_write_seconds": bench.raw,
        "phases": [figures.to_json() for figures in compared],
    }
    text = json.dumps(document, indent=2)
    if options.out:
        options.out.write_text(text + "\n")
        screen.say(f"All figures are in {options.out}.")
    else:
        screen.say(text)


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--count", type=int, default=200, help="resources of each kind")
    parser.add_argument("--latency", default="50ms", help="how long the management API holds each answer back")
    parser.add_argument("--out", type=Path, help="file for the figures as JSON; standard output when left out")
    parser.add_argument("--profile", type=Path, help="folder for cProfile's files of the operator")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Run the benchmark; the exit code says only whether it came to its end."""
    options, screen, machine = arguments(words), Screen(), bench_figures.machine()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(FAILED))
    try:
        with ExitStack() as stack:
            bench = Bench(stack, screen, options)
            bench.run()
            report(bench, screen, options, machine)
    except KeyboardInterrupt:
        screen.say("stopped; nothing is left running")
        return 130
    except HarnessError as error:
        screen.say(f"\n{error}", "red")
        return FAILED
    return OK


if __name__ == "__main__":
    sys.exit(main())
