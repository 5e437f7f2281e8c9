"""Access to a cluster, whoever runs it: requests, kubectl, and a kubeconfig for a service account."""

import contextlib
import itertools
import json
import os
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from harness import audit, binaries, kubeconfig
from harness.processes import HarnessError, wait_until

ATTEMPTS = 10
MERGE_PATCH = "application/merge-patch+json"
OWN_ONLY = "{} needs a control plane of our own: unset EDGE_OPERATOR_TEST_KUBECONFIG"


class CommandError(HarnessError):
    """A command ended with an error; `stdout` and `stderr` hold what it said."""

    def __init__(self, command: Sequence[str], done: "subprocess.CompletedProcess[str]") -> None:
        super().__init__(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}".rstrip())
        self.returncode = done.returncode
        self.stdout = done.stdout
        self.stderr = done.stderr


class APIError(HarnessError):
    """The API server refused a request; `status` is the HTTP code, `reason` for example `NotFound`."""

    def __init__(self, method: str, path: str, status: int, reason: str, message: str) -> None:
        super().__init__(f"{method} {path}: {status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message


class NotFoundError(APIError):
    """The API server knows no such object."""


def run(
    command: Sequence[str | Path],
    input: str | None = None,  # noqa: A002  # the name that subprocess has for it
    env: Mapping[str, str] | None = None,
    timeout_seconds: float = 300,
) -> str:
    """The standard output of a command.

    Raises:
        CommandError: it ended with an exit code other than 0.
    """
    words = [str(word) for word in command]
    done = subprocess.run(
        words, input=input, text=True, capture_output=True, check=False, timeout=timeout_seconds,
        env={**os.environ, **env} if env else None, stdin=subprocess.DEVNULL if input is None else None,
    )  # fmt: skip
    if done.returncode != 0:
        raise CommandError(words, done)
    return done.stdout


class Cluster:
    """A cluster that a kubeconfig leads to. `folder` takes the files that are written on the way."""

    def __init__(self, kubeconfig_path: Path, folder: Path) -> None:
        self.kubeconfig = kubeconfig_path
        self.folder = folder
        self.server, self._client = kubeconfig.read(kubeconfig_path)
        self._numbers = itertools.count(1)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def request(
        self, method: str, path: str, body: object = None, *, content_type: str = "application/json", **query: str
    ) -> Any:
        """The answer of the API server to one request, as JSON; asked again while it says "later", as clients do.

        Raises:
            APIError: the answer is a refusal.
            httpx.TransportError: there is no answer.
        """
        content = None if body is None else json.dumps(body)
        headers = {"Content-Type": content_type} if content else {}
        for _ in range(ATTEMPTS):
            answer = self._client.request(method, path, content=content, headers=headers, params=query)
            if "Retry-After" not in answer.headers:
                break
            time.sleep(float(answer.headers["Retry-After"]))
        if answer.is_success:
            return answer.json() if "json" in answer.headers.get("Content-Type", "") else answer.text
        try:
            status = answer.json()
        except ValueError:
            status = {"reason": answer.reason_phrase, "message": answer.text[:256]}
        refusal = NotFoundError if answer.status_code == httpx.codes.NOT_FOUND else APIError
        raise refusal(method, path, answer.status_code, str(status.get("reason")), str(status.get("message")))

    def get(self, path: str) -> Any | None:
        """The object or list at a path of the API, for example `/api/v1/namespaces/x/secrets/y`; None if absent."""
        try:
            return self.request("GET", path)
        except NotFoundError:
            return None

    def kubectl(
        self,
        *args: str | Path,
        input: str | None = None,  # noqa: A002  # the name that subprocess has for it
        kubeconfig: Path | None = None,
    ) -> str:
        """What kubectl prints, run as the administrator or as the user of another `kubeconfig`.

        Raises:
            CommandError: kubectl ended with an error; its `stderr` says which.
        """
        options: list[str | Path] = [
            "--kubeconfig",
            kubeconfig or self.kubeconfig,
            "--cache-dir",
            self.folder / "kubectl",
        ]
        return run([self.kubectl_path(), *options, *args], input=input, env={"KUBECTL_KUBERC": "false"})

    def kubectl_path(self) -> Path:
        """The kubectl to use: the one on PATH, whose version the owner of a cluster chose, else our own."""
        found = shutil.which("kubectl")
        return Path(found) if found else binaries.find("kubectl")

    def apply(
        self,
        what: str | Path | Mapping[str, Any],
        *options: str,
        server_side: bool = False,
        kubeconfig: Path | None = None,
    ) -> str:
        """Apply YAML text, a file, a folder of files or one object, and return what kubectl says.

        Further options of `kubectl apply` can follow, for example `"--namespace", name`.
        """
        text = json.dumps(what) if isinstance(what, Mapping) else what
        source: list[str | Path] = ["-f", text] if isinstance(text, Path) else ["-f", "-"]
        flags = ["--server-side", "--force-conflicts"] if server_side else []
        stdin = None if isinstance(text, Path) else text
        return self.kubectl("apply", *flags, *options, *source, input=stdin, kubeconfig=kubeconfig)

    def apply_crds(self, folder: Path) -> None:
        """Apply a folder of CRDs and wait until the API server serves them all."""
        names = self.apply(folder, "-o", "name", server_side=True).split()
        self.kubectl("wait", "--for=condition=Established", "--timeout=60s", *names)

    def create_namespace(self, name: str) -> None:
        """Create a namespace and wait for its default service account, as pods do."""
        self.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        wait_until(lambda: self.get(account), f"the default service account of namespace {name}", 30)

    def delete_namespace(self, name: str, wait: bool = False) -> None:
        """Delete a namespace if it is there; with `wait`, return when all of it is gone."""
        path = f"/api/v1/namespaces/{name}"
        if self.get(path) is not None:
            self.request("DELETE", path)
        if wait:
            wait_until(lambda: self.get(path) is None, f"namespace {name} to be gone", 60)

    def clear_namespace(self, name: str) -> None:
        """Delete a namespace with all its custom resources, whose finalizers nobody is left to remove; do not wait."""
        self.delete_namespace(name)
        crds = self.request("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")["items"]
        for spec in (crd["spec"] for crd in crds):
            served = [version["name"] for version in spec["versions"] if version["served"]]
            if spec["scope"] != "Namespaced" or not served:
                continue
            collection = f"/apis/{spec['group']}/{served[0]}/namespaces/{name}/{spec['names']['plural']}"
            for item in (self.get(collection) or {"items": []})["items"]:
                self._force_delete(f"{collection}/{item['metadata']['name']}")

    def _force_delete(self, path: str) -> None:
        """Delete an object and take its finalizers away; it may be gone at any time."""
        with contextlib.suppress(NotFoundError):
            self.request("DELETE", path)
            self.request("PATCH", path, {"metadata": {"finalizers": None}}, content_type=MERGE_PATCH)

    def restart_apiserver(self, graceful: bool = True, pause_seconds: float = 0) -> None:
        """Restart the API server, which only a control plane of our own can."""
        raise HarnessError(OWN_ONLY.format("restarting the API server"))

    def restart_controller_manager(self) -> None:
        """Restart the controller manager, which only a control plane of our own can."""
        raise HarnessError(OWN_ONLY.format("restarting the controller manager"))

    def audit_mark(self) -> int:
        """A place in the audit log, which only a control plane of our own has."""
        raise HarnessError(OWN_ONLY.format("the audit log"))

    def audit_events(self, user: str | None = None, since: int = 0) -> list[audit.AuditEvent]:
        """What the audit log says, which only a control plane of our own has."""
        raise HarnessError(OWN_ONLY.format("the audit log"))

    def service_account_token(
        self, namespace: str, name: str, expiration_seconds: int = 3600, pod: Mapping[str, Any] | None = None
    ) -> str:
        """A token of a service account, made by TokenRequest; bound to a pod if one is given."""
        spec: dict[str, Any] = {"expirationSeconds": expiration_seconds}
        if pod is not None:
            reference = {
                "kind": "Pod",
                "apiVersion": "v1",
                "name": pod["metadata"]["name"],
                "uid": pod["metadata"]["uid"],
            }
            spec["boundObjectRef"] = reference
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        return str(self.request("POST", path, {"spec": spec})["status"]["token"])

    def service_account_kubeconfig(self, namespace: str, name: str, expiration_seconds: int = 3600) -> Path:
        """A kubeconfig that acts as a service account, with the rights that RBAC gives it and no others."""
        token = self.service_account_token(namespace, name, expiration_seconds)
        path = self.folder / "kubeconfigs" / f"{namespace}-{name}-{next(self._numbers)}.yaml"
        return kubeconfig.write(path, self.server, name, token, namespace)


def service_account_user(namespace: str, name: str) -> str:
    """The user name that a service account has in RBAC and in the audit log."""
    return f"system:serviceaccount:{namespace}:{name}"
