"""`edge-operator plan` and `edge-operator import` as processes, on a real API server and a real account: reads only."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.running import SOON, Installation, Service, World
from edge_operator.declare import GROUP, VERSION
from edge_operator.derive import samples
from edge_operator.kinds import KINDS
from harness.audit import READS
from harness.cluster import Cluster
from harness.operator import command

CANARY = "canary_hK3vQ81xPz"
TUNNEL = "bkdtg_2yrt9ZkAqlNPxGdGEsGS0fYYjNj"
Body = dict[str, Any]


@dataclass
class Person:
    """Somebody at a command line, with a service account and an API key of their own."""

    kubeconfig: Path
    service: Service
    key_file: Path
    key_id: str

    def run(self, *words: str | Path, given: str = "") -> tuple[int, str, str]:
        """Exit code, standard output and standard error of a command."""
        done = subprocess.run(
            [*map(str, command(*words))], input=given, capture_output=True, text=True, timeout=60, check=False
        )
        for secret in (CANARY, self.key_file.read_text()):
            assert secret not in done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout, done.stderr

    def plan(self, *objects: Body | str, namespace: str = "default", **more: str) -> tuple[int, str, str]:
        """`plan -f -` with these objects."""
        texts = [o if isinstance(o, str) else yaml.safe_dump(o) for o in objects]
        words: list[str | Path] = [
            "plan",
            "-f",
            "-",
            "--kubeconfig",
            self.kubeconfig,
            "--namespace",
            namespace,
            *self._account(),
        ]
        words += [word for name, value in more.items() for word in (f"--{name.replace('_', '-')}", value)]
        return self.run(*words, given="\n---\n".join(texts))

    def import_(self, *words: str) -> tuple[int, str, str]:
        return self.run("import", *self._account(), *words)

    def calls(self) -> set[str]:
        """Methods that the service was called by with this key."""
        found = self.service.ask("GET", "/_control/requests")["requests"]
        return {entry["method"] for entry in found if entry["key_id"] == self.key_id}

    def _account(self) -> list[str | Path]:
        return ["--api-url", self.service.url, "--api-key-file", self.key_file]


@pytest.fixture(scope="module")
def planner(crds: Cluster) -> Iterator[Installation]:
    """A service account with the chart's rights that no operator acts as."""
    name = f"planner-{secrets.token_hex(4)}"
    crds.create_namespace(name)
    found = Installation(crds, name)
    yield found
    found.remove()
    crds.clear_namespace(name)


@pytest.fixture
def person(planner: Installation, service: Service, tmp_path: Path) -> Iterator[Person]:
    """Somebody who plans; afterwards nothing that they did was a write."""
    id_, token = service.new_key("somebody's")
    file = tmp_path / "api-key"
    file.write_text(token)
    mark = planner.cluster.audit_mark()
    found = Person(planner.kubeconfig, service, file, id_)
    yield found
    assert {e.verb for e in planner.cluster.audit_events(planner.user, mark)} <= READS
    assert found.calls() <= {"GET"}


def resource(kind: str, name: str, spec: Body, **metadata: Any) -> Body:
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


def about(text: str) -> dict[str, list[str]]:
    """Lines of a plan by kind and name."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.endswith("nothing was done."):
            found["end"] = [line]
        elif line.startswith(" "):
            found[list(found)[-1]].append(line.strip())
        elif line:
            kind, _, name = line.partition(" ")
            found[f"{kind}/{name.partition('/')[2]}"] = []
    return found


def test_a_plan_asks_the_account_of_each_resources_connection(
    world: World, person: Person, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What the same files say of connections and their Secrets counts as if it were applied."""
    with Service(tmp_path_factory.mktemp("other")) as other:
        other.start()
        spec = {"backends": [{"id": TUNNEL}]}
        held = other.ask("POST", "/backends/failover", {"backends": [TUNNEL], "description": "held elsewhere"})
        key = {"secretKeyRef": {"name": "account", "key": "api-key"}}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "account"}}
        adopted = {**spec, "externalID": held["id"], "deletionPolicy": "Retain", "description": "held elsewhere"}
        through = {"connectionRef": {"name": "main"}}
        manifests = [
            {**secret, "stringData": {"api-key": other.operator_key}},
            resource("Connection", "main", {"url": other.url, "apiKey": key}),
            resource("FailoverBackend", "there", {**adopted, **through}),
            resource("FailoverBackend", "here", adopted),
            resource("FailoverBackend", "nowhere", {**spec, "connectionRef": {"name": "absent"}}),
        ]
        code, out, _ = person.plan(*manifests, namespace=world.namespace)
        assert other.operator_key not in out
    assert code == 1
    told = about(out)
    assert told["FailoverBackend/there"] == ["nothing to do"]
    assert told["FailoverBackend/here"][0].startswith("would stall (RemoteMissing)")
    absent = "would wait (ConnectionNotReady): spec.connectionRef: there is no Connection 'absent'"
    assert told["FailoverBackend/nowhere"] == [absent]


