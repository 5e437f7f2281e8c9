"""The whole line in one process: a cluster in memory, the real reference API, the real client, and a queue.

    async with Rig() as rig:
        rig.sample("TLSEdge")
        await rig.settle()
        assert rig.calls == ["POST /edges/tls 201"]

Time moves only when everybody waits. A restart forgets all that a process knows and keeps cluster and service.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import httpx

from doubles import wakes
from doubles.apiserver import ApiServer, Key, Object, copied
from doubles.cluster import Event, FakeCluster, points_at
from doubles.effects import Died, Effects, Unreachable
from doubles.hands import Hands
from doubles.wire import Exchanged, Wire
from doubles.world import FakeWorld
from edge_operator.api import retry
from edge_operator.api.client import Client
from edge_operator.door import Door, NotLeading, Stopping
from edge_operator.engine import references, state
from edge_operator.engine.operations import Restart
from edge_operator.engine.reasons import Waits
from edge_operator.kinds import KINDS
from edge_operator.ports import Memory, Outcome, Pass, Snapshot
from edge_operator.reconcile import reconcile
from edge_operator.remote import ManagementAPI
from edge_operator.server.app import App, create_app
from edge_operator.server.faults import Fault
from edge_operator.server.settings import ServerSettings
from edge_operator.server.store import Stored

API_KEY = "canary_api_key_6vT2mQ9xLwPz"
GRACE_SECONDS = 45.0
BASE = "https://api.test"
_PASSES = 2000
_WOKEN = {str(Waits.REFERENCE_NOT_READY), str(Waits.SECRET_NOT_READY)}
_BACKOFF_SECONDS = (1.0, 2.0, 5.0, 10.0, 30.0, *[60.0] * 60, 3600.0)


class NeverRests(AssertionError):
    """Something keeps being done again."""


@dataclass
class Process:
    """What one process knows, and loses with its life."""

    client: Client
    remote: ManagementAPI
    second: ManagementAPI | None = None
    """The service as asked through the connection `second`, where there is one."""
    memories: dict[str, Memory] = field(default_factory=dict)
    dirty: dict[Key, Snapshot | None] = field(default_factory=dict)
    timers: dict[Key, float] = field(default_factory=dict)
    failures: dict[Key, int] = field(default_factory=dict)


class Rig(Hands):
    """State of cluster and service, one process, and the hands of a user.

    With `accounts=2` there is another account; a resource whose connectionRef names `second` goes there.
    """

    def __init__(
        self,
        settings: ServerSettings | None = None,
        *,
        seed: int = 0,
        profile: str = "neutral",
        accounts: Literal[1, 2] = 1,
    ) -> None:
        self.world = FakeWorld(seed)
        self.effects = Effects()
        self.api = ApiServer(self.world.now)
        self.api.listeners.append(self._changed)
        self.cluster = FakeCluster(
            self.api,
            self.effects,
            secret_values=self.secret_values,
            wake=self._wake,
            overtaken=self._overtaken,
        )
        given = settings or ServerSettings(page_size=3, profile=profile)
        given = given.model_copy(update={"seed_api_key": API_KEY, "control": True})
        self.app: App = create_app(given, world=self.world.server())
        self.apps = [self.app, *(create_app(given, world=self.world.server()) for _ in range(accounts - 1))]
        self.wire = Wire(self.app, self.effects, self.world, self.cluster.journal)
        self.wires = [self.wire, *(Wire(a, self.effects, self.world, self.cluster.journal) for a in self.apps[1:])]
        self.profile = profile
        self.api_key = API_KEY
        self.outside = self._client(httpx.ASGITransport(app=self.app))
        self.outsides = [self.outside, *(self._client(httpx.ASGITransport(app=a)) for a in self.apps[1:])]
        self.outcomes: dict[Key, Outcome] = {}
        self.deaths = 0
        self.stale = 0
        """So many changes behind each pass is first made, as with a cache that is late."""
        self.stopped_after: int | None = None
        """How many effects there were when a process that was asked to stop had nothing more that it could do."""
        self.marked = True
        """Whether the connection has owner markers on."""
        self.given: frozenset[str] = frozenset()
        self.given = frozenset(self.everything_remote())
        """Ids of what was in the account before: the key that is used."""
        self.process = self._start()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._end()
        for outside, app in zip(self.outsides, self.apps, strict=True):
            await outside.close()
            app.close()

    # What is in the account, and what was done ---------------------------------------------------

    def events(self, about: str | None = None) -> list[Event]:
        return [e for e in self.cluster.events if about is None or e.about == about]

    def remote(self, kind: str) -> list[Object]:
        """The objects of the kind's collection in every account, oldest first; looked at without a call."""
        return [doc for account in range(len(self.apps)) for doc in self.held(kind, account)]

    def held(self, kind: str, account: int) -> list[Object]:
        """The objects of the kind's collection in one account."""
        with self.apps[account].store.read() as tx:
            found: list[Stored] = tx.page(KINDS[kind].api.name, None, 10_000)
        return [copied(item.doc) for item in reversed(found) if item.id not in self.given]

    def everything_remote(self) -> list[str]:
        """Ids of all objects of all kinds in the account."""
        return [doc["id"] for kind in KINDS for doc in self.remote(kind)]

    @property
    def calls(self) -> list[str]:
        """What the process asked the service: "POST /edges/tls 201"."""
        return [str(exchanged) for wire in self.wires for exchanged in wire.log]

    @property
    def sent(self) -> list[Exchanged]:
        return self.wire.log

    @property
    def writes(self) -> list[str]:
        """What the process wrote to the cluster, without the content."""
        return [said.partition(" {")[0] for said in self.cluster.writes]

    def forget(self) -> None:
        """Begin new logs."""
        for wire in self.wires:
            wire.log.clear()
        self.cluster.writes.clear()
        self.cluster.events.clear()
        self.cluster.journal.clear()

    def secret_values(self) -> Sequence[str]:
        """Every value that must show nowhere: of Secrets, private keys, the API key."""
        held = [
            value
            for (kind, _, _), secret in self.api.objects.items()
            if kind == "Secret"
            for key, value in secret["data"].items()
            if len(value) > 8 and not key.endswith((".pub", "id", "-publickey", "-certificate", ".crt"))
        ]
        return [*held, *(p.private for p in self.world.made if p.private), API_KEY]

    # The process --------------------------------------------------------------------------------

    def _client(self, transport: httpx.AsyncBaseTransport, gate: Any = None) -> Client:
        return Client(BASE, self.api_key, retry=retry.NEVER, transport=transport, gate=gate, profile=self.profile)

    def _start(self) -> Process:
        door = Door(self.world.monotonic)
        client = self._client(self.wire, door.gate)
        process = Process(client, ManagementAPI(client, door))
        for wire in self.wires[1:]:
            other = Door(self.world.monotonic)
            process.second = ManagementAPI(self._client(wire, other.gate), other)
            other.on_recovery = lambda: process.dirty.update(dict.fromkeys(list(process.timers)))
        process.dirty = dict.fromkeys(key for key in sorted(self.api.objects) if key[0] in KINDS)
        door.on_recovery = lambda: process.dirty.update(dict.fromkeys(list(process.timers)))
        return process

    async def restart(self) -> None:
        """A new process: nothing is known but what cluster and service hold."""
        await self._end()
        self.process = self._start()

    async def _overtaken(self) -> None:
        """A new process leads while a pass of this one is frozen, and goes on until nothing is to be done."""
        await self.restart()
        await self.settle()

    async def _end(self) -> None:
        await self.process.client.close()
        if self.process.second is not None:
            await self.process.second.client.close()

    def through(self, resource: Object) -> ManagementAPI:
        """The service as a resource asks it."""
        return (
            self.process.remote if self.account(resource) == 0 or self.process.second is None else self.process.second
        )

    def account(self, resource: Object) -> int:
        """The number of the account that a resource's connection leads to."""
        return 0 if self._connection(resource) == references.DEFAULT_CONNECTION else 1

    @staticmethod
    def _connection(resource: Object) -> references.ConnectionKey:
        written = references.connection(resource["metadata"]["namespace"], resource.get("spec") or {})
        return state.through(resource) or written

    def faults(self, *faults: Mapping[str, Any], account: int | None = None) -> None:
        """What the service does wrong from now on, in every account or in one; none: nothing."""
        for app in self.apps if account is None else [self.apps[account]]:
            app.faults.put([Fault.model_validate(fault) for fault in faults])

    async def settle(self, patience_seconds: float = 400.0) -> None:
        """Work until nothing is to be done and nothing falls due within that time. Deaths are followed by restarts."""
        limit = self.world.elapsed + patience_seconds
        for _ in range(_PASSES):
            try:
                if self.process.dirty:
                    await self.work()
                elif not self._wait(limit):
                    return
            except Died:
                self.deaths += 1
                await self.restart()
        raise NeverRests("\n".join([*self.effects.log[-20:], *map(str, self.outcomes.values())]))

    def _wait(self, limit: float) -> bool:
        """Move the clock to what falls due next; whether there is something before the limit."""
        timers = self.process.timers
        if not timers or min(timers.values()) > limit:
            return False
        self.world.elapsed = max(self.world.elapsed, min(timers.values()))
        for key in [k for k, at in timers.items() if at <= self.world.elapsed]:
            del timers[key]
            self.process.dirty.setdefault(key, None)
        return True

    async def sleep(self, seconds: float) -> None:
        """Let that much time pass, working whenever something is to be done."""
        until = self.world.elapsed + seconds
        await self.settle(seconds)
        self.world.elapsed = max(self.world.elapsed, until)
        await self.settle(0)

    async def work(self, key: Key | None = None) -> None:
        """One pass of the resource that waits longest, or of this one of those that wait."""
        key = key or next(iter(self.process.dirty))
        snapshot = self.process.dirty.pop(key)
        found = self.api.get(key)
        if found is None:
            self.process.timers.pop(key, None)
            return
        self.process.timers.pop(key, None)
        past = [o for o in self.api.past.get(key, ()) if o["metadata"]["uid"] == found["metadata"]["uid"]][: self.stale]
        if self.stale:
            self.cluster.behind = self.stale
            try:
                await self.reconcile(copied(past[-1] if past else found), snapshot)
            finally:
                self.cluster.behind = 0
            self.process.dirty.pop(key, None)
            self.process.timers.pop(key, None)
            if (again := self.api.get(key)) is None:
                return
            found = again
        await self.reconcile(found, snapshot)

    async def reconcile(self, resource: Object, snapshot: Snapshot | None = None) -> Outcome | None:
        """One pass with this version of a resource; None where it has to begin again."""
        meta = resource["metadata"]
        key: Key = (resource["kind"], meta["namespace"], meta["name"])
        kind = KINDS[key[0]]
        memory = self.process.memories.setdefault(meta["uid"], Memory())
        who = (self.cluster.id, key[1], key[2], meta["uid"])
        identity = state.Identity(*who, self.cluster.digest_key, self.marked, self._connection(resource))
        line = Pass(kind, identity, memory, self.through(resource), self.cluster, self.world, GRACE_SECONDS)
        try:
            outcome = await reconcile(line, resource, snapshot)
        except Restart:
            self.process.dirty.setdefault(key, None)
            return None
        except Unreachable:
            self._retry(key)
            return None
        except Stopping:
            self.stopped_after = self.stopped_after or len(self.effects.log)
            self._wake(key)
            raise Died("it was asked to stop") from None
        except NotLeading:
            self._wake(key)  # the watch of whoever leads now shows what was written late
            return None
        self.outcomes[key] = outcome
        self._follow(key, outcome)
        return outcome

    def _follow(self, key: Key, outcome: Outcome) -> None:
        now = self.world.elapsed
        if outcome.gone:
            return
        if outcome.again:
            self.process.dirty.setdefault(key, None)
        elif outcome.after_seconds is not None:
            self.process.timers[key] = now + outcome.after_seconds
        elif outcome.failed and outcome.reason in {str(w) for w in Waits} and outcome.reason not in _WOKEN:
            self._retry(key, outcome.at_most)
        else:
            self.process.failures.pop(key, None)
            if outcome.due is not None:
                self.process.timers[key] = now + max(0.0, (outcome.due - self.world.now()).total_seconds())
            if outcome.at_most is not None:
                self.process.timers[key] = now + outcome.at_most

    def _retry(self, key: Key, at_most: float | None = None) -> None:
        count = self.process.failures.get(key, 0)
        self.process.failures[key] = count + 1
        pause = _BACKOFF_SECONDS[min(count, len(_BACKOFF_SECONDS) - 1)]
        self.process.timers[key] = self.world.elapsed + (pause if at_most is None else min(pause, at_most))

    async def resync(self, *kinds: str) -> None:
        """One list for each kind, and a pass of its resources with what it showed."""
        for kind in kinds or KINDS:
            resources = self.api.of(kind)
            if not resources:
                continue
            began = self.world.elapsed
            for resource in resources:
                listing = await self.through(resource).listing(KINDS[kind].api, began)
                meta, known = resource["metadata"], (resource.get("status") or {}).get("id")
                key: Key = (kind, meta["namespace"], meta["name"])
                owned = listing.owned.get((self.cluster.id, meta["uid"]), ())
                self.process.dirty[key] = Snapshot(listing.began, listing.objects.get(known), owned) if known else None
        await self.settle()

    # Who is woken -------------------------------------------------------------------------------

    def _wake(self, key: Key) -> None:
        self.process.dirty.setdefault(key, None)

    def wake_all(self) -> None:
        """A pass of every resource, as an operator makes it now and then."""
        for key in sorted(self.api.objects):
            if key[0] in KINDS:
                self._wake(key)

    def _changed(self, key: Key, before: Object | None, after: Object | None, by: str) -> None:
        dirty = self.process.dirty
        if key[0] == "Secret":
            self._secret_changed(key, before, after, by)
            return
        if by != "operator" and after is not None:
            dirty.setdefault(key, None)
        if wakes.seen_by_others(before) != wakes.seen_by_others(after):
            for other, found in list(self.api.objects.items()):
                if other[0] in KINDS and key[:1] + key[2:] in points_at(found):
                    dirty.setdefault(other, None)
        for other in wakes.rivals(self.api, key, before, after):
            dirty.setdefault(other, None)
        left = set(points_at(before or {"kind": key[0]})) - set(points_at(after) if after else ())
        for kind, name in sorted(left):
            target = (kind, key[1], name)
            if target in self.api.objects and self.api.objects[target]["metadata"].get("deletionTimestamp"):
                dirty.setdefault(target, None)

    def _secret_changed(self, key: Key, before: Object | None, after: Object | None, by: str) -> None:
        owners = [o["uid"] for s in (before, after) if s for o in s["metadata"].get("ownerReferences") or ()]
        for other, found in list(self.api.objects.items()):
            if other[0] not in KINDS or by == "operator":
                continue
            if found["metadata"]["uid"] in owners or key[2] in wakes.secrets_of(found):
                self.process.dirty.setdefault(other, None)
