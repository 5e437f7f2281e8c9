"""The operator and the reference API as processes of their own, the operator under exactly the chart's rights.

`Service` is the reference API with its switches, `Installation` a release's service account with the roles that the
real helm renders, `Operator` one replica. Waiting times are short by flags; nothing in the operator knows of tests.
"""

from __future__ import annotations

import base64
import json
import re
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx

from chart.chart import render
from doubles import legal
from edge_operator.api import catalog, profiles
from edge_operator.declare import GROUP, VERSION, Kind
from edge_operator.engine import marker
from edge_operator.kinds import DECLARED, KINDS
from harness.audit import AuditEvent
from harness.cluster import MERGE_PATCH, Cluster, service_account_user
from harness.operator import RIGHTS, command, environment
from harness.processes import HarnessError, Process, free_port, wait_until

ADMIN_KEY = "canary-admin-key-5f3a9b"
SOON = 20.0
"""Seconds in which anything here happens, on a busy machine too."""
Body = dict[str, Any]

QUICK: Mapping[str, str] = {
    "grace": "1s",
    "resync": "24h",
    "backoff": "100ms",
    "backoff-limit": "400ms",
    "call-timeout": "2s",
    "lease": "6s",
    "lease-renew": "4s",
    "lease-retry": "500ms",
    "log-level": "debug",
}
"""Flags that make waits short. Only what a test is about may differ."""


class Service:
    """The reference API as a process, on a port and with a file that it keeps when it is started again."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.port = folder, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log, self.request_log = folder / "service.log", folder / "requests.jsonl"
        self.process: Process | None = None
        self.operator_key, self.key_id = "", ""
        headers = {"Authorization": f"Bearer {ADMIN_KEY}", profiles.load("neutral").version_header: "2"}
        self.http = httpx.Client(base_url=self.url, headers=headers, trust_env=False)

    def start(self) -> None:
        """Start it, and return when it answers."""
        options = ["--listen", f"127.0.0.1:{self.port}", "--control", "--page-size", "3"]
        files: list[str | Path] = ["--database", self.folder / "service.sqlite", "--request-log", self.request_log]
        # The key is in the environment, not in an argument, where anybody on the machine could read it.
        env = environment(EDGE_OPERATOR_SEED_API_KEY=ADMIN_KEY)
        self.process = Process("service", command("serve-api", *options, *files), self.log, env=env)
        wait_until(self._ready, "the reference API", SOON, 0.02, self.text)
        if not self.key_id:
            self.key_id, self.operator_key = self.new_key("the operator's")

    def _ready(self) -> bool:
        try:
            return self.http.get("/_control/faults").is_success
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        """End it at once; what it answered is in its file."""
        if self.process is not None:
            self.process.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End it for good."""
        self.kill()
        self.http.close()

    def text(self) -> str:
        """What it printed."""
        return self.log.read_text() if self.log.exists() else ""

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Make a call as the account's admin; its JSON."""
        answer = self.http.request(method, path, **({} if body is None else {"json": body}))
        if not answer.is_success:
            raise HarnessError(f"{method} {path}: {answer.status_code} {answer.text}")
        return answer.json() if answer.content else None

    def faults(self, *faults: Body) -> None:
        """Replace all faults."""
        self.ask("PUT", "/_control/faults", {"faults": list(faults)})

    def mark(self) -> int:
        """The number of the newest request in the log."""
        return max((entry["number"] for entry in self.journal()), default=0)

    def calls(self, since: int = 0) -> list[str]:
        """What the operator asked since a mark: ["POST /edges/tls 201"]; a status of 0 for no answer yet."""
        return [
            f"{entry['method']} {entry['path']} {entry['status'] or 0}"
            for entry in self.journal()
            if entry["number"] > since and entry["key_id"] == self.key_id
        ]

    def journal(self) -> list[Body]:
        """Every request that it received, those under way with the status None."""
        found: list[Body] = self.ask("GET", "/_control/requests")["requests"]
        return found

    def new_key(self, description: str) -> tuple[str, str]:
        """Id and token of a further API key."""
        made = self.ask("POST", "/api_keys", {"description": description})
        return made["id"], made["token"]

    def accepts(self, token: str) -> bool:
        """Whether the service takes this token for an API key."""
        return self.http.get("/api_keys", headers={"Authorization": f"Bearer {token}"}).is_success

    def objects(self, kind: Kind[Any] | str) -> list[Body]:
        """Every object of a kind in the account."""
        kind = KINDS[kind] if isinstance(kind, str) else kind
        if kind.api is catalog.https_routes:
            return [route for edge in self.objects("HTTPSEdge") for route in edge.get("routes") or ()]
        found: list[Body] = []
        at: str | None = kind.api.path
        while at:
            page = self.ask("GET", at)
            found += page[kind.api.items]
            at = page["next_page_uri"]
        return found

    def owned(self, resource: Body) -> list[Body]:
        """The objects that carry this resource's marker."""
        uid = resource["metadata"]["uid"]
        return [o for o in self.objects(resource["kind"]) if (who := _owner(o)) is not None and who.uid == uid]

    def address(self, kind: Kind[Any], answer: Body) -> str:
        """The path of an object."""
        base = kind.api.path
        if kind.api is catalog.https_routes:
            base = base.format(edge_id=answer["edge_id"])
        return f"{base}/{answer['id']}"


