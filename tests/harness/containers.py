"""A container of a pod as a local process: started, probed, restarted with a growing pause, and described as status."""

import signal
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.pods import CannotStartError, Launch, Surroundings
from harness.probes import Probe
from harness.processes import Process

RETRY_SECONDS = 1.0
BACKOFF_SECONDS = (1.0, 10.0)
"""The first and the longest pause before a restart; a real kubelet has 10 s and 5 minutes."""


@dataclass(frozen=True)
class Exit:
    """The end of a container's process."""

    pod: str
    container: str
    code: int
    """The exit code; 128 plus the number of the signal, if one ended it."""
    asked: bool
    """Whether the kubelet had asked it to end."""


class Container:
    """One container and its present process, if any. `exit` is its last end."""

    def __init__(self, pod: str, spec: Mapping[str, Any], surroundings: Surroundings, log: Path, restart: str) -> None:
        self._pod = pod
        self._spec = spec
        self._surroundings = surroundings
        self._restart = restart
        self._launch: Launch | None = None
        self._process: Process | None = None
        self._started = 0.0
        self._started_at = ""
        self._due = 0.0
        self._pause = BACKOFF_SECONDS[0]
        self._waiting = ("ContainerCreating", "")
        self._last: dict[str, Any] | None = None
        self._asked = False
        self.name: str = spec["name"]
        self.log = log
        self.restarts = 0
        self.exit: Exit | None = None

    @property
    def running(self) -> bool:
        """Whether its process is there."""
        return self._process is not None

    @property
    def pid(self) -> int | None:
        """The id of its process, if there is one."""
        return self._process.pid if self._process else None

    @property
    def finished(self) -> bool:
        """Whether it has ended and will not be started again."""
        return self._process is None and self.exit is not None and self._due == float("inf")

    @property
    def started(self) -> bool:
        """Whether it runs and its startup probe, if any, has passed."""
        return self.running and self._startup.passed

    @property
    def ready(self) -> bool:
        """Whether it runs and its probes say that it can work."""
        return self.started and self._readiness.passed

    def tick(self, now: float) -> Exit | None:
        """Start, probe, or notice the end of the process; the end, if it was just noticed."""
        if self._process is None:
            if now >= self._due and not self._asked:
                self._start(now)
            return None
        code = self._process.returncode
        if code is not None:
            return self._ended(code, now)
        self._probe(now)
        return None

    def terminate(self) -> None:
        """Ask the process to end, once, and start no other."""
        if not self._asked and self._process:
            self._process.signal(signal.SIGTERM)
        self._asked = True

    def kill(self, now: float, grace_seconds: float = 0) -> Exit | None:
        """End the process, at the latest when the grace is over; the end, if there was one."""
        self._asked = True
        return self._ended(self._process.stop(grace_seconds), now) if self._process else None

    def status(self) -> dict[str, Any]:
        """The container's entry in the pod's status."""
        if self._process:
            state: dict[str, Any] = {"running": {"startedAt": self._started_at}}
        elif self.finished and self._last:
            state = {"terminated": self._last}
        else:
            state = {"waiting": {"reason": self._waiting[0], "message": self._waiting[1]}}
        return {
            "name": self.name,
            "image": self._spec["image"],
            "imageID": "",
            "ready": self.ready,
            "started": self.started,
            "restartCount": self.restarts,
            "state": state,
            "lastState": {"terminated": self._last} if self._last and not self.finished else {},
        }

    def _start(self, now: float) -> None:
        try:
            self._launch = self._surroundings.launch(self._spec)
        except CannotStartError as error:
            self._waiting = (error.reason, str(error))
            self._due = now + RETRY_SECONDS
            return
        self._process = Process(self.name, self._launch.command, self.log, self._launch.env, cwd=self._launch.folder)
        self._started, self._started_at = now, timestamp()
        self._startup = self._new_probe("startupProbe", initially=False)
        self._readiness = self._new_probe("readinessProbe", initially=False)
        self._liveness = self._new_probe("livenessProbe", initially=True)

    def _new_probe(self, name: str, initially: bool) -> Probe:
        """A probe in its first state; one that the container does not have has passed."""
        spec = self._spec.get(name)
        return Probe(spec, self._spec, initially) if spec else Probe({}, self._spec, initially=True)

    def _probe(self, now: float) -> None:
        """Ask the probes that are due; a failed liveness or startup probe ends the process."""
        if not self._launch or not self._process:
            return
        names = ("startupProbe",) if not self._startup.passed else ("readinessProbe", "livenessProbe")
        probes = {"startupProbe": self._startup, "readinessProbe": self._readiness, "livenessProbe": self._liveness}
        for name in names:
            if name in self._spec:
                probes[name].tick(self._started, now, self._launch.env, self._launch.folder)
        if self._startup.exhausted or not self._liveness.passed:
            self._process.stop(grace_seconds=2)

    def _ended(self, code: int, now: float) -> Exit:
        """Record an end, and when to start again."""
        code = code if code >= 0 else 128 - code
        self.exit = Exit(self._pod, self.name, code, self._asked)
        self._last = {
            "exitCode": code,
            "reason": "Completed" if code == 0 else "Error",
            "message": self._process.tail(5) if self._process and code else "",
            "startedAt": self._started_at,
            "finishedAt": timestamp(),
        }
        self._process = None
        if self._asked or self._restart == "Never" or (self._restart == "OnFailure" and code == 0):
            self._due = float("inf")
        else:
            self._again(now)
        return self.exit

    def _again(self, now: float) -> None:
        """Plan the next start; the pause grows unless the process had run for a while."""
        first, longest = BACKOFF_SECONDS
        self._pause = first if now - self._started > longest else self._pause
        self._due = now + self._pause
        self._waiting = ("CrashLoopBackOff", f"back-off {self._pause:g}s restarting failed container={self.name}")
        self._pause = min(self._pause * 2, longest)
        self.restarts += 1


def timestamp() -> str:
    """The present time as Kubernetes writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
