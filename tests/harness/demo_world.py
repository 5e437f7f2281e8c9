"""What the demo runs on: a cluster with the operator in it, the management API, and how to reach both.

`LocalWorld` is made of local processes; `kind.KindWorld` is the same in containers.
"""

import contextlib
import time
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from harness import binaries
from harness.cluster import Cluster
from harness.control_plane import ControlPlane
from harness.demo_screen import Screen
from harness.operator import ROOT, Operator, ReferenceAPI, rights

NAMESPACE = "demo"
"""Where the samples are applied."""
LOG_LINES = 25


class World(Protocol):
    """A running demo, before anything was applied. Nothing here is changed by looking at it."""

    @property
    def cluster(self) -> Cluster:
        """The cluster, as its administrator."""

    @property
    def api(self) -> tuple[str, str, Path]:
        """The management API: address, key, and the file with the key."""

    def trouble(self) -> str:
        """Why nothing more will happen; empty while all is well."""

    def operator_log(self) -> str:
        """The last lines of the operator's log."""

    def logs(self) -> list[tuple[str, str]]:
        """What has a log, and the command that follows it."""


class LocalWorld:
    """The control plane, the reference API and the operator as local processes, from entering to leaving a context.

    Everything is written to the control plane's folder, which is removed at the end.
    """

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._stack = contextlib.ExitStack()
        self._control_plane: ControlPlane
        self._api: ReferenceAPI
        self._operator: Operator

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def cluster(self) -> Cluster:
        """The control plane of our own."""
        return self._control_plane

    @property
    def api(self) -> tuple[str, str, Path]:
        """The reference API: address, key, and the file with the key."""
        return self._api.url, self._api.key, self._api.key_file

    def trouble(self) -> str:
        """Which process has ended by itself."""
        ended = [service for service in (self._operator, self._api) if not service.running]
        return "; ".join(f"{service.name} ended with exit code {service.process.returncode}" for service in ended)

    def operator_log(self) -> str:
        """The last lines of the operator's log."""
        return self._operator.process.tail(LOG_LINES)

    def logs(self) -> list[tuple[str, str]]:
        """What has a log, and the command that follows it."""
        files = {"operator": self._operator.log, "reference API": self._api.log}
        return [(name, f"tail -f {file}") for name, file in files.items()]

    def _start(self) -> None:
        """Bring everything up. What can start while something else does is started early, and waited for in turn."""
        step = self._screen.step
        for module in (binaries.CONTROL_PLANE, binaries.HELM):
            binaries.folder(module)  # says by itself what it does, where it builds
        with step("control plane", "etcd, kube-apiserver and kube-controller-manager") as done:
            self._control_plane = self._stack.enter_context(ControlPlane())
            version = self.cluster.request("GET", "/version")["gitVersion"]
            done.append(f"etcd, kube-apiserver and kube-controller-manager {version} at {self.cluster.server.url}")
        self._api = ReferenceAPI(self.cluster.folder, "--control")
        self._stack.callback(self._api.stop)
        self._api.start()
        with step("rights", "the chart's service account with the chart's RBAC, by helm template"):
            account = rights(self.cluster)
            self.cluster.create_namespace(NAMESPACE)  # before the CRDs, which restart the controller manager
        with step("CRDs", "the operator's kinds, from crds/") as done:
            self.cluster.apply_crds(ROOT / "crds")
            done.append(f"{len([*(ROOT / 'crds').glob('*.yaml')])} kinds, from crds/")
        with step("reference API", "a management API with a SQLite file and a seeded API key") as done:
            self._api.wait_ready()
            done.append(f"at {self._api.url}, with a SQLite file and a seeded API key")
        with step("operator", f"as {account.user}") as done:
            self._operator = Operator(
                account, self._api, self.cluster.folder, "--mirror-sessions", "--sessions-interval", "500ms"
            )
            self._stack.callback(self._operator.stop)
            self._operator.start()
            self._operator.wait_ready()
            done.append(f"as {account.user}, with exactly the chart's RBAC")


def seconds_since(started: float) -> str:
    """For example `9.8 s`."""
    return f"{time.monotonic() - started:.1f} s"
