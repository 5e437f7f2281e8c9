"""A pod's surroundings as files, environment and arguments of a local process.

Volumes become folders. There is no mount, so a path of the pod is translated wherever the pod's own command, args or
env values name it: as the whole value, after `=`, `,` or `:`, or as the start of a longer path. A service account's
fixed path cannot be had that way; where the pod mounts its token there, `KUBECONFIG` and `EDGE_OPERATOR_KUBECONFIG`
name a kubeconfig with that pod-bound token instead, and a pod without the token gets neither.
"""

import base64
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from harness import kubeconfig
from harness.cluster import Cluster
from harness.probes import POD_IP

ACCOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"


class CannotStartError(Exception):
    """A container cannot be started now; `reason` and the message appear in its status, as with a real kubelet."""

    def __init__(self, message: str, reason: str = "CreateContainerConfigError") -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class Launch:
    """A container as a local process."""

    command: tuple[str, ...]
    env: Mapping[str, str]
    folder: Path


@dataclass(frozen=True)
class Image:
    """What a container image would bring: its entry point, and where commands are on this machine."""

    entrypoint: tuple[str, ...] = ("edge-operator",)
    """The command of a container that names none."""
    env: tuple[tuple[str, str], ...] = (("PYTHONUNBUFFERED", "1"),)

    def resolve(self, command: str) -> str:
        """The path of a command: by its name in this Python's environment, else where it says or on PATH."""
        name, ours = Path(command).name, str(Path(sys.executable).parent)
        found = shutil.which(name, path=ours) or shutil.which(command) or shutil.which(name)
        if not found:
            raise CannotStartError(f'exec: "{command}": executable file not found in $PATH', "RunContainerError")
        return found


