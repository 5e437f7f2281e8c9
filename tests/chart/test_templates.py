"""What the chart renders, without a cluster. `tests/cluster/test_chart.py` installs it."""

from __future__ import annotations

from typing import Any

import click
import kubernetes_validate  # type: ignore[import-untyped]  # has no types
import pytest

from chart.chart import API, CHART, ROOT, container, env, helm, named, of_kind, render
from edge_operator.__main__ import cli
from edge_operator.derive import access, documents
from edge_operator.kinds import DECLARED
from harness.cluster import CommandError

pytestmark = pytest.mark.cluster
ALL = list(DECLARED.values())

EVERYTHING: dict[str, Any] = {
    "replicas": 2,
    "imagePullSecrets": [{"name": "registry"}],
    "extraArgs": ["--log-format=json"],
    "extraEnv": [{"name": "EDGE_OPERATOR_LOG_LEVEL", "value": "debug"}],
    "extraVolumes": [{"name": "profile", "configMap": {"name": "profile"}}],
    "extraVolumeMounts": [{"name": "profile", "mountPath": "/etc/edge-operator/profile"}],
    "serviceAccount": {"annotations": {"a": "b"}},
    "podAnnotations": {"a": "b"},
    "podLabels": {"a": "b"},
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"operator": "Exists"}],
    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}},
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
    ],
    "priorityClassName": "system-cluster-critical",
    "metrics": {"service": {"enabled": True}, "podMonitor": {"enabled": True, "labels": {"release": "x"}}},
    "networkPolicy": {"enabled": True, "extraEgress": [{"ports": [{"port": 8443, "protocol": "TCP"}]}]},
    "podDisruptionBudget": {"enabled": True},
    "referenceAPI": {"enabled": True, "persistence": {"enabled": True, "storageClassName": "fast"}},
    "extraObjects": [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}-extra"}},
        'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "{{ .Release.Namespace }}-text"}\n',
    ],
}
FLAVOURS: dict[str, dict[str, Any]] = {
    "least": {},
    "reference API": {"api": {}, "referenceAPI": {"enabled": True}},
    "namespaces": {"watchNamespaces": ["one", "two"]},
    "everything": EVERYTHING,
    "nothing shared": {
        "crds": {"enabled": False},
        "rbac": {"create": False},
        "serviceAccount": {"create": False, "name": "other"},
        "podSecurityContext": None,
        "securityContext": None,
        "resources": None,
    },
}


def refusal(values: dict[str, Any], *, api: bool = True) -> str:
    with pytest.raises(CommandError) as caught:
        render(values, api=api)
    return caught.value.stderr


def test_helm_finds_nothing_to_complain_of() -> None:
    helm("lint", "--strict", CHART, values=API)


@pytest.mark.parametrize("values", FLAVOURS.values(), ids=FLAVOURS)
def test_every_object_is_valid_kubernetes(values: dict[str, Any]) -> None:
    for manifest in render(values, "--api-versions", "monitoring.coreos.com/v1"):
        if manifest["apiVersion"].split("/")[0] not in {"monitoring.coreos.com", "apiextensions.k8s.io"}:
            kubernetes_validate.validate(manifest, "1.36", strict=True)


@pytest.mark.parametrize("values", FLAVOURS.values(), ids=FLAVOURS)
def test_every_object_is_labelled_and_has_its_namespace(values: dict[str, Any]) -> None:
    cluster_wide = {"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"}
    for manifest in render(values):
        metadata = manifest["metadata"]
        if not metadata["name"].endswith(("-extra", "-text")):
            assert metadata["labels"]["app.kubernetes.io/part-of"] == "edge-operator"
            assert ("namespace" in metadata) == (manifest["kind"] not in cluster_wide)


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"colour": "red"}, "colour"),
        ({"api": {"url": "https://x", "keySecret": {"name": "a"}, "token": "x"}}, "token"),
        ({"image": {"digest": "sha256:1"}}, "digest"),
        ({"watchNamespaces": ["One"]}, "watchNamespaces"),
        ({"watchNamespaces": "one"}, "watchNamespaces"),
        ({"api": {"url": "api.example.com"}}, "url"),
        ({"replicas": "two"}, "replicas"),
    ],
)
def test_values_that_mean_nothing_are_refused(values: dict[str, Any], word: str) -> None:
    assert word in refusal(values)