def test_a_plan_tells_new_changed_same_waiting_and_stalled_apart(world: World, person: Person) -> None:
    backends = {"backends": [{"id": TUNNEL}]}
    world.make("FailoverBackend", "same", backends)
    world.make("FailoverBackend", "changed", backends)
    world.make("TunnelCredential", "rotated", {"acl": ["bind:a.example.com"]})
    for kind, name in [("FailoverBackend", "same"), ("FailoverBackend", "changed"), ("TunnelCredential", "rotated")]:
        world.ready(kind, name)
    before = {kind: world.service.objects(kind) for kind in ("FailoverBackend", "TunnelCredential", "TCPEdge")}
    asked, new = {"edge-operator.dev/rotate-requested-at": "now"}, {"kind": "FailoverBackend", "name": "new"}

    code, out, _ = person.plan(
        resource("FailoverBackend", "same", backends),
        resource("FailoverBackend", "changed", {**backends, "description": "other words"}),
        resource("TunnelCredential", "rotated", {"acl": ["bind:a.example.com"]}, annotations=asked),
        resource("FailoverBackend", "new", backends),
        resource("WeightedBackend", "above", {"backends": [{"ref": new, "weight": 7}]}),
        resource("TCPEdge", "waits", {"hostports": ["a:1"], "backend": {"ref": {**new, "name": "x"}}}),
        resource("TCPEdge", "stalls", {"hostports": ["a:1"], "backend": {"ref": {"id": "ipp_1"}}}),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "none-of-ours"}, "data": {}},
        {"apiVersion": "example.com/v1", "kind": "TCPEdge", "metadata": {"name": "somebody-else's"}},
        namespace=world.namespace,
    )

    assert code == 1
    told = about(out)
    assert told["FailoverBackend/same"] == ["nothing to do"]
    assert told["FailoverBackend/changed"][0].startswith("~ update bkdfo_")
    assert told["FailoverBackend/changed"][1:] == ['description: "other words"', "because: description"]
    assert told["TunnelCredential/rotated"][0] == "+ create at /credentials"
    old = world.get("TunnelCredential", "rotated")
    assert old is not None
    assert f"- delete {old['status']['id']}, afterwards" in told["TunnelCredential/rotated"]
    assert told["TunnelCredential/rotated"][-1] == "because: rotation was asked for"
    assert told["FailoverBackend/new"][0] == "+ create at /backends/failover"
    assert 'backends: {"(id of FailoverBackend/new)": 7}' in told["WeightedBackend/above"]
    assert told["TCPEdge/waits"][0].startswith("would wait (ReferenceNotReady): spec.backend.ref: there is no")
    assert told["TCPEdge/stalls"][0].startswith("would stall (InvalidReference): spec.backend.ref: 'ipp_1'")
    assert told["end"] == ["4 to change, 1 in sync, 2 that cannot go on; nothing was done."]
    assert "none-of-ours" not in out
    assert "somebody-else" not in out
    assert {kind: world.service.objects(kind) for kind in before} == before
    assert world.get("FailoverBackend", "new") is None


def test_every_sample_is_planned_at_once_and_no_secret_is_printed(person: Person, namespace: str) -> None:
    """References among new resources, and Secrets of the same file, count as if they were there."""
    objects = [document for kind in KINDS.values() for document in samples.manifests(kind)]
    values = [v for o in objects if o["kind"] == "Secret" for v in o["stringData"].values()]
    objects = [o for n, o in enumerate(objects) if o not in objects[:n]]

    code, out, _ = person.plan(*objects, namespace=namespace)

    assert code == 0, out
    assert out.count("+ create at ") == len(KINDS)
    assert [v for v in values if v in out or (v.splitlines()[1:2] and v.splitlines()[1] in out)] == []
    assert '"(from a Secret)"' in out
    assert out.endswith(f"{len(KINDS)} to change, 0 in sync, 0 that cannot go on; nothing was done.\n")


