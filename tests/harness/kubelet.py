"""A small kubelet that runs pods as local processes, so that a Deployment's command, env, probes and rights are real.

It is a Node, binds pods to itself, runs their containers without isolation (no image, no mounts, no user, no limits:
see `pods` for what stands in for mounts), asks their probes, and keeps their status. Pods with init containers are
refused. Every pod has the address 127.0.0.1, so ports must be free on this machine.
"""

import contextlib
import secrets
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from harness.cluster import MERGE_PATCH, APIError, Cluster
from harness.containers import Container, Exit, timestamp
from harness.pods import CannotStartError, Image, Surroundings
from harness.probes import POD_IP
from harness.processes import HarnessError

PERIOD_SECONDS = 0.2
REFRESH_SECONDS = 2.0
"""How often volumes are looked at again; a real kubelet takes up to a minute or two."""


class FakeKubelet:
    """A node that runs the pods of one namespace, or of all, from `start` (or entering the context) to `stop`."""

    def __init__(self, cluster: Cluster, namespace: str | None = None, image: Image | None = None) -> None:
        self.name = f"local-{secrets.token_hex(4)}"
        self.exits: list[Exit] = []
        """Every end of a container, in order."""
        self._cluster = cluster
        self._path = f"/api/v1/namespaces/{namespace}/pods" if namespace else "/api/v1/pods"
        self._image = image or Image()
        self._folder = cluster.folder / self.name
        self._pods: dict[str, _Pod] = {}
        self._error: BaseException | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Register the node and begin."""
        self._folder.mkdir(parents=True)
        self._cluster.request("POST", "/api/v1/nodes", {"metadata": {"name": self.name}})
        conditions = [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "runs local processes"}]
        resources = {"cpu": "64", "memory": "256Gi", "pods": "1000"}
        status = {
            "conditions": conditions,
            "capacity": resources,
            "allocatable": resources,
            "addresses": [{"type": "InternalIP", "address": POD_IP}],
        }
        self._cluster.request(
            "PATCH", f"/api/v1/nodes/{self.name}/status", {"status": status}, content_type=MERGE_PATCH
        )
        self._thread.start()

    def stop(self) -> None:
        """End every process, remove the node.

        Raises:
            HarnessError: the kubelet had stopped by itself before, by an error of its own.
        """
        self._stopping.set()
        self._thread.join()
        try:
            self._cluster.request("DELETE", f"/api/v1/nodes/{self.name}")
        except (APIError, httpx.TransportError):
            if self._error is None:
                raise
        if self._error is not None:
            raise HarnessError(f"the fake kubelet broke: {self._error!r}") from self._error

    def logs(self, pod: str = "", container: str = "") -> str:
        """What containers have printed, of the pods and containers whose names start so; for a test's message too."""
        return "\n".join(
            f"--- {log.parent.name} {log.stem}\n{log.read_text(errors='replace')}"
            for log in sorted(self._folder.glob("*/*.log"))
            if log.parent.name.startswith(pod) and log.name.startswith(container)
        )

    def pid(self, pod: str, container: str = "") -> int:
        """The process id of a running container, by the start of the pod's name and of its own."""
        for held in list(self._pods.values()):
            for one in held.containers:
                if held.name.startswith(pod) and one.name.startswith(container) and one.pid is not None:
                    return one.pid
        raise HarnessError(f"no container runs now whose pod starts with {pod!r}")

    def _run(self) -> None:
        """The thread's work; it lives as long as the processes that it starts."""
        try:
            while not self._stopping.is_set():
                try:
                    self._sync()
                except httpx.TransportError:
                    pass  # the API server is away; processes go on meanwhile, as on a real node
                except APIError as error:
                    if error.status not in {401, 404, 409, 429} and error.status < 500:
                        raise
                self._stopping.wait(PERIOD_SECONDS)
        except BaseException as error:  # noqa: BLE001  # it is raised again by stop()
            self._error = error
        finally:
            for pod in self._pods.values():
                pod.kill(self.exits)

    def _sync(self) -> None:
        """One look at all pods."""
        found = {pod["metadata"]["uid"]: pod for pod in self._cluster.request("GET", self._path)["items"]}
        for uid in [uid for uid in self._pods if uid not in found]:
            self._pods.pop(uid).kill(self.exits)
        for uid, pod in found.items():
            node = pod["spec"].get("nodeName")
            if node is None and "deletionTimestamp" not in pod["metadata"]:
                self._bind(pod)
            elif node == self.name:
                if uid not in self._pods:
                    self._pods[uid] = _Pod(self._cluster, pod, self._folder, self._image)
                self._pods[uid].sync(pod, self.exits)

    def _bind(self, pod: Mapping[str, Any]) -> None:
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        target = {"apiVersion": "v1", "kind": "Node", "name": self.name}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        self._cluster.request("POST", f"/api/v1/namespaces/{namespace}/pods/{name}/binding", binding)


