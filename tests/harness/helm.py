"""The real helm, on a cluster, with all of its own files in that cluster's folder."""

from pathlib import Path

from harness import binaries
from harness.cluster import Cluster, run


class Helm:
    """Helm as the administrator of a cluster; an instance is called like the command."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._home = cluster.folder / "helm"

    def __call__(self, *args: str | Path, namespace: str = "default", kubeconfig: Path | None = None) -> str:
        """What helm prints, for example of `helm("install", "edge", chart, "--wait", namespace=ns)`.

        Raises:
            CommandError: helm ended with an error; its `stderr` says which.
        """
        homes = {f"HELM_{kind}_HOME": str(self._home / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
        env = {**homes, "KUBECONFIG": str(kubeconfig or self._cluster.kubeconfig), "HELM_NAMESPACE": namespace}
        return run([binaries.find("helm"), *args], env=env)