def test_values_of_secrets_in_the_cluster_are_never_printed(crds: Cluster, person: Person, namespace: str) -> None:
    secret = {"metadata": {"name": "api-key"}, "stringData": {"key": CANARY}}
    crds.request("POST", f"/api/v1/namespaces/{namespace}/secrets", secret)
    source = {"secretKeyRef": {"name": "api-key", "key": "key"}}
    spec = {"format": "json", "target": {"monitoring": {"apiKey": source, "service": CANARY[:6], "site": "eu"}}}

    code, out, _ = person.plan(resource("EventDestination", "new", spec), namespace=namespace)

    assert (code, "(from a Secret)" in out) == (0, True)


def test_what_is_paused_is_said_and_nothing_is_planned(world: World, person: Person) -> None:
    world.make("FailoverBackend", "held", {"backends": [{"id": TUNNEL}]})
    world.ready("FailoverBackend", "held")
    held = {"edge-operator.dev/paused": "true"}
    code, out, _ = person.plan(
        resource("FailoverBackend", "held", {"description": "x"}, annotations=held), namespace=world.namespace
    )
    assert (code, "is paused by annotation" in out) == (1, True)


def test_what_the_api_server_adds_to_a_resource_does_not_mislead(world: World, person: Person) -> None:
    """The output of `kubectl get -o yaml`: for what is there, nothing; elsewhere it would be made."""
    world.make("FailoverBackend", "there", {"backends": [{"id": TUNNEL}]})
    found = world.ready("FailoverBackend", "there")
    code, out, _ = person.plan({"apiVersion": "v1", "kind": "List", "items": [found]})
    assert (code, "nothing to do" in out) == (0, True)
    code, out, _ = person.plan({**found, "metadata": {**found["metadata"], "namespace": "default"}})
    assert (code, "+ create at /backends/failover" in out) == (0, True)


def test_a_time_without_quotes_is_a_text_as_for_kubectl(person: Person, namespace: str) -> None:
    text = f"""
apiVersion: {GROUP}/{VERSION}
kind: SSHUserCertificate
metadata: {{name: fixed}}
spec:
  authority: {{id: sshca_2yrt9ZkAqlNPxGdGEsGS0fYYjNj}}
  privateKey: {{algorithm: ed25519}}
  principals: [deploy]
  validUntil: 2099-01-02T03:04:05Z
"""
    code, out, _ = person.plan(text, namespace=namespace)
    assert code == 0, out
    assert '"2099-01-02T03:04:05Z"' in out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"data: [{CANARY}", "standard input: is not YAML: "),
        (f"a: b: {CANARY}", "at line 1"),
        ("- just\n- a list", "not a Kubernetes object"),
        (f"{{apiVersion: {GROUP}/{VERSION}, kind: TCPEdge, metadata: {{labels: {{}}}}}}", "has no metadata.name"),
        (f"{{apiVersion: {GROUP}/{VERSION}, kind: TCPEdge, metadata: {{name: 5}}}}", "has no metadata.name"),
        (f"{{apiVersion: v1, kind: Secret, metadata: {{name: s}}, data: {{a: '{CANARY}?'}}}}", "no base64"),
    ],
)
def test_a_file_that_is_no_manifest_is_said_in_one_line(person: Person, text: str, said: str) -> None:
    code, out, err = person.plan(text)
    assert (code, out) == (1, "")
    assert said in err
    assert err.count("\n") == 1


def test_a_file_that_is_absent_and_an_option_that_is_wrong(person: Person, tmp_path: Path) -> None:
    options: list[str | Path] = ["--api-url", person.service.url, "--api-key-file", person.key_file]
    code, _, err = person.run("plan", "-f", tmp_path / "none.yaml", *options)
    assert (code, "none.yaml: cannot be read" in err) == (1, True)
    assert person.run("plan", *options)[0] == 2


def test_a_folder_stands_for_its_manifests(person: Person, namespace: str, tmp_path: Path) -> None:
    for name in ("b.yaml", "a.yml", "c.json", "notes.txt"):
        made = resource("FailoverBackend", name.split(".", maxsplit=1)[0], {"backends": [{"id": TUNNEL}]})
        (tmp_path / name).write_text(yaml.safe_dump(made))
    code, out, _ = person.plan(namespace=namespace, filename=str(tmp_path))
    assert code == 0
    assert [line for line in out.splitlines() if line.startswith("FailoverBackend")] == [
        f"FailoverBackend {namespace}/{name}" for name in "abc"
    ]