def test_a_missing_address_is_named_with_the_way_out() -> None:
    assert "api.url is missing: set it" in refusal({}, api=False)


def test_a_missing_key_is_named_with_the_way_out() -> None:
    found = refusal({"api": {"url": "https://api.example.com"}}, api=False)

    assert "api.keySecret.name is missing: set it to the Secret that holds the API key" in found


def test_rights_are_the_derived_ones_for_the_whole_cluster() -> None:
    found = render()
    rules = named(found, "ClusterRole", "edge-edge-operator")["rules"]

    assert rules == [*access.watched(ALL), *access.cluster(ALL), *access.identity(), *access.definitions(ALL)]
    assert named(found, "Role", "edge-edge-operator-own")["rules"] == access.own(ALL)


def test_rights_are_roles_alone_for_chosen_namespaces() -> None:
    found = render({"watchNamespaces": ["one", "two"], "rbac": {"aggregate": False}, "crds": {"enabled": False}})
    roles = {
        (role["metadata"]["namespace"], role["metadata"]["name"]): role["rules"] for role in of_kind(found, "Role")
    }

    assert of_kind(found, "ClusterRole") == of_kind(found, "ClusterRoleBinding") == []
    assert roles == {
        ("one", "edge-edge-operator"): access.watched(ALL),
        ("two", "edge-edge-operator"): access.watched(ALL),
        ("tunnels", "edge-edge-operator-own"): access.own(ALL),
        ("kube-system", "edge-edge-operator-tunnels"): access.identity(),
    }
    assert env(named(found, "Deployment", "edge-edge-operator"))["EDGE_OPERATOR_NAMESPACE"] == "one two"


def test_sessions_are_mirrored_where_that_is_switched_on() -> None:
    off, on = (env(named(render(v), "Deployment", "edge-edge-operator")) for v in ({}, {"sessions": {"mirror": True}}))

    assert {"EDGE_OPERATOR_MIRROR_SESSIONS": "true", "EDGE_OPERATOR_SESSIONS_INTERVAL": "60s"}.items() <= on.items()
    assert not [name for name in off if "SESSIONS" in name]


def test_a_given_cluster_id_needs_no_look_into_kube_system() -> None:
    chosen, everywhere = render({"watchNamespaces": ["one"], "clusterID": "here"}), render({"clusterID": "here"})

    assert "kube-system" not in {manifest["metadata"].get("namespace") for manifest in chosen}
    rules = named(everywhere, "ClusterRole", "edge-edge-operator")["rules"]
    assert rules == [*access.watched(ALL), *access.cluster(ALL), *access.definitions(ALL)]
    assert env(named(chosen, "Deployment", "edge-edge-operator"))["EDGE_OPERATOR_CLUSTER_ID"] == "here"


def drained(**values: object) -> list[dict[str, Any]]:
    found = render({"drainOnUninstall": {"enabled": True, "timeout": "2m"}, **values})
    return [manifest for manifest in found if manifest["metadata"]["name"] == "edge-edge-operator-drain"]


def test_nothing_deletes_resources_unless_it_is_asked_for() -> None:
    assert [m for m in render() if m["metadata"]["name"].endswith("-drain")] == []
    operators = named(render({"drainOnUninstall": {"enabled": True}}), "ClusterRole", "edge-edge-operator")
    deleted = {
        r for rule in operators["rules"] if {"delete", "deletecollection"} & {*rule["verbs"]} for r in rule["resources"]
    }
    assert deleted == {"tunnelsessioncommands"}, "an order goes when the time that its spec gives is over"


def test_a_drain_is_a_job_before_the_uninstall_with_an_account_and_rights_of_its_own() -> None:
    found = {manifest["kind"]: manifest for manifest in drained()}

    assert set(found) == {"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Job"}
    hooks = {kind: manifest["metadata"]["annotations"] for kind, manifest in found.items()}
    assert {hook["helm.sh/hook"] for hook in hooks.values()} == {"pre-delete"}
    weights = {kind: int(hook["helm.sh/hook-weight"]) for kind, hook in hooks.items()}
    assert max(w for kind, w in weights.items() if kind != "Job") < weights["Job"]
    assert found["ClusterRole"]["rules"] == access.drain(ALL)
    pod = found["Job"]["spec"]["template"]["spec"]
    assert found["ClusterRoleBinding"]["subjects"][0]["name"] == pod["serviceAccountName"]
    assert pod["containers"][0]["args"] == ["drain", "--yes", "--timeout", "2m"]
    assert pod["restartPolicy"] == "Never"


