"""A control plane of our own: etcd, kube-apiserver and kube-controller-manager on free loopback ports.

`ControlPlane()` is a context manager; `python -m harness.control_plane` leaves one running until Ctrl-C.
With `EDGE_OPERATOR_TEST_KUBECONFIG` set, `open_cluster()` gives that cluster instead.
"""

import contextlib
import os
import secrets
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import httpx

from harness import audit, binaries, components, kubeconfig
from harness.cluster import Cluster
from harness.processes import HarnessError, Process, wait_until

EXISTING = "EDGE_OPERATOR_TEST_KUBECONFIG"
START_TIMEOUT_SECONDS = 90.0
ATTEMPTS = 3
"""How often a start is tried, should another process take one of the ports in the meantime."""

T = TypeVar("T")


class ControlPlane(Cluster):
    """A running control plane whose only user is the one that started it; leaving the context stops it.

    Everything it writes is in `folder`: the administrator's `kubeconfig`, the logs, the audit log.
    """

    def __init__(self) -> None:
        folder = Path(tempfile.mkdtemp(prefix="edge-operator-"))
        self._layout = components.Layout(folder)
        self._processes: dict[str, Process] = {}
        try:
            self._start()
            super().__init__(self._layout.kubeconfig, folder)
            account = "/api/v1/namespaces/default/serviceaccounts/default"
            self._wait(lambda: self.get(account), "the default service account")
        except BaseException:
            self.stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pids(self) -> dict[str, int]:
        """The process id of each part by its name."""
        return {name: process.pid for name, process in self._processes.items()}

    def kubectl_path(self) -> Path:
        """Our own kubectl, which has the version of the API server."""
        return binaries.find("kubectl")

    def stop(self) -> None:
        """End the processes at once and remove the folder; nothing in it is needed again."""
        self._end_all()
        if hasattr(self, "_client"):
            self.close()
        shutil.rmtree(self._layout.folder, ignore_errors=True)

    def restart_apiserver(self, graceful: bool = True, pause_seconds: float = 0) -> None:
        """Stop the API server, gracefully or as in a crash, and return when its successor is ready.

        Address, certificate, data and tokens stay; watches end. `pause_seconds` is how long it stays away.
        """
        self._processes["kube-apiserver"].stop(grace_seconds=2 if graceful else 0)
        time.sleep(pause_seconds)
        self._launch("kube-apiserver")
        self._wait(self._ready, "the API server to be ready again")

    def restart_controller_manager(self) -> None:
        """Restart the controller manager: its garbage collector learns of new kinds now, not in half a minute."""
        self._processes["kube-controller-manager"].stop()
        self._launch("kube-controller-manager")

    def apply_crds(self, folder: Path) -> None:
        """Apply a folder of CRDs; return when they are served and the garbage collector is about to know them."""
        super().apply_crds(folder)
        self.restart_controller_manager()

    def audit_mark(self) -> int:
        """A place in the audit log, to be given to `audit_events` as `since`."""
        self._settle_audit_log()
        return self._audit_log.size()

    def audit_events(self, user: str | None = None, since: int = 0) -> list[audit.AuditEvent]:
        """What the audit log says since a mark, of one user if named; `audit.writes` counts among them.

        The user of a service account is `cluster.service_account_user(namespace, name)`.
        """
        self._settle_audit_log()
        return [event for event in self._audit_log.records(since) if user in (None, event.user)]

    @property
    def _audit_log(self) -> audit.AuditLog:
        return audit.AuditLog(self._layout.audit_log)

    def _settle_audit_log(self) -> None:
        """Wait until the log has a request that is made now, and so those before it."""
        start, sign = self._audit_log.size(), secrets.token_hex(8)
        self.request("GET", "/api/v1/namespaces", limit="1", fieldSelector=f"metadata.name={sign}")

        def seen() -> bool:
            return any(sign in event.uri for event in self._audit_log.records(start))

        wait_until(seen, "the audit log to be written", 10, interval_seconds=0.005)

    def _start(self) -> None:
        """Start the three parts, and again on other ports if one of them was taken."""
        tokens = components.Tokens()
        components.write_files(self._layout.folder, tokens)
        for attempt in range(ATTEMPTS):
            try:
                return self._try_to_start(tokens)
            except HarnessError as error:
                if "address already in use" not in str(error) or attempt == ATTEMPTS - 1:
                    raise
                self._end_all()
                self._layout = components.Layout(self._layout.folder)
        return None

    def _try_to_start(self, tokens: components.Tokens) -> None:
        layout = self._layout
        self._launch("etcd")
        self._launch("kube-apiserver")
        self._wait(layout.certificate.exists, "the API server's certificate")
        self._wait(lambda: "END CERTIFICATE" in layout.certificate.read_text(), "the API server's certificate")
        server = kubeconfig.Server(layout.url, layout.certificate.read_bytes())
        kubeconfig.write(layout.kubeconfig, server, "admin", tokens.admin)
        kubeconfig.write(layout.manager_kubeconfig, server, "controller-manager", tokens.manager)
        self._wait(self._ready, "the API server to be ready")
        self._launch("kube-controller-manager")

    def _launch(self, part: str) -> None:
        self._processes[part] = Process(
            part, self._layout.command(part), self._layout.log(part), cwd=self._layout.folder
        )

    def _end_all(self) -> None:
        for process in reversed(self._processes.values()):
            process.stop()
        self._processes.clear()

    def _ready(self) -> bool:
        """Whether the API server says that it is."""
        _, client = kubeconfig.read(self._layout.kubeconfig)
        with client, contextlib.suppress(httpx.TransportError):
            return client.get("/readyz", timeout=2).is_success
        return False

    def _wait(self, question: Callable[[], T | None], what: str) -> T:
        """The answer of a question.

        Raises:
            HarnessError: a part ended in the meantime, or the time is over; with the last lines of the logs.
        """

        def answer() -> T | None:
            for process in self._processes.values():
                if not process.running:
                    raise HarnessError(
                        f"{process.name} ended with {process.returncode} while waiting for {what}:\n{process.tail()}"
                    )
            return question()

        def logs() -> str:
            return "\n".join(f"--- {process.name}\n{process.tail(10)}" for process in self._processes.values())

        return wait_until(answer, what, START_TIMEOUT_SECONDS, 0.05, logs)