# Import ------------------------------------------------------------------------------------------

ODD = ["1e3", "y", "0o14", "null", "2026-01-01", "0x1F", "two\nlines", "ends with a space ", "- dash", "#", "Zürich ✓"]
"""Texts that one reader or another of YAML takes for something else."""


def test_what_is_imported_is_applied_by_kubectl_and_ready_without_a_write(world: World, person: Person) -> None:
    service = world.service
    child = {"backends": [TUNNEL]}
    made = [service.ask("POST", "/backends/failover", {**child, "description": t, "metadata": t}) for t in ODD]
    made.append(service.ask("POST", "/credentials", {"acl": ["*"], "description": "everything"}))
    made.append(service.ask("POST", "/credentials", {"acl": ["bind:*.example.com", "bind:env=*"]}))
    edge = service.ask("POST", "/edges/https", {"hostports": [f"{world.namespace}.example.com:443"]})
    route = {"match_type": "path_prefix", "match": "/", "compression": {"enabled": True}}
    made += [edge, service.ask("POST", f"/edges/https/{edge['id']}/routes", route)]
    words = [word for one in made for word in ("--id", one["id"])]

    code, out, err = person.import_("--namespace", world.namespace, *words)

    assert (code, err) == (0, "")
    documents = list(yaml.safe_load_all(out))
    assert sorted(d["spec"]["externalID"] for d in documents) == sorted(one["id"] for one in made)
    mark = service.mark()
    world.cluster.kubectl("apply", "-f", "-", input=out)
    for document in documents:
        kind, name = document["kind"], document["metadata"]["name"]
        found = world.ready(kind, name, within=2 * SOON)
        assert found["spec"] == {**found["spec"], **document["spec"]}
        assert found["status"]["id"] == document["spec"]["externalID"]
    assert {call.split()[0] for call in service.calls(mark)} == {"GET"}

    code, again, _ = person.plan(out, namespace=world.namespace)
    assert code == 0
    assert f"0 to change, {len(made)} in sync, 0 that cannot go on" in again


def test_the_kinds_that_are_named_are_imported_and_no_others(person: Person, service: Service) -> None:
    one = service.ask("POST", "/backends/failover", {"backends": [TUNNEL], "description": "one"})
    other = service.ask("POST", "/backends/weighted", {"backends": {TUNNEL: 1}, "description": "other"})
    code, out, _ = person.import_("WeightedBackend")
    assert code == 0
    assert other["id"] in out
    assert one["id"] not in out
    assert {d["kind"] for d in yaml.safe_load_all(out)} == {"WeightedBackend"}
    code, out, err = person.import_("--id", other["id"], "--id", "bkdfo_none", "FailoverBackend", "WeightedBackend")
    assert (code, other["id"] in out, one["id"] in out) == (1, True, False)
    assert "bkdfo_none: not in the account" in err
    code, out, err = person.import_("Backends")
    assert (code, out, "WeightedBackend" in err) == (2, "", True)


def test_what_has_an_owner_is_a_comment(world: World, person: Person) -> None:
    world.make("FailoverBackend", "owned", {"backends": [{"id": TUNNEL}]})
    id_ = world.ready("FailoverBackend", "owned")["status"]["id"]
    code, out, _ = person.import_("--id", id_)
    assert (code, out) == (0, f"# {id_} has an owner marker already and is left out\n")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"backends": []}, "spec.backends: "),
        ({"backends": [TUNNEL], "metadata": "x" * 4000}, "spec.metadata: "),
    ],
)
def test_what_no_resource_can_say_is_a_comment(person: Person, body: Body, why: str) -> None:
    """What is printed can be applied as a whole; it would not adopt an object without changing it."""
    id_ = person.service.ask("POST", "/backends/failover", body)["id"]
    code, out, _ = person.import_("--id", id_)
    assert code == 0
    assert out.startswith(f"# {id_} is left out, because no resource can say what it holds: {why}")
    assert list(yaml.safe_load_all(out)) in ([], [None])


def test_a_key_that_the_service_refuses_is_said_in_one_line(person: Person, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text(CANARY)
    code, out, err = person.run("import", "--api-url", person.service.url, "--api-key-file", wrong)
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert "refuses the API key" in err
