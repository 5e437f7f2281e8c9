"""The control plane and the kubelet that other cluster tests stand on do what those tests take for granted."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness import audit, kubeconfig
from harness.cluster import Cluster, CommandError, service_account_user
from harness.helm import Helm
from harness.kubelet import FakeKubelet
from harness.processes import free_port, wait_until

WIDGETS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.test.edge-operator.dev}
spec:
  group: test.edge-operator.dev
  names: {kind: Widget, plural: widgets, singular: widget}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""


def create(cluster: Cluster, namespace: str, kind: str, name: str, **fields: Any) -> dict[str, Any]:
    """Create an object of the core group and return it."""
    body = {"metadata": {"name": name, **fields.pop("metadata", {})}, **fields}
    created: dict[str, Any] = cluster.request("POST", f"/api/v1/namespaces/{namespace}/{kind}", body)
    return created


def deployment(name: str, *, command: list[str], **container: Any) -> dict[str, Any]:
    """A Deployment of one pod with one container; more pod fields come as `pod`."""
    pod = container.pop("pod", {})
    spec = {"containers": [{"name": "main", "image": "none", "command": command, **container}], **pod}
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    }


def the_pod(cluster: Cluster, namespace: str) -> dict[str, Any] | None:
    """The only pod of a namespace that has a container status."""
    pods = cluster.request("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
    return pods[0] if len(pods) == 1 and pods[0]["status"].get("containerStatuses") else None


def test_kubectl_helm_and_server_name_their_versions(control_plane: Cluster, helm: Helm) -> None:
    versions = control_plane.kubectl("version")
    assert re.findall(r"(\w+) Version: v1\.36\.3", versions) == ["Client", "Server"]
    assert helm("version", "--short").startswith("v4.2.4")


def test_owner_references_are_collected(control_plane: Cluster, namespace: str) -> None:
    owner = create(control_plane, namespace, "configmaps", "owner")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    create(control_plane, namespace, "secrets", "owned", metadata={"ownerReferences": [reference]})
    control_plane.request("DELETE", f"/api/v1/namespaces/{namespace}/configmaps/owner")
    gone = lambda: control_plane.get(f"/api/v1/namespaces/{namespace}/secrets/owned") is None
    wait_until(gone, "the owned secret to be collected", 10)


def test_owner_references_to_a_new_kind_are_collected_at_once(
    control_plane: Cluster, namespace: str, tmp_path: Path
) -> None:
    """Left alone, the garbage collector learns of new kinds after half a minute."""
    (tmp_path / "widgets.yaml").write_text(WIDGETS)
    control_plane.apply_crds(tmp_path)
    widgets = f"/apis/test.edge-operator.dev/v1/namespaces/{namespace}/widgets"
    body = {"apiVersion": "test.edge-operator.dev/v1", "kind": "Widget", "metadata": {"name": "owner"}}
    uid = control_plane.request("POST", widgets, body)["metadata"]["uid"]
    reference = {"apiVersion": body["apiVersion"], "kind": "Widget", "name": "owner", "uid": uid}
    create(control_plane, namespace, "secrets", "owned", metadata={"ownerReferences": [reference]})
    control_plane.request("DELETE", f"{widgets}/owner")
    gone = lambda: control_plane.get(f"/api/v1/namespaces/{namespace}/secrets/owned") is None
    wait_until(gone, "the owned secret to be collected", 10)


def test_namespace_is_deleted_in_spite_of_finalizers_left_behind(control_plane: Cluster, tmp_path: Path) -> None:
    (tmp_path / "widgets.yaml").write_text(WIDGETS)
    control_plane.apply_crds(tmp_path)
    control_plane.create_namespace("short-lived")
    widgets = "/apis/test.edge-operator.dev/v1/namespaces/short-lived/widgets"
    meta = {"name": "stuck", "finalizers": ["test.edge-operator.dev/nobody"]}
    body = {"apiVersion": "test.edge-operator.dev/v1", "kind": "Widget", "metadata": meta}
    control_plane.request("POST", widgets, body)
    control_plane.clear_namespace("short-lived")
    control_plane.delete_namespace("short-lived", wait=True)
    assert control_plane.get("/api/v1/namespaces/short-lived") is None


def test_service_account_has_its_rights_and_no_others(control_plane: Cluster, namespace: str) -> None:
    create(control_plane, namespace, "serviceaccounts", "robot")
    control_plane.kubectl(
        "create", "role", "reader", "--verb=get,list", "--resource=configmaps", "--namespace", namespace
    )
    control_plane.kubectl(
        "create", "rolebinding", "reader", "--role=reader", f"--serviceaccount={namespace}:robot", "-n", namespace
    )
    robot = control_plane.service_account_kubeconfig(namespace, "robot")

    def allowed() -> str:
        try:
            return control_plane.kubectl("get", "configmaps", "-o", "name", kubeconfig=robot)
        except CommandError:
            return ""

    assert "configmap/kube-root-ca.crt" in wait_until(allowed, "the role to be known", 10)
    with pytest.raises(CommandError, match="Forbidden") as refusal:
        control_plane.kubectl("get", "secrets", kubeconfig=robot)
    assert service_account_user(namespace, "robot") in refusal.value.stderr


def test_audit_log_counts_one_users_writes(control_plane: Cluster, namespace: str) -> None:
    create(control_plane, namespace, "serviceaccounts", "writer")
    control_plane.kubectl(
        "create",
        "rolebinding",
        "writer",
        "--clusterrole=admin",
        f"--serviceaccount={namespace}:writer",
        "-n",
        namespace,
    )
    control_plane.kubectl(
        "create", "role", "leases", "--verb=create", "--resource=leases.coordination.k8s.io", "-n", namespace
    )
    control_plane.kubectl(
        "create", "rolebinding", "leases", "--role=leases", f"--serviceaccount={namespace}:writer", "-n", namespace
    )
    config = control_plane.service_account_kubeconfig(namespace, "writer")
    _, client = kubeconfig.read(config)
    core, leases = f"/api/v1/namespaces/{namespace}", f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    user = service_account_user(namespace, "writer")
    with client:
        wait_until(lambda: client.get(f"{core}/configmaps").is_success, "the role to be known", 10)
        mark = control_plane.audit_mark()
        client.get(f"{core}/configmaps")
        client.post(f"{core}/configmaps", json={"metadata": {"name": "one"}, "data": {"a": "1"}})
        client.post(leases, json={"metadata": {"name": "lease"}})
        client.delete(f"{core}/configmaps/one")
        with client.stream("GET", f"{core}/secrets", params={"watch": "true"}):
            create(control_plane, namespace, "configmaps", "of-someone-else")
            events = control_plane.audit_events(user=user, since=mark)

    assert [
        f"list configmaps {namespace}/ 200",
        f"create configmaps {namespace}/one 201",
        f"create leases {namespace}/lease 201",
        f"delete configmaps {namespace}/one 200",
        f"watch secrets {namespace}/ 200",
    ] == [event.what for event in events]
    assert [event.verb for event in audit.writes(events)] == ["create", "delete"]


@pytest.mark.parametrize("graceful", [True, False])
def test_restarted_api_server_knows_objects_and_tokens(control_plane: Cluster, namespace: str, graceful: bool) -> None:
    config = control_plane.service_account_kubeconfig(namespace, "default")
    create(control_plane, namespace, "configmaps", "kept", data={"a": "1"})
    control_plane.restart_apiserver(graceful=graceful)
    kept = control_plane.get(f"/api/v1/namespaces/{namespace}/configmaps/kept")
    assert kept is not None
    assert kept["data"] == {"a": "1"}
    control_plane.kubectl("auth", "whoami", kubeconfig=config)
    control_plane.create_namespace(f"{namespace}-after")
    control_plane.delete_namespace(f"{namespace}-after")


def test_parts_die_with_the_process_that_started_them(tmp_path: Path) -> None:
    program = (
        "import time\n"
        "from harness.control_plane import ControlPlane\n"
        "plane = ControlPlane()\n"
        "print(*plane.pids.values(), flush=True)\n"
        "time.sleep(600)\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=env) as owner:
        assert owner.stdout is not None
        pids = [int(word) for word in owner.stdout.readline().split()]
        owner.kill()
    assert len(pids) == 3
    wait_until(lambda: not any(map(_alive, pids)), "the parts to be gone", 5)


def _alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits to be noticed does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    try:
        return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


SERVER = "import http.server, os, sys; print(os.environ['GREETING'], open(sys.argv[2]).read(), flush=True); "
SERVER += "http.server.test(http.server.SimpleHTTPRequestHandler, port=int(sys.argv[1]), bind='127.0.0.1')"


def test_deployment_becomes_ready_when_its_probe_passes(
    control_plane: Cluster, namespace: str, kubelet: FakeKubelet
) -> None:
    """Args, env, Secrets as env and as files, the service account's token and the probe are all real."""
    port = free_port()
    create(control_plane, namespace, "secrets", "given", stringData={"word": "hello", "file": "from a file"})
    secret = {"secretKeyRef": {"name": "given", "key": "word"}}
    server = deployment(
        "web",
        command=["python3", "-c", SERVER],
        args=["$(PORT)", "/etc/given/file"],
        env=[{"name": "GREETING", "valueFrom": secret}, {"name": "PORT", "value": str(port)}],
        ports=[{"name": "web", "containerPort": port}],
        readinessProbe={"httpGet": {"path": "/", "port": "web"}, "periodSeconds": 1},
        volumeMounts=[{"name": "given", "mountPath": "/etc/given"}],
        pod={"volumes": [{"name": "given", "secret": {"secretName": "given"}}]},
    )
    control_plane.apply(server, "-n", namespace)
    control_plane.kubectl("wait", "--for=condition=Available", "deployment/web", "-n", namespace, "--timeout=30s")
    assert "hello from a file" in kubelet.logs("web")

    control_plane.kubectl("delete", "deployment/web", "-n", namespace)
    pods = f"/api/v1/namespaces/{namespace}/pods"
    wait_until(lambda: not control_plane.request("GET", pods)["items"], "the pod to be gone", 30)
    assert [(end.code, end.asked) for end in kubelet.exits] == [(128 + signal.SIGTERM, True)]