class Surroundings:
    """The files of one pod in `folder`, read from a cluster."""

    def __init__(self, cluster: Cluster, pod: Mapping[str, Any], folder: Path, image: Image) -> None:
        self._cluster = cluster
        self._pod = pod
        self._folder = folder
        self._image = image
        self._namespace: str = pod["metadata"]["namespace"]

    def launch(self, container: Mapping[str, Any]) -> Launch:
        """The local process for a container.

        Raises:
            CannotStartError: something that it needs is not there.
        """
        self.refresh()
        mounts = dict(self._mounts(container))
        env = self._base_env(mounts)
        for name, value in self._env(container):
            env[name] = _expand(_translate(value, mounts), env)
        words = [*(container.get("command") or self._image.entrypoint), *container.get("args", [])]
        command = [_expand(_translate(word, mounts), env) for word in words]
        command[0] = self._image.resolve(command[0])
        folder = mounts.get(container.get("workingDir", ""), self._folder)
        return Launch(tuple(command), env, folder)

    def refresh(self) -> None:
        """Write the files of all volumes; those whose Secret or ConfigMap changed are replaced."""
        for volume in self._pod["spec"].get("volumes", []):
            folder = self._volume(volume["name"])
            folder.mkdir(parents=True, exist_ok=True)
            for name, content in self._files(volume).items():
                _write(folder / name, content)

    def _volume(self, name: str) -> Path:
        return self._folder / "volumes" / name

    def _mounts(self, container: Mapping[str, Any]) -> Iterator[tuple[str, Path]]:
        """Pairs of a path in the pod and the path on this machine, the longest first."""
        for mount in sorted(container.get("volumeMounts", []), key=lambda mount: -len(mount["mountPath"])):
            yield mount["mountPath"].rstrip("/"), self._volume(mount["name"]) / mount.get("subPath", "")

    def _base_env(self, mounts: Mapping[str, Path]) -> dict[str, str]:
        """What the kubelet, the image and the missing mounts contribute."""
        server = urlsplit(self._cluster.server.url)
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        env = {
            "PATH": path,
            "HOME": str(self._folder),
            "HOSTNAME": self._pod["metadata"]["name"],
            "LANG": "C.UTF-8",
            **dict(self._image.env),
            "KUBERNETES_SERVICE_HOST": str(server.hostname),
            "KUBERNETES_SERVICE_PORT": str(server.port),
        }
        if "/tmp" in mounts:
            env["TMPDIR"] = str(mounts["/tmp"])
        if ACCOUNT_PATH in mounts:
            token = (mounts[ACCOUNT_PATH] / "token").read_text()
            account = self._pod["spec"].get("serviceAccountName", "default")
            file = self._folder / "kubeconfig"
            kubeconfig.write(file, self._cluster.server, account, token, self._namespace)
            env |= {"KUBECONFIG": str(file), "EDGE_OPERATOR_KUBECONFIG": str(file)}
        return env

    def _env(self, container: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """The variables that the container asks for, in Kubernetes' order."""
        for source in container.get("envFrom", []):
            kind = "Secret" if "secretRef" in source else "ConfigMap"
            data = self._data(kind, source.get("secretRef") or source["configMapRef"])
            yield from ((source.get("prefix", "") + key, value.decode()) for key, value in (data or {}).items())
        for entry in container.get("env", []):
            source = entry.get("valueFrom")
            value = entry.get("value", "") if source is None else self._value(source)
            if value is not None:
                yield entry["name"], value

    def _value(self, source: Mapping[str, Any]) -> str | None:
        """The value that a `valueFrom` points to; None if it is optional and absent."""
        if "fieldRef" in source:
            return self._field(source["fieldRef"]["fieldPath"])
        for word, kind in (("secretKeyRef", "Secret"), ("configMapKeyRef", "ConfigMap")):
            if word in source:
                reference = source[word]
                data = self._data(kind, reference) or {}
                if reference["key"] in data:
                    return data[reference["key"]].decode()
                if reference.get("optional"):
                    return None
                raise CannotStartError(
                    f"couldn't find key {reference['key']} in {kind} {self._namespace}/{reference['name']}"
                )
        raise CannotStartError(f"the fake kubelet has no {', '.join(source)} in env")

    def _field(self, path: str) -> str:
        """A field of the pod by its path, for example `metadata.labels['app']`."""
        keyed = re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path)
        if keyed:
            return str(self._pod["metadata"].get(keyed[1], {}).get(keyed[2], ""))
        if path in ("status.podIP", "status.hostIP"):
            return POD_IP
        value: Any = self._pod
        for step in path.split("."):
            value = value.get(step, "") if isinstance(value, Mapping) else ""
        return str(value)

    def _data(self, kind: str, reference: Mapping[str, Any]) -> dict[str, bytes] | None:
        """The data of a Secret or ConfigMap; None if it is optional and absent."""
        name = reference.get("secretName") or reference["name"]
        found = self._cluster.get(f"/api/v1/namespaces/{self._namespace}/{kind.lower()}s/{name}")
        if found is None:
            if reference.get("optional"):
                return None
            raise CannotStartError(f'{kind.lower()} "{name}" not found')
        if kind == "Secret":
            return {key: base64.b64decode(value) for key, value in (found.get("data") or {}).items()}
        return {key: value.encode() for key, value in (found.get("data") or {}).items()}

    def _files(self, volume: Mapping[str, Any]) -> dict[str, bytes]:
        """The files of a volume, by their path in it."""
        if "projected" in volume:
            files: dict[str, bytes] = {}
            for source in volume["projected"]["sources"]:
                files |= self._source(volume["name"], source)
            return files
        return self._source(volume["name"], volume)

    def _source(self, volume: str, source: Mapping[str, Any]) -> dict[str, bytes]:
        """The files of one source: a volume of a simple type, or a part of a projected one."""
        for word, kind in (("secret", "Secret"), ("configMap", "ConfigMap")):
            if word in source:
                return _chosen(self._data(kind, source[word]) or {}, source[word].get("items"))
        if "serviceAccountToken" in source:
            return self._token(volume, source["serviceAccountToken"])
        if "downwardAPI" in source:
            items: Sequence[Mapping[str, Any]] = source["downwardAPI"].get("items", [])
            return {item["path"]: self._field(item["fieldRef"]["fieldPath"]).encode() for item in items}
        if "emptyDir" in source:
            return {}
        types = ", ".join(key for key in source if key != "name")
        raise CannotStartError(f"the fake kubelet has no volumes of type {types}")

    def _token(self, volume: str, projection: Mapping[str, Any]) -> dict[str, bytes]:
        """A token bound to the pod, made once; it outlives any test."""
        if (self._volume(volume) / projection["path"]).exists():
            return {}
        account = self._pod["spec"].get("serviceAccountName", "default")
        token = self._cluster.service_account_token(self._namespace, account, pod=self._pod)
        return {projection["path"]: token.encode()}


def _chosen(data: dict[str, bytes], items: Sequence[Mapping[str, Any]] | None) -> dict[str, bytes]:
    """All of the data, or the items that are asked for under the paths they are asked for."""
    if items is None:
        return data
    missing = [item["key"] for item in items if item["key"] not in data]
    if missing:
        raise CannotStartError(f"references non-existent secret or config key: {', '.join(missing)}")
    return {item["path"]: data[item["key"]] for item in items}


def _write(path: Path, content: bytes) -> None:
    """Write a file in one step, if it differs."""
    if path.exists() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    fresh.touch(mode=0o600)
    fresh.write_bytes(content)
    fresh.replace(path)


def _expand(text: str, env: Mapping[str, str]) -> str:
    """The text with `$(NAME)` replaced where the name is known; `$$` is a dollar sign."""

    def value(found: re.Match[str]) -> str:
        return "$" if found[0] == "$$" else env.get(found[1], found[0])

    return re.sub(r"\$\$|\$\(([-._A-Za-z][-._A-Za-z0-9]*)\)", value, text)


def _translate(text: str, mounts: Mapping[str, Path]) -> str:
    """The text with the pod's mounted paths replaced by those on this machine; the mounts are the longest first."""
    if not mounts:
        return text
    paths = "|".join(re.escape(path) for path in mounts)
    return re.sub(rf"(?<![^=,:])({paths})(?=$|[/,:])", lambda found: str(mounts[found[1]]), text)