class _Pod:
    """A pod on this node: its containers, and the status that was last written."""

    def __init__(self, cluster: Cluster, pod: Mapping[str, Any], folder: Path, image: Image) -> None:
        meta, spec = pod["metadata"], pod["spec"]
        self.name: str = meta["name"]
        self._cluster = cluster
        self._uid = meta["uid"]
        self._path = f"/api/v1/namespaces/{meta['namespace']}/pods/{self.name}"
        self._restart = spec.get("restartPolicy", "Always")
        self._started_at = timestamp()
        self._written: dict[str, Any] | None = None
        self._since: dict[str, tuple[str, str]] = {}
        self._deadline: float | None = None
        self._refreshed = 0.0
        self._refused = "the fake kubelet runs no init containers" if spec.get("initContainers") else ""
        own = folder / f"{self.name}-{self._uid[:8]}"
        own.mkdir()
        self._surroundings = Surroundings(cluster, pod, own, image)
        self.containers = [
            Container(self.name, one, self._surroundings, own / f"{one['name']}.log", self._restart)
            for one in spec["containers"]
        ]

    def sync(self, pod: Mapping[str, Any], exits: list[Exit]) -> None:
        """Bring the processes and the pod's status up to date; a pod that is to be deleted is, once they have ended."""
        now = time.monotonic()
        if "deletionTimestamp" in pod["metadata"]:
            self._end(pod["metadata"].get("deletionGracePeriodSeconds", 30), now, exits)
        if not self._refused:
            for container in self.containers:
                self._note(container.tick(now), exits)
            self._refresh(now)
        if self._deadline is not None and not any(container.running for container in self.containers):
            options = {"gracePeriodSeconds": 0, "preconditions": {"uid": self._uid}}
            self._cluster.request("DELETE", self._path, options)
            return
        self._write_status()

    def kill(self, exits: list[Exit]) -> None:
        """End every process: asked first, killed two seconds later."""
        for container in self.containers:
            container.terminate()
        for container in self.containers:
            self._note(container.kill(time.monotonic(), grace_seconds=2), exits)

    def _end(self, grace_seconds: float, now: float, exits: list[Exit]) -> None:
        """Ask the processes to end, and end them when the grace is over."""
        if self._deadline is None:
            self._deadline = now + grace_seconds
        for container in self.containers:
            container.terminate()
            if now >= self._deadline:
                self._note(container.kill(now), exits)

    def _refresh(self, now: float) -> None:
        """Bring changed Secrets and ConfigMaps into the volumes of running containers."""
        if now - self._refreshed < REFRESH_SECONDS or not any(container.running for container in self.containers):
            return
        self._refreshed = now
        with contextlib.suppress(CannotStartError):  # something was deleted; running containers keep what they have
            self._surroundings.refresh()

    @staticmethod
    def _note(exit_: Exit | None, exits: list[Exit]) -> None:
        if exit_:
            exits.append(exit_)

    def _write_status(self) -> None:
        """Patch the pod's status, if it changed."""
        status = {
            "phase": self._phase(),
            "message": self._refused,
            "hostIP": POD_IP,
            "podIP": POD_IP,
            "podIPs": [{"ip": POD_IP}],
            "startTime": self._started_at,
            "conditions": self._conditions(),
            "containerStatuses": [container.status() for container in self.containers],
        }
        if status != self._written:
            self._cluster.request("PATCH", f"{self._path}/status", {"status": status}, content_type=MERGE_PATCH)
            self._written = status

    def _phase(self) -> str:
        if self._refused:
            return "Failed"
        if all(container.finished for container in self.containers):
            failed = any(container.exit and container.exit.code for container in self.containers)
            return "Failed" if failed else "Succeeded"
        begun = all(container.running or container.exit for container in self.containers)
        return "Running" if begun else "Pending"

    def _conditions(self) -> list[dict[str, str]]:
        """The pod's conditions; a time of transition changes with the condition only."""
        ready = not self._refused and all(container.ready for container in self.containers)
        unready = " ".join(container.name for container in self.containers if not container.ready)
        message = "" if ready else f"containers with unready status: [{unready}]"
        conditions = []
        for kind, true in (("PodScheduled", True), ("Initialized", True), ("ContainersReady", ready), ("Ready", ready)):
            state = "True" if true else "False"
            if self._since.get(kind, ("", ""))[0] != state:
                self._since[kind] = (state, timestamp())
            entry = {"type": kind, "status": state, "lastTransitionTime": self._since[kind][1]}
            conditions.append(entry if true else {**entry, "reason": "ContainersNotReady", "message": message})
        return conditions