def test_pod_acts_as_its_service_account_with_a_token_bound_to_it(
    control_plane: Cluster, namespace: str, kubelet: FakeKubelet
) -> None:
    whoami = [str(control_plane.kubectl_path()), "auth", "whoami", "-o", "yaml"]
    control_plane.apply(deployment("who", command=["sh", "-c", " ".join(whoami) + "; sleep 60"]), "-n", namespace)
    wait_until(lambda: "pod-uid" in kubelet.logs("who"), "an answer", 30)
    output = kubelet.logs("who")
    assert service_account_user(namespace, "default") in output
    assert re.search(r"authentication.kubernetes.io/pod-name:\s+- who-", output)


def test_pod_without_a_token_gets_no_kubeconfig(control_plane: Cluster, namespace: str, kubelet: FakeKubelet) -> None:
    command = ["sh", "-c", 'echo "[$KUBECONFIG$EDGE_OPERATOR_KUBECONFIG]"; sleep 60']
    pod = {"automountServiceAccountToken": False}
    control_plane.apply(deployment("bare", command=command, pod=pod), "-n", namespace)
    wait_until(lambda: "[]" in kubelet.logs("bare"), "its output", 30)


def test_deployment_whose_command_exits_is_never_available(
    control_plane: Cluster, namespace: str, kubelet: FakeKubelet
) -> None:
    control_plane.apply(deployment("broken", command=["sh", "-c", "echo no luck; exit 3"]), "-n", namespace)

    def looping() -> dict[str, Any] | None:
        pod = the_pod(control_plane, namespace)
        status: dict[str, Any] = pod["status"]["containerStatuses"][0] if pod else {}
        return status if "waiting" in status.get("state", {}) and status["restartCount"] >= 2 else None

    status = wait_until(looping, "the second restart", 30)
    assert status["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert status["lastState"]["terminated"]["exitCode"] == 3
    assert "no luck" in status["lastState"]["terminated"]["message"]
    with pytest.raises(CommandError, match="timed out"):
        control_plane.kubectl("wait", "--for=condition=Available", "deployment/broken", "-n", namespace, "--timeout=1s")


def test_container_waits_for_a_secret_that_is_missing(
    control_plane: Cluster, namespace: str, kubelet: FakeKubelet
) -> None:
    env = [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "late", "key": "key"}}}]
    control_plane.apply(deployment("waits", command=["sleep", "60"], env=env), "-n", namespace)

    def waiting() -> dict[str, str] | None:
        pod = the_pod(control_plane, namespace)
        state = pod["status"]["containerStatuses"][0]["state"] if pod else {}
        return state.get("waiting") if "message" in state.get("waiting", {}) and state["waiting"]["message"] else None

    state = wait_until(waiting, "a reason", 30)
    assert state == {"reason": "CreateContainerConfigError", "message": 'secret "late" not found'}
    create(control_plane, namespace, "secrets", "late", stringData={"key": "now"})
    control_plane.kubectl("wait", "--for=condition=Available", "deployment/waits", "-n", namespace, "--timeout=30s")


def test_helm_waits_for_pods_to_be_ready_and_fails_when_they_are_not(
    control_plane: Cluster, namespace: str, kubelet: FakeKubelet, helm: Helm, tmp_path: Path
) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "Chart.yaml").write_text("apiVersion: v2\nname: tiny\nversion: 0.0.1\n")
    (tmp_path / "values.yaml").write_text("command: sleep 60\n")
    template = (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: tiny}\nspec:\n"
        "  selector: {matchLabels: {app: tiny}}\n  template:\n    metadata: {labels: {app: tiny}}\n"
        "    spec:\n      containers:\n        - name: main\n          image: none\n"
        '          command: [sh, -c, "{{ .Values.command }}"]\n'
        '          readinessProbe: {exec: {command: ["true"]}, periodSeconds: 1}\n'
    )
    (tmp_path / "templates" / "deployment.yaml").write_text(template)
    helm("install", "tiny", tmp_path, "--wait", "--timeout", "30s", namespace=namespace)
    helm("uninstall", "tiny", "--wait", "--timeout", "30s", namespace=namespace)
    with pytest.raises(CommandError, match="not ready"):
        helm("install", "tiny", tmp_path, "--wait", "--timeout", "4s", "--set", "command=exit 1", namespace=namespace)
