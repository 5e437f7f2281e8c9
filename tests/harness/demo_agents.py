"""What the demo shows of agents: one comes online, is mirrored, is told to restart, and comes back as another session.

The agent is simulated by the reference API. It signs in with the token that the operator put into a Secret.
"""

import base64
from typing import Any

import httpx
import yaml

from edge_operator.declare import GROUP, VERSION
from edge_operator.derive import samples
from edge_operator.kinds import COMPANIONS
from harness.demo_screen import Screen
from harness.demo_world import World
from harness.operator import NAMESPACE as OPERATORS
from harness.operator import ROOT
from harness.processes import HarnessError, wait_until

COMMAND = COMPANIONS["TunnelSessionCommand"]
SAMPLE = ROOT / "docs" / "samples" / samples.file(COMMAND)
SECRET = "example-tunnelcredential"
COLUMNS = ("TunnelSession", "ID", "IP", "OS", "Version", "Region")
COMMAND_COLUMNS = ("TunnelSessionCommand", "Ready", "Reason", "Command", "Session", "Successor")
RECONNECT_SECONDS = 1.0


class Agents:
    """One simulated agent in a world that is up, and the order that it gets. `limit_seconds` is for each wait."""

    def __init__(self, world: World, screen: Screen, namespace: str, limit_seconds: float) -> None:
        self._world, self._screen, self._namespace, self._limit = world, screen, namespace, limit_seconds

    def show(self) -> None:
        """Bring an agent online and restart it.

        Raises:
            HarnessError: it was not mirrored, or the order did not end well, in time.
        """
        self._screen.title(f"A simulated agent comes online with the token in Secret {SECRET}, and is mirrored")
        session = self._online()
        self._screen.table(COLUMNS, [self._mirrored({session})])
        self._screen.title(f"kubectl apply -n {self._namespace} -f {SAMPLE.relative_to(ROOT)}, for this session")
        sample = yaml.safe_load(SAMPLE.read_text())
        sample["spec"]["sessionID"] = session
        self._world.cluster.apply(sample, "-n", self._namespace)
        resource = self._ended(sample["metadata"]["name"])
        self._screen.table(COMMAND_COLUMNS, [_order(resource)])
        after = resource["status"].get("successorID", "")
        if after == session or not after:
            raise HarnessError(f"the session that follows {session} is not recorded")
        self._screen.table(COLUMNS, [self._mirrored({after})])

    def leave(self) -> None:
        """Delete the order, and take the agent offline.

        Raises:
            HarnessError: its session stayed mirrored.
        """
        name = yaml.safe_load(SAMPLE.read_text())["metadata"]["name"]
        self._world.cluster.kubectl("delete", "-n", self._namespace, "--ignore-not-found", f"{COMMAND.plural}/{name}")
        for agent in self._control("GET", "agents")["agents"]:
            self._control("DELETE", f"agents/{agent['id']}")
        wait_until(lambda: not self._mirrors(), "the mirrored session to go", self._limit, 0.1)

    def _online(self) -> str:
        secret = self._world.cluster.request("GET", f"/api/v1/namespaces/{self._namespace}/secrets/{SECRET}")
        token = base64.b64decode(secret["data"]["token"]).decode()
        agent = {"token": token, "ip": "192.0.2.44", "reconnect_seconds": RECONNECT_SECONDS}
        return str(self._control("POST", "agents", agent)["id"])

    def _mirrored(self, sessions: set[str]) -> tuple[str, ...]:
        """The mirror's row, once these sessions and no others are mirrored."""

        def found() -> dict[str, Any] | None:
            seen = [one for one in self._mirrors() if "ip" in (one.get("status") or {})]
            return seen[0] if {one["status"]["id"] for one in seen} == sessions else None

        shown = wait_until(found, "the session to be mirrored", self._limit, 0.1, self._world.operator_log)
        status = shown["status"]
        return shown["metadata"]["name"], *(str(status[n]) for n in ("id", "ip", "os", "agentVersion", "region"))

    def _ended(self, name: str) -> dict[str, Any]:
        path = f"/apis/{GROUP}/{VERSION}/namespaces/{self._namespace}/{COMMAND.plural}/{name}"

        def found() -> dict[str, Any] | None:
            seen: dict[str, Any] = self._world.cluster.request("GET", path)
            return seen if "completionTime" in (seen.get("status") or {}) else None

        return wait_until(found, "the order to end", self._limit, 0.1, self._world.operator_log)

    def _mirrors(self) -> list[dict[str, Any]]:
        path = f"/apis/{GROUP}/{VERSION}/namespaces/{OPERATORS}/{COMPANIONS['TunnelSession'].plural}"
        items: list[dict[str, Any]] = self._world.cluster.request("GET", path)["items"]
        return items

    def _control(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        url = f"{self._world.api[0]}/_control/{path}"
        answer = httpx.request(method, url, json=body, timeout=10, trust_env=False)
        if not answer.is_success:
            raise HarnessError(f"{method} {url}: {answer.status_code} {answer.text}")
        return answer.json() if answer.content else None


def _order(resource: dict[str, Any]) -> tuple[str, ...]:
    status, spec = resource["status"], resource["spec"]
    ready = next(found for found in status["conditions"] if found["type"] == "Ready")
    told = (spec["command"], status.get("sessionID", ""), status.get("successorID", ""))
    return resource["metadata"]["name"], ready["status"], ready["reason"], *told