def _owner(answer: Body) -> marker.Owner | None:
    return marker.split(str(answer.get("metadata") or ""))[1]


class Installation:
    """The service account of a release, and the roles that the chart gives it: one for tests to run the operator as."""

    def __init__(self, cluster: Cluster, namespace: str, *, watch: Sequence[str] = (), grant: bool = True) -> None:
        self.cluster, self.namespace, self.watch = cluster, namespace, tuple(watch)
        given: Body = {"watchNamespaces": list(watch), "fullnameOverride": f"edge-{namespace}"}
        # Without CRDs and aggregated roles: those are the whole cluster's, not this account's rights.
        given |= {"crds": {"enabled": False}, "rbac": {"aggregate": False}}
        found = [m for m in render(given, "--namespace", namespace) if m["kind"] in RIGHTS]
        (account,) = (m["metadata"]["name"] for m in found if m["kind"] == "ServiceAccount")
        self.manifests: list[Body] = found
        cluster.apply(_list(found if grant else [m for m in found if m["kind"] == "ServiceAccount"]))
        self.user = service_account_user(namespace, account)
        self.kubeconfig = cluster.service_account_kubeconfig(namespace, account)

    def grant(self) -> None:
        """Give the account its rights."""
        self.cluster.apply(_list(self.manifests))

    def remove(self) -> None:
        """Take the rights back."""
        self.cluster.kubectl("delete", "--ignore-not-found", "--wait=false", "-f", "-", input=_list(self.manifests))


def crds_folder() -> Path:
    """Where the CRDs are."""
    return Path(__file__).parents[2] / "crds"


def _list(items: Sequence[Body]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)})


