"""Orders to agents in one process: a cluster in memory, the real reference API with its simulated agents, a clock.

async with CommandRig() as rig:
    session = await rig.online()
    rig.order(sessionID=session, command="Restart")
    await rig.settle()
    assert rig.reason() == "Completed"
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Self

import httpx

from doubles import legal
from doubles.apiserver import ApiServer, Key, Object
from doubles.effects import Died, Effects
from doubles.kubeapi import KubeDouble
from doubles.wire import Wire
from doubles.world import FakeWorld
from edge_operator.api import retry
from edge_operator.api.client import Client
from edge_operator.door import Door, NotLeading
from edge_operator.engine.operations import KeyPair, KeyRequest, Restart, Shut
from edge_operator.engine.references import ConnectionKey
from edge_operator.kube import errors, orders
from edge_operator.kube.agents import Commander
from edge_operator.kube.queue import Priority
from edge_operator.remote import ManagementAPI
from edge_operator.server.app import create_app
from edge_operator.server.faults import Fault
from edge_operator.server.settings import ServerSettings

API_KEY = "canary_api_key_6vT2mQ9xLwPz"
BASE = "https://api.test"
NAMESPACE, OPERATORS = "default", "edge-system"
EXAMPLE = "example"


@dataclass
class Queue:
    """When each key is to be worked on; stands for the work queue."""

    world: FakeWorld
    due: dict[Key, float] = field(default_factory=dict)
    failures: dict[Key, int] = field(default_factory=dict)

    def offer(self, key: Key, *, priority: Priority, due: float | None = None) -> None:
        del priority
        self.due[key] = min(self.due.get(key, float("inf")), self.world.elapsed if due is None else due)

    def failed(self, key: Key) -> float:
        self.failures[key] = self.failures.get(key, 0) + 1
        return float(self.failures[key])

    def succeeded(self, key: Key) -> None:
        self.failures.pop(key, None)


class Line(Wire):
    """A wire on which so many of the next POSTs find no connection, and something may happen just before the next."""

    refused = 0
    meanwhile: Callable[[], Awaitable[Any]] | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST" and self.refused:
            self.refused -= 1
            raise httpx.ConnectError("nobody listens", request=request)
        if request.method == "POST" and self.meanwhile is not None:
            happens, self.meanwhile = self.meanwhile, None
            await happens()
        return await super().handle_async_request(request)


@dataclass
class Clock:
    """The operator's clocks: those of the world, the wall clock set to another time."""

    world: FakeWorld
    ahead: timedelta = timedelta()

    def now(self) -> datetime:
        return self.world.now() + self.ahead

    def monotonic(self) -> float:
        return self.world.monotonic()

    def nonce(self) -> str:
        return self.world.nonce()

    async def key_pair(self, request: KeyRequest) -> KeyPair:
        return await self.world.key_pair(request)


