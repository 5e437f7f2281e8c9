"""The same on kind, for machines with docker or podman: image built, loaded, installed by Helm with the reference API.

`python -m harness.kind -- COMMAND ...` shows the demo once there, takes the release away, and runs the command with
`EDGE_OPERATOR_TEST_KUBECONFIG` naming that cluster. The cluster is deleted at the end.
"""

import base64
import contextlib
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from harness.cluster import Cluster, CommandError, run
from harness.control_plane import EXISTING
from harness.demo_screen import Screen
from harness.helm import Helm
from harness.operator import CHART, NAMESPACE, RELEASE, ROOT
from harness.processes import HarnessError, Process, wait_until

IMAGE = "edge-operator:kind"
API = f"{RELEASE}-reference-api"
ENGINES = ("docker", "podman")
NO_ENGINE = """\
This needs docker or podman, and {found}.
Ways to get one: https://docs.docker.com/engine/install/ or https://podman.io/docs/installation; then start it.
Without either, `make demo` shows the same on a local control plane, and `make test` runs the same tests there."""
NO_KIND = """\
This needs kind, which is not on PATH.
Ways to get it: `go install sigs.k8s.io/kind@latest`, or https://kind.sigs.k8s.io/docs/user/quick-start/#installation"""


def engine() -> str:
    """The container engine that answers: docker, else podman.

    Raises:
        HarnessError: neither does; the message says how to get one.
    """
    there = [name for name in ENGINES if shutil.which(name)]
    for name in there:
        if subprocess.run([name, "info"], capture_output=True, check=False, timeout=60).returncode == 0:
            return name
    found = f"{' and '.join(there)} does not answer (`{there[0]} info` says why)" if there else "neither is on PATH"
    raise HarnessError(NO_ENGINE.format(found=found))


class KindWorld:
    """A kind cluster with the operator and the reference API in it, from entering to leaving a context."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._stack = contextlib.ExitStack()
        self._name = f"edge-operator-{secrets.token_hex(3)}"
        self._cluster: Cluster
        self._api: tuple[str, str, Path]

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
        """The kind cluster, as its administrator."""
        return self._cluster

    @property
    def api(self) -> tuple[str, str, Path]:
        """The reference API through a port-forward: address, key, and the file with the key."""
        return self._api

    def trouble(self) -> str:
        """Nothing: Kubernetes starts again what ends."""
        return ""

    def operator_log(self) -> str:
        """The last lines of the operator's log."""
        return self._cluster.kubectl("-n", NAMESPACE, "logs", "--tail=25", f"deployment/{RELEASE}")

    def logs(self) -> list[tuple[str, str]]:
        """What has a log, and the command that follows it."""
        parts = {"operator": RELEASE, "reference API": API}
        return [(name, f"kubectl -n {NAMESPACE} logs -f deployment/{part}") for name, part in parts.items()]

    def uninstall(self) -> None:
        """Take the operator and the reference API away; the CRDs stay."""
        Helm(self._cluster)("uninstall", RELEASE, "--wait", namespace=NAMESPACE)

    def _start(self) -> None:
        using, step = engine(), self._screen.step
        if not shutil.which("kind"):
            raise HarnessError(NO_KIND)
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="edge-operator-")))
        env = {"KIND_EXPERIMENTAL_PROVIDER": using, "KUBECONFIG": str(folder / "kubeconfig")}
        with step("image", f"{using} build, a minute or more the first time"):
            run([using, "build", "--tag", IMAGE, ROOT], timeout_seconds=1800)
        with step("kind", "a cluster in a container, a minute or more the first time"):
            self._stack.callback(subprocess.run, ["kind", "delete", "cluster", "--name", self._name],
                                 capture_output=True, check=False, env={**os.environ, **env})  # fmt: skip
            run(["kind", "create", "cluster", "--name", self._name, "--wait", "120s"], env=env, timeout_seconds=900)
            self._cluster = Cluster(folder / "kubeconfig", folder)
            self._stack.callback(self._cluster.close)
        with step("image", "loaded into the cluster"):
            run([using, "save", "--output", folder / "image.tar", IMAGE])
            run(["kind", "load", "image-archive", folder / "image.tar", "--name", self._name], env=env)
        with step("helm install", "the operator, and the reference API beside it"):
            repository, _, tag = IMAGE.rpartition(":")
            values = {"image.registry": "localhost" if using == "podman" else "", "image.repository": repository,
                      "image.tag": tag, "image.pullPolicy": "Never", "referenceAPI.enabled": "true",
                      "referenceAPI.extraArgs": "{--control}", "sessions.mirror": "true",
                      "sessions.interval": "500ms"}  # fmt: skip
            settings = [word for pair in values.items() for word in ("--set", "=".join(pair))]
            helm, more = Helm(self._cluster), ["--create-namespace", "--wait", "--timeout", "3m"]
            helm("install", RELEASE, CHART, *settings, *more, namespace=NAMESPACE)
        self._api = self._forward(folder)

    def _forward(self, folder: Path) -> tuple[str, str, Path]:
        """Make the reference API reachable from here."""
        secret = self._cluster.request("GET", f"/api/v1/namespaces/{NAMESPACE}/secrets/{API}")
        key, file, log = (
            base64.b64decode(secret["data"]["api-key"]).decode(),
            folder / "api-key",
            folder / "forward.log",
        )
        file.touch(mode=0o600)
        file.write_text(key)
        kubectl: list[str | Path] = [
            self._cluster.kubectl_path(),
            "--kubeconfig",
            self._cluster.kubeconfig,
            "-n",
            NAMESPACE,
        ]
        forward = Process("port-forward", [*kubectl, "port-forward", f"service/{API}", ":http"], log)
        self._stack.callback(forward.stop)
        found = wait_until(lambda: re.search(r"127\.0\.0\.1:(\d+)", log.read_text()), "the port-forward", 30)
        return f"http://127.0.0.1:{found[1]}", key, file


def main() -> int:
    """Show the demo on kind, then run a command there; the exit code."""
    from harness import demo  # which imports this module

    command, screen = [word for word in sys.argv[1:] if word != "--"], Screen()
    try:
        with KindWorld(screen) as world:
            code = demo.present(world, screen, demo.arguments(["--once"]))
            world.uninstall()
            if code or not command:
                return code
            env = {**os.environ, EXISTING: str(world.cluster.kubeconfig)}
            return subprocess.run(command, check=False, env=env).returncode
    except (HarnessError, CommandError) as error:
        screen.say(str(error), "red")
        return 1


if __name__ == "__main__":
    sys.exit(main())