class Operator:
    """One replica as a process. Further flags come by name: `resync="1s"`, or `mirror_sessions=""` without a value."""

    def __init__(
        self,
        installation: Installation,
        url: str,
        key_file: Path,
        log: Path,
        *,
        kubeconfig: Path | None = None,
        **flags: str,
    ) -> None:
        self.installation, self.key_file, self.log, self.health = installation, key_file, log, free_port()
        given = {
            "kubeconfig": str(kubeconfig or installation.kubeconfig),
            **({"api-url": url, "api-key-file": str(key_file)} if url else {}),
            "operator-namespace": installation.namespace,
            "health-listen": f"127.0.0.1:{self.health}",
            **QUICK,
            **{name.replace("_", "-"): value for name, value in flags.items()},
        }
        spaces = [word for name in installation.watch for word in ("--namespace", name)]
        words = [word for name, value in given.items() for word in (f"--{name}", value) if word]
        self._command = command("run", *spaces, *words)
        self._begins = 0
        self.process: Process | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None:
            self.process.stop()

    def start(self) -> Self:
        """Start it and go on at once."""
        self._begins = self.log.stat().st_size if self.log.exists() else 0
        self.process = Process("operator", self._command, self.log, env=environment())
        return self

    @property
    def running(self) -> Process:
        """The process."""
        assert self.process is not None
        return self.process

    def lead(self) -> Self:
        """Start it if need be, and wait until it leads and knows all that there is."""
        if self.process is None:
            self.start()
        self.says("work begins")
        return self

    def says(self, *texts: str, within: float = SOON) -> None:
        """Wait until its log has these texts."""

        def said() -> bool:
            if not self.running.running:
                raise HarnessError(f"the operator ended with {self.running.returncode}:\n{self.text()}")
            text = self.text()
            return all(one in text for one in texts)

        wait_until(said, f"the operator to say {texts}", within, 0.02, self.text)

    def text(self) -> str:
        """What it logged since it was started."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(self._begins)
            return log.read().decode()

    def kill(self) -> None:
        """kill -9."""
        self.running.signal(signal.SIGKILL)
        self.running.wait(SOON)

    def stop(self) -> tuple[int | None, float]:
        """SIGTERM; the exit code and the seconds that it took."""
        began = time.monotonic()
        self.running.signal(signal.SIGTERM)
        code = self.running.wait(SOON)
        seconds = time.monotonic() - began
        return code, seconds

    def metrics(self) -> str:
        """Its metrics."""
        # Without authorities, whose reading would take longest: it is plain HTTP.
        with httpx.Client(trust_env=False, verify=False) as http:  # noqa: S501
            return http.get(f"http://127.0.0.1:{self.health}/metrics").raise_for_status().text

    def rest(self) -> None:
        """Wait until it has nothing more to do at present."""
        quiet = 0
        while quiet < 3:
            busy = re.findall(
                r"^edge_operator_queue_(?:ready|running)(?:\{[^}]*\})? (\S+)$", self.metrics(), re.MULTILINE
            )
            assert busy, "the metrics of the queue are gone"
            quiet = 0 if any(float(number) for number in busy) else quiet + 1
            time.sleep(0.05)


@dataclass
class World:
    """A namespace with resources, and the service that holds their objects."""

    cluster: Cluster
    service: Service
    namespace: str

    def path(self, kind: str, name: str = "") -> str:
        """The address of resources of a kind, or of one."""
        declared = DECLARED[kind]
        inside = f"namespaces/{self.namespace}/" if declared.namespaced else ""
        base = f"/apis/{GROUP}/{VERSION}/{inside}{declared.plural}"
        return f"{base}/{name}" if name else base

    def make(self, kind: str, name: str, spec: Mapping[str, Any], **metadata: Any) -> Body:
        """Create a resource."""
        body = {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": kind,
            "metadata": {"name": name, **metadata},
            "spec": dict(spec),
        }
        made: Body = self.cluster.request("POST", self.path(kind), body, fieldValidation="Strict")
        return made

    def apply(self, manifests: Sequence[Body]) -> None:
        """Apply all of them in one command."""
        self.cluster.kubectl("apply", "--namespace", self.namespace, "-f", "-", input=_list(manifests))

    def change(self, kind: str, name: str, patch: Mapping[str, Any]) -> Body:
        """Merge a change into a resource."""
        found: Body = self.cluster.request("PATCH", self.path(kind, name), patch, content_type=MERGE_PATCH)
        return found

    def change_spec(self, kind: str, name: str, spec: Mapping[str, Any]) -> Body:
        """Merge a change into a resource's spec."""
        return self.change(kind, name, {"spec": dict(spec)})

    def get(self, kind: str, name: str) -> Body | None:
        """A resource as it is, or None; its status is held to the rules that hold for every status."""
        found: Body | None = self.cluster.get(self.path(kind, name))
        if found is not None and (found.get("status") or {}).get("conditions"):
            legal.check(found, {})
        return found

    def delete(self, kind: str, name: str) -> None:
        """Delete a resource; do not wait."""
        self.cluster.request("DELETE", self.path(kind, name))

    def gone(self, kind: str, name: str, within: float = SOON) -> None:
        """Wait until a resource is gone."""
        wait_until(
            lambda: self.get(kind, name) is None, f"{kind}/{name} to go", within, 0.05, lambda: self._story(kind, name)
        )

    def until(self, kind: str, name: str, reason: str, within: float = SOON) -> Body:
        """The resource once it says this reason of its newest generation."""
        return self._when(kind, name, lambda r: says(r) == reason, reason, within)

    def ready(self, kind: str, name: str, within: float = SOON) -> Body:
        """The resource once its newest generation is in sync."""
        return self.until(kind, name, "Available", within)

    def _when(self, kind: str, name: str, question: Callable[[Body], bool], what: str, within: float) -> Body:
        def answer() -> Body | None:
            found = self.get(kind, name)
            return found if found is not None and question(found) else None

        return wait_until(answer, f"{kind}/{name}: {what}", within, 0.05, lambda: self._story(kind, name))

    def _story(self, kind: str, name: str) -> str:
        return json.dumps(self.get(kind, name), indent=1)

    def left(self) -> list[str]:
        """Ids of all objects in the account that carry a marker of this namespace."""
        found = [o for kind in KINDS.values() for o in self.service.objects(kind)]
        return [o["id"] for o in found if (who := _owner(o)) is not None and who.place.startswith(f"{self.namespace}/")]

    def secret(self, name: str, type: str = "Opaque", **values: str) -> None:  # noqa: A002  # its name in a Secret
        """Create or replace a Secret."""
        body = {"apiVersion": "v1", "kind": "Secret", "type": type, "metadata": {"name": name}, "stringData": values}
        self.cluster.apply(body, "--namespace", self.namespace, server_side=True)

    def data(self, name: str) -> dict[str, str] | None:
        """The values of a Secret, or None."""
        found = self.cluster.get(f"/api/v1/namespaces/{self.namespace}/secrets/{name}")
        return (
            None if found is None else {k: base64.b64decode(v).decode() for k, v in (found.get("data") or {}).items()}
        )

    def events(self, name: str) -> list[str]:
        """What events say of a resource: ["Created: created bkdfo_1"]."""
        items = self.cluster.request("GET", f"/api/v1/namespaces/{self.namespace}/events")["items"]
        return [f"{e['reason']}: {e['message']}" for e in items if e["involvedObject"]["name"] == name]


def says(resource: Body) -> str | None:
    """The reason of the condition Ready, if it is about the newest generation."""
    status = resource.get("status") or {}
    if status.get("observedGeneration") != resource["metadata"]["generation"]:
        return None
    return next((c["reason"] for c in status.get("conditions") or () if c["type"] == "Ready"), None)


def message(resource: Body) -> str:
    """The message of the condition Ready."""
    return next(str(c["message"]) for c in resource["status"]["conditions"] if c["type"] == "Ready")


def mine(events: Sequence[AuditEvent]) -> list[AuditEvent]:
    """Without Events and Leases, which counts leave out."""
    return [event for event in events if not event.housekeeping]


def clear(world: World, within: float = SOON) -> None:
    """Delete every resource of the namespace as a user would, and wait until each is gone."""

    def left() -> list[str]:
        pages = (world.cluster.request("GET", world.path(kind)) for kind in KINDS)
        return [f"{page['kind']} {item['metadata']['name']}" for page in pages for item in page["items"]]

    world.service.faults()
    for kind in KINDS:
        world.cluster.request("DELETE", world.path(kind))
    wait_until(lambda: not left(), "all resources to go", within, 0.05, lambda: str(left()))