@contextlib.contextmanager
def open_cluster() -> Iterator[Cluster]:
    """The cluster to work on: the one that `EDGE_OPERATOR_TEST_KUBECONFIG` names, else a control plane of our own.

    The user's current context is never used by itself.
    """
    named = os.environ.get(EXISTING)
    if not named:
        with ControlPlane() as control_plane:
            yield control_plane
        return
    if not Path(named).is_file():
        raise HarnessError(f"{EXISTING}={named}: there is no such file; unset it to use a control plane of our own")
    with tempfile.TemporaryDirectory(prefix="edge-operator-") as folder:
        cluster = Cluster(Path(named).resolve(), Path(folder))
        try:
            yield cluster
        finally:
            cluster.close()


def main() -> None:
    """Run a control plane in the foreground until Ctrl-C or SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    started = time.monotonic()
    with contextlib.suppress(KeyboardInterrupt), ControlPlane() as control_plane:
        print(f"control plane ready in {time.monotonic() - started:.1f} s at {control_plane.server.url}")
        print(f"\n  export KUBECONFIG={control_plane.kubeconfig}\n")
        print("Try, in another terminal (any kubectl will do; ours is the first line):")
        print(f"  alias kubectl={control_plane.kubectl_path()}")
        print("  kubectl get namespaces")
        print("  kubectl apply --server-side -f crds/")
        print("  kubectl explain httpsedge.spec")
        print(f"\nLogs and the audit log are in {control_plane.folder}. Ctrl-C stops it and removes them.", flush=True)
        signal.pause()


if __name__ == "__main__":
    try:
        main()
    except HarnessError as error:
        sys.exit(str(error))
