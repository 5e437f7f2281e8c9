"""Processes that the harness starts, and the waiting that goes with them."""

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

LAUNCHER = Path(__file__).with_name("exec_with_parent.py")
PORTS = range(20000, 32000)
"""Where free ports are looked for: below the range that systems hand out to outgoing connections."""

T = TypeVar("T")


class HarnessError(RuntimeError):
    """Something the harness needs is missing or did not start; the message says what, and what to do."""


def free_port() -> int:
    """A TCP port that nothing listens on at 127.0.0.1, from a range that outgoing connections do not use."""
    for port in random.sample(PORTS, 200):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                return port
    raise HarnessError(f"no free port between {PORTS.start} and {PORTS.stop} on 127.0.0.1")


def wait_until(
    question: Callable[[], T | None],
    what: str,
    timeout_seconds: float = 60,
    interval_seconds: float = 0.1,
    explain: Callable[[], str] = lambda: "",
) -> T:
    """The first truthy answer of `question`.

    Raises:
        HarnessError: there was none in time; the message has `what` and the text of `explain()`.
    """
    deadline = time.monotonic() + timeout_seconds
    while True:
        answer = question()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise HarnessError(f"waited {timeout_seconds:g} s for {what}, in vain\n{explain()}".rstrip())
        time.sleep(interval_seconds)


class Process:
    """A child process in a group of its own, with its output in a file; it does not outlive this process.

    Start it from a thread that lives at least as long as the process should: on Linux the guard watches that thread.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.name = name
        self.log = log
        launcher = [sys.executable, "-I", "-S", str(LAUNCHER), str(os.getpid())]
        with log.open("ab") as output:
            self._popen = subprocess.Popen(
                [*launcher, *map(str, command)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(env) if env is not None else None,
                cwd=cwd,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process id, which is also the id of its process group."""
        return self._popen.pid

    @property
    def returncode(self) -> int | None:
        """The exit code (negative: the signal that ended it), or None while it runs."""
        return self._popen.poll()

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self.returncode is None

    def tail(self, lines: int = 20) -> str:
        """The last lines of its output."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as output:
            output.seek(max(0, self.log.stat().st_size - 400 * lines))
            text = output.read().decode(errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process, if it runs."""
        if self.running:
            self._popen.send_signal(number)

    def wait(self, timeout_seconds: float) -> int | None:
        """The exit code, or None if the process still runs when the time is over."""
        try:
            return self._popen.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            return None

    def stop(self, grace_seconds: float = 0) -> int:
        """End the process, with SIGTERM first if there is a grace, then with SIGKILL for its whole group.

        Returns the exit code.
        """
        if grace_seconds > 0:
            self.signal(signal.SIGTERM)
            self.wait(grace_seconds)
        if self.running:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        return self._popen.wait()