class CommandRig:
    """State of cluster and service, and one process."""

    def __init__(self, profile: str = "neutral") -> None:
        self.world, self.effects = FakeWorld(), Effects()
        self.clock = Clock(self.world)
        self.api = ApiServer(self.world.now)
        self.api.listeners.append(self._changed)
        self.kube = KubeDouble(self.api, self.effects)
        given = ServerSettings(page_size=3, profile=profile, seed_api_key=API_KEY, control=True)
        self.app = create_app(given, world=self.world.server())
        self.wire = Line(self.app, self.effects, self.world, [])
        self.outside = httpx.AsyncClient(transport=httpx.ASGITransport(app=self.app), base_url=BASE)
        self.profile = profile
        self.leads = True
        self.led_calls: list[bool] = []
        """What the door is told, one after the other, before `leads` counts again."""
        self.told: list[str] = []
        self.deaths = 0
        self.asked: list[tuple[ConnectionKey, str]] = []
        """The connections that accounts were asked for, and the namespaces that asked."""
        self.shut: Shut | None = None
        """Why no connection can be used."""
        self._start()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()
        await self.outside.aclose()
        self.app.close()

    def _start(self) -> None:
        self.queue = Queue(self.world)
        self.door = Door(self.world.monotonic, may_act=self._may_act)
        self.client = Client(
            BASE, API_KEY, retry=retry.NEVER, transport=self.wire, gate=self.door.gate, profile=self.profile
        )
        self.remote = ManagementAPI(self.client, self.door)
        self.commander = Commander(
            self.kube,
            self.queue,  # type: ignore[arg-type]  # a stand-in
            self.clock,
            namespace=OPERATORS,
            remote=self._account,
            may_write=self._may_write,
            tell=lambda _, reason, message, warning: self.told.append(f"{'!' * warning}{reason}: {message}"),
        )
        for resource in self.api.of(orders.KIND.name):
            self.commander.event(orders.KIND, None, resource)

    def _account(self, connection: ConnectionKey, namespace: str) -> ManagementAPI:
        self.asked.append((connection, namespace))
        return self.remote if self.shut is None else ManagementAPI(None, Door(self.world.monotonic, shut=self.shut))

    def _may_act(self, seconds: float) -> bool:
        del seconds
        return self.led_calls.pop(0) if self.led_calls else self.leads

    def _may_write(self) -> None:
        if not self.leads:
            raise NotLeading

    async def restart(self) -> None:
        """A new process: nothing is known but what cluster and service hold."""
        await self.client.close()
        self._start()

    def _changed(self, key: Key, before: Object | None, after: Object | None, by: str) -> None:
        if after is not None and (after.get("status") or {}).get("conditions"):
            legal.check(after, (before or {}).get("status") or {}, [API_KEY])
        if key[0] != orders.KIND.name:
            return
        type_ = "DELETED" if after is None else "MODIFIED" if before else "ADDED"
        self.commander.event(orders.KIND, type_, after or before or {})

    # Hands of a user, and of agents --------------------------------------------------------------

    async def online(self, **agent: Any) -> str:
        """An agent comes online; the id of its session."""
        answer = await self.outside.post("/_control/agents", json=agent)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    async def offline(self, session: str) -> None:
        assert (await self.outside.delete(f"/_control/agents/{session}")).status_code == 204

    async def credential(self) -> str:
        """The id of a new tunnel credential, which makes agents look alike."""
        headers = {"Authorization": f"Bearer {API_KEY}", "Service-Version": "2"}
        answer = await self.outside.post("/credentials", json={}, headers=headers)
        return str(answer.json()["id"])

    async def sessions(self) -> list[Object]:
        """Every session that is online."""
        return list((await self.outside.get("/_control/agents")).json()["agents"])

    def order(self, name: str = EXAMPLE, **spec: Any) -> None:
        self.api.apply((orders.KIND.name, NAMESPACE, name), {"spec": spec})

    def delete(self, name: str = EXAMPLE) -> None:
        self.api.delete((orders.KIND.name, NAMESPACE, name))

    def faults(self, *faults: Mapping[str, Any]) -> None:
        self.app.faults.put([Fault.model_validate(fault) for fault in faults])

    # What became of it ---------------------------------------------------------------------------

    def get(self, name: str = EXAMPLE) -> Object | None:
        return self.api.get((orders.KIND.name, NAMESPACE, name))

    def status(self, name: str = EXAMPLE) -> Object:
        found = self.get(name)
        assert found is not None
        status: Object = found.get("status") or {}
        return status

    def reason(self, name: str = EXAMPLE) -> str | None:
        return self._ready(name, "reason")

    def message(self, name: str = EXAMPLE) -> str:
        return self._ready(name, "message") or ""

    def _ready(self, name: str, member: str) -> str | None:
        conditions = self.status(name).get("conditions") or ()
        return next((c[member] for c in conditions if c["type"] == "Ready"), None)

    @property
    def posts(self) -> list[str]:
        """What reached the service for the agents: "restart 204"; 0 where the answer was cut off."""
        found = [e for e in self.app.journal.entries() if e["method"] == "POST" and "/tunnel_sessions/" in e["path"]]
        return [f"{e['path'].rpartition('/')[2]} {e['status'] or 0}" for e in found]

    # Time ----------------------------------------------------------------------------------------

    async def sleep(self, seconds: float) -> None:
        """Work on what falls due, and let so much time pass."""
        until = self.world.elapsed + seconds
        await self.settle(seconds)
        self.world.elapsed = max(self.world.elapsed, until)

    async def settle(self, patience_seconds: float = 400.0) -> None:
        """Work until nothing falls due within that time. Deaths are followed by restarts."""
        limit = self.world.elapsed + patience_seconds
        for _ in range(500):
            due = self.queue.due
            if not due or min(due.values()) > limit:
                return
            key = min(due, key=due.__getitem__)
            self.world.elapsed = max(self.world.elapsed, due.pop(key))
            try:
                await self._work(key)
            except Died:
                self.deaths += 1
                await self.restart()
        raise AssertionError(f"never rests: {json.dumps(self.api.of(orders.KIND.name), indent=1)}")

    async def _work(self, key: Key) -> None:
        try:
            await self.commander.work(key)
        except Restart:
            self.queue.offer(key, priority=Priority.EDIT)
        except NotLeading:
            self.queue.offer(key, priority=Priority.RETRY, due=self.world.elapsed + 1)
        except errors.KubeError:
            self.queue.offer(key, priority=Priority.RETRY, due=self.world.elapsed + self.queue.failed(key))