def test_a_drain_of_chosen_namespaces_has_rights_in_these_alone() -> None:
    found = drained(watchNamespaces=["one", "two"])

    roles = [m["metadata"]["namespace"] for m in found if m["kind"] == "Role"]
    assert roles == [m["metadata"]["namespace"] for m in found if m["kind"] == "RoleBinding"] == ["one", "two"]
    assert not [m for m in found if m["kind"].startswith("ClusterRole")]
    (job,) = (m for m in found if m["kind"] == "Job")
    assert job["spec"]["template"]["spec"]["containers"][0]["env"] == [
        {"name": "EDGE_OPERATOR_NAMESPACE", "value": "one two"}
    ]


def test_every_binding_binds_the_service_account_to_a_role_that_is_there() -> None:
    found = render({"watchNamespaces": ["one"]}) + render()
    roles = {(role["kind"], role["metadata"]["name"]) for role in found}
    for binding in [*of_kind(found, "RoleBinding"), *of_kind(found, "ClusterRoleBinding")]:
        assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) in roles
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "edge-edge-operator", "namespace": "tunnels"}]


def test_the_built_in_roles_get_rights_on_the_resources() -> None:
    found = render()
    view = named(found, "ClusterRole", "edge-edge-operator-view")
    edit = named(found, "ClusterRole", "edge-edge-operator-edit")

    assert view["rules"] == access.view(ALL)
    assert edit["rules"] == access.edit(ALL)
    prefix = "rbac.authorization.k8s.io/aggregate-to-"
    assert {label for label in view["metadata"]["labels"] if prefix in label} >= {f"{prefix}view", f"{prefix}admin"}
    assert f"{prefix}view" not in edit["metadata"]["labels"]


def test_crds_are_those_of_the_repository_and_outlive_the_release() -> None:
    found = {crd["metadata"]["name"]: crd for crd in of_kind(render(), "CustomResourceDefinition")}

    assert found.keys() == {kind.crd for kind in ALL}
    for kind in ALL:
        (plain,) = documents.load((ROOT / "crds" / f"{kind.plural}.yaml").read_text())
        crd = found[kind.crd]
        assert crd["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
        assert crd == plain


def test_crds_can_be_left_to_somebody_else() -> None:
    assert of_kind(render({"crds": {"enabled": False}}), "CustomResourceDefinition") == []


@pytest.mark.parametrize("values", [EVERYTHING, {}], ids=["everything", "least"])
def test_pods_satisfy_the_restricted_standard(values: dict[str, Any]) -> None:
    for deployment in of_kind(render(values), "Deployment"):
        pod, only = deployment["spec"]["template"]["spec"], container(deployment)
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] == 65532
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert only["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {"name": "tmp", "mountPath": "/tmp"} in only["volumeMounts"]
        assert only["resources"]["limits"]["memory"]


def test_only_the_operator_gets_a_token_of_the_cluster() -> None:
    found = render({"referenceAPI": {"enabled": True}})
    tokens = {d["metadata"]["name"]: d["spec"]["template"]["spec"] for d in of_kind(found, "Deployment")}

    assert tokens["edge-edge-operator"]["automountServiceAccountToken"] is True
    assert tokens["edge-edge-operator-reference-api"]["automountServiceAccountToken"] is False


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ({}, "edge-operator:0.1.0"),
        ({"tag": "1.2"}, "edge-operator:1.2"),
        ({"registry": "registry.example.com", "repository": "a/b"}, "registry.example.com/a/b:0.1.0"),
        ({"tag": "1.2", "digest": f"sha256:{'a' * 64}"}, f"edge-operator@sha256:{'a' * 64}"),
    ],
)
def test_a_digest_beats_a_tag(image: dict[str, str], expected: str) -> None:
    assert container(named(render({"image": image}), "Deployment", "edge-edge-operator"))["image"] == expected


def test_the_key_comes_from_the_secret_as_a_file() -> None:
    values = {"api": {"url": "https://api.example.com", "keySecret": {"name": "account", "key": "token"}}}
    deployment = named(render(values), "Deployment", "edge-edge-operator")
    (volume,) = (v for v in deployment["spec"]["template"]["spec"]["volumes"] if v["name"] == "api-key")
    (mount,) = (m for m in container(deployment)["volumeMounts"] if m["name"] == "api-key")

    assert volume["secret"]["secretName"] == "account"
    assert volume["secret"]["items"] == [{"key": "token", "path": "api-key"}]
    assert env(deployment)["EDGE_OPERATOR_API_KEY_FILE"] == f"{mount['mountPath']}/api-key"


