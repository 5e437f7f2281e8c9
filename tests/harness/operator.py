"""The operator and the reference API as local processes; the operator with exactly the rights that the chart gives.

`rights(cluster)` renders the chart by the real helm and applies what it says about rights, and nothing else of it;
the operator then acts as the chart's service account, by a token that the API server made.
"""

import json
import os
import re
import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import yaml

from harness import binaries
from harness.cluster import Cluster, run, service_account_user
from harness.processes import HarnessError, Process, free_port, wait_until

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "helm" / "edge-operator"
NAMESPACE = "edge-system"
"""Where the chart is installed: its service account, the operator's Lease and digest key."""
RELEASE = "edge-operator"
RIGHTS = frozenset({"ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"})
TOKEN_SECONDS = 7 * 24 * 3600
START_SECONDS = 60.0
STOP_SECONDS = 30.0
LOCAL = "127.0.0.1,localhost,::1"


@dataclass(frozen=True)
class Account:
    """The chart's service account in a cluster, and a kubeconfig that acts as it."""

    namespace: str
    name: str
    kubeconfig: Path

    @property
    def user(self) -> str:
        """Its name in RBAC and in the audit log."""
        return service_account_user(self.namespace, self.name)


def rights(cluster: Cluster, namespace: str = NAMESPACE, values: Sequence[str] = ()) -> Account:
    """The chart's service account with the chart's RBAC, applied to a cluster; `values` are more of `helm --set`.

    Raises:
        CommandError: helm or the API server refuses.
    """
    settings = ["api.url=http://none.invalid", "api.keySecret.name=none", "crds.enabled=false", *values]
    options = [word for value in settings for word in ("--set", value)]
    text = run([binaries.find("helm"), "template", RELEASE, CHART, "--namespace", namespace, *options])
    manifests = [found for found in yaml.safe_load_all(text) if found and found["kind"] in RIGHTS]
    if cluster.get(f"/api/v1/namespaces/{namespace}") is None:
        cluster.create_namespace(namespace)
    cluster.apply(yaml.safe_dump_all(manifests))
    names = [found["metadata"]["name"] for found in manifests if found["kind"] == "ServiceAccount"]
    if len(names) != 1:
        raise HarnessError(f"the chart should have one service account, and has {names}")
    return Account(namespace, names[0], cluster.service_account_kubeconfig(namespace, names[0], TOKEN_SECONDS))


def environment(**more: str) -> dict[str, str]:
    """This process's environment without what would steer the operator, and without proxies on the way to ourselves."""
    steering = ("EDGE_OPERATOR_", "KUBECONFIG", "KUBERNETES_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(steering)}
    return {**kept, "PYTHONUNBUFFERED": "1", "NO_PROXY": LOCAL, "no_proxy": LOCAL, **more}


def command(*args: str | Path) -> list[str | Path]:
    """The command line of `edge-operator` in this Python's environment."""
    return [sys.executable, "-m", "edge_operator", *args]


class Service:
    """A process of ours that is started, found ready, stopped and started again; also a context manager."""

    name = ""

    def __init__(self, log: Path) -> None:
        self.log = log
        self._process: Process | None = None

    def __enter__(self) -> Self:
        self.start()
        self.wait_ready()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def process(self) -> Process:
        """The process that was started last.

        Raises:
            HarnessError: none was.
        """
        if self._process is None:
            raise HarnessError(f"{self.name} was not started")
        return self._process

    @property
    def running(self) -> bool:
        """Whether its process is there."""
        return self._process is not None and self._process.running

    def start(self) -> None:
        """Start the process; do not wait for it."""
        self._process = Process(self.name, self._command(), self.log, self._environment())

    def wait_ready(self) -> None:
        """Return when it does its work.

        Raises:
            HarnessError: it ended, or the time is over; with the end of its log.
        """

        def answer() -> bool:
            if not self.running:
                raise HarnessError(f"{self.name} ended with {self.process.returncode}:\n{self.process.tail()}")
            return self._ready()

        wait_until(answer, f"{self.name} to be ready", START_SECONDS, 0.05, self.process.tail)

    def stop(self, grace_seconds: float = STOP_SECONDS) -> int | None:
        """End it, with SIGTERM first; its exit code, None if it was never started."""
        return self._process.stop(grace_seconds) if self._process else None

    def kill(self) -> None:
        """End it as a crash does."""
        self.stop(grace_seconds=0)

    def _command(self) -> list[str | Path]:
        raise NotImplementedError

    def _environment(self) -> dict[str, str]:
        return environment()

    def _ready(self) -> bool:
        raise NotImplementedError


class ReferenceAPI(Service):
    """The reference management API with a seeded key and its SQLite file in a folder. A restart keeps its address."""

    name = "the reference API"

    def __init__(self, folder: Path, *options: str) -> None:
        super().__init__(folder / "reference-api.log")
        self.key = f"{secrets.token_urlsafe(20)}_{secrets.token_urlsafe(15)}"
        self.key_file = folder / "api-key"
        self.key_file.touch(mode=0o600)
        self.key_file.write_text(self.key)
        self.database = folder / "reference-api.sqlite"
        self.request_log = folder / "reference-api-requests.jsonl"
        self.url = ""
        """Its address, once it was ready."""
        self._options = options
        self._seen = 0

    def start(self) -> None:
        """Start the process; do not wait for it."""
        self._seen = len(self._said())
        super().start()

    def requests(self, since: int = 0) -> Iterator[Mapping[str, Any]]:
        """The requests that were answered since a mark: `{method, path, status, ...}`."""
        if not self.request_log.exists():
            return
        with self.request_log.open("rb") as log:
            log.seek(since)
            for line in log:
                if not line.endswith(b"\n"):
                    return
                yield json.loads(line)

    def requests_mark(self) -> int:
        """A place in the request log, to be given to `requests` as `since`."""
        return self.request_log.stat().st_size if self.request_log.exists() else 0

    def _command(self) -> list[str | Path]:
        listen = self.url.removeprefix("http://") or "127.0.0.1:0"
        files = ("--database", self.database, "--request-log", self.request_log)
        return command("serve-api", "--listen", listen, *files, *self._options)

    def _environment(self) -> dict[str, str]:
        return environment(EDGE_OPERATOR_SEED_API_KEY=self.key)

    def _ready(self) -> bool:
        found = re.search(r"ready at (http://\S+)", self._said()[self._seen :])
        self.url = found[1] if found else self.url
        return found is not None

    def _said(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""


class Operator(Service):
    """The operator as a user of a cluster; ready when it watches. `options` are more of `edge-operator run`."""

    name = "the operator"

    def __init__(self, account: Account, api: ReferenceAPI, folder: Path, *options: str) -> None:
        super().__init__(folder / "operator.log")
        self.health_url = ""
        self._account = account
        self._api = api
        self._options = options

    def _command(self) -> list[str | Path]:
        port = free_port()
        self.health_url = f"http://127.0.0.1:{port}"
        fixed: dict[str, str | Path] = {
            "--kubeconfig": self._account.kubeconfig,
            "--operator-namespace": self._account.namespace,
            "--api-url": self._api.url,
            "--api-key-file": self._api.key_file,
            "--health-listen": f"127.0.0.1:{port}",
        }
        return command("run", *(word for pair in fixed.items() for word in pair), *self._options)

    def _ready(self) -> bool:
        try:
            return httpx.get(f"{self.health_url}/readyz", timeout=2, trust_env=False).is_success
        except httpx.TransportError:
            return False