def test_the_reference_api_is_what_the_operator_talks_to() -> None:
    found = render({"api": {"profile": "ngrok"}, "referenceAPI": {"enabled": True, "apiKey": "k_1"}}, api=False)
    name = "edge-edge-operator-reference-api"
    operator, api = named(found, "Deployment", "edge-edge-operator"), named(found, "Deployment", name)
    service = named(found, "Service", name)

    assert env(operator)["EDGE_OPERATOR_API_URL"] == f"http://{name}.tunnels.svc:8081"
    assert service["spec"]["ports"][0]["port"] == 8081
    assert service["spec"]["selector"].items() <= api["spec"]["template"]["metadata"]["labels"].items()
    assert named(found, "Secret", name)["stringData"] == {"api-key": "k_1"}
    assert env(api)["EDGE_OPERATOR_SEED_API_KEY"] == {"secretKeyRef": {"name": name, "key": "api-key"}}
    assert env(api)["EDGE_OPERATOR_PROFILE"] == env(operator)["EDGE_OPERATOR_API_PROFILE"] == "ngrok"
    assert container(api)["args"] == ["serve-api"]


def test_selectors_tell_the_two_deployments_apart() -> None:
    operator, api = of_kind(render({"referenceAPI": {"enabled": True}}), "Deployment")

    for one, other in ((operator, api), (api, operator)):
        selector = one["spec"]["selector"]["matchLabels"].items()
        assert selector <= one["spec"]["template"]["metadata"]["labels"].items()
        assert not selector <= other["spec"]["template"]["metadata"]["labels"].items()


def test_probes_ask_the_operator_itself() -> None:
    only = container(named(render({"port": 9090}), "Deployment", "edge-edge-operator"))

    assert only["args"] == ["run"]
    assert only["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "http"}
    assert only["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}
    assert only["ports"] == [{"name": "http", "containerPort": 9090, "protocol": "TCP"}]
    assert {e["name"]: e.get("value") for e in only["env"]}["EDGE_OPERATOR_HEALTH_LISTEN"] == "0.0.0.0:9090"


@pytest.mark.parametrize(("command", "name"), [("run", ""), ("serve-api", "-reference-api")])
def test_every_variable_is_one_that_the_command_reads(command: str, name: str) -> None:
    values = {"referenceAPI": {"enabled": True}, "watchNamespaces": ["one"], "clusterID": "here"}
    deployment = named(render(values), "Deployment", f"edge-edge-operator{name}")
    known = {param.envvar for param in cli.commands[command].params if isinstance(param, click.Option)}

    assert env(deployment).keys() <= known
    assert container(deployment)["args"][0] == command


def test_extras_are_off_by_default() -> None:
    kinds = {manifest["kind"] for manifest in render()}

    assert not kinds & {"NetworkPolicy", "PodDisruptionBudget", "PodMonitor", "Service", "Secret"}


def test_extras_can_be_had() -> None:
    found = render(EVERYTHING, "--api-versions", "monitoring.coreos.com/v1")
    kinds = {manifest["kind"] for manifest in found}

    assert kinds >= {"NetworkPolicy", "PodDisruptionBudget", "PodMonitor", "Service", "PersistentVolumeClaim"}
    assert {m["metadata"]["name"] for m in of_kind(found, "ConfigMap")} == {"edge-extra", "tunnels-text"}


def test_a_pod_monitor_waits_for_a_cluster_that_knows_the_kind() -> None:
    assert of_kind(render({"metrics": {"podMonitor": {"enabled": True}}}), "PodMonitor") == []


def test_without_a_default_connection_no_key_is_asked_for() -> None:
    found = named(render({"api": {"enabled": False}}), "Deployment", "edge-edge-operator")

    assert not [name for name in env(found) if "API" in name]
    assert "api-key" not in {volume["name"] for volume in found["spec"]["template"]["spec"]["volumes"]}
    limited = named(render({"api": {**API["api"], "requestsPerMinute": 120}}), "Deployment", "edge-edge-operator")
    assert env(limited)["EDGE_OPERATOR_API_RATE"] == "120"
