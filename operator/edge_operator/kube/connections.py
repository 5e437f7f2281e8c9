"""Looks after connections: keeps each account's client as its resource says, and says in its status how it stands.

Accounts are known by the connection's key; which account a resource goes through is asked here, in each pass.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from edge_operator.api.caller import Attempt
from edge_operator.api.wire import Collection
from edge_operator.declare import Companion
from edge_operator.door import Door
from edge_operator.engine import standing
from edge_operator.engine.conditions import Verdict, difference
from edge_operator.engine.operations import Restart, Shut, Stalled, Waiting
from edge_operator.engine.reasons import Stalls, Waits
from edge_operator.engine.references import DEFAULT_CONNECTION, ConnectionKey
from edge_operator.kinds import KINDS
from edge_operator.kube import connection_bodies as bodies
from edge_operator.kube.account import QUIET_SECONDS, Account, barred
from edge_operator.kube.anchors import Anchors
from edge_operator.kube.index import Index, Key
from edge_operator.kube.key_secrets import KeySecrets
from edge_operator.kube.queue import Priority, WorkQueue
from edge_operator.kube.terms import Terms, terms
from edge_operator.ports import Resource, World
from edge_operator.remote import ManagementAPI

_log = logging.getLogger(__name__)

KIND_NAMES = ("Connection", "ClusterConnection")


class Connections:
    """An attendant of Connection and ClusterConnection. Give it `queue`, `anchors` and `digest_key` before events."""

    queue: WorkQueue[Key]
    anchors: Anchors
    digest_key: bytes

    def __init__(
        self,
        index: Index,
        world: World,
        *,
        namespace: str,
        clusterwide: bool,
        call_seconds: float,
        door: Callable[[], Door],
        observer: Callable[[Attempt], None],
        wake: Callable[[Iterable[Key]], None],
        tell: Callable[[Resource, str, str, bool], None],
    ) -> None:
        self._index, self._world, self._call_seconds = index, world, call_seconds
        self._namespace, self._clusterwide = namespace, clusterwide
        self._door, self._observer, self._wake, self._tell = door, observer, wake, tell
        self._accounts: dict[ConnectionKey, Account] = {}
        self._bodies: dict[ConnectionKey, Resource] = {}
        self._stale: set[ConnectionKey] = set()
        self._secrets = KeySecrets(self._bodies)
        self._said: Verdict | None = None
        self.flags: Terms | None = None
        """What the operator's own flags say: the default connection where no ClusterConnection is named so."""

    # What others ask ----------------------------------------------------------------------------

    def known(self, key: Key) -> bool:
        """Whether this connection was seen."""
        return key in self._bodies

    def remote(self, key: ConnectionKey, namespace: str) -> ManagementAPI:
        """The service as a resource of this namespace may ask it through a connection; with a shut door, if at all."""
        body = self._bodies.get(key)
        if body is None and not (key == DEFAULT_CONNECTION and self.flags is not None):
            return barred(self._world.monotonic, Shut(Waits.CONNECTION_NOT_READY, self._absent(key)))
        if body is not None and (why := bodies.admits(key, body, namespace)) is not None:
            return barred(self._world.monotonic, why)
        return self._account(key).remote

    def marked(self, key: ConnectionKey) -> bool:
        """Whether objects that are made through a connection name their owner."""
        spec = (self._bodies.get(key) or {}).get("spec") or {}
        return spec.get("ownerMarker") is not False

    def counts(self) -> Counter[tuple[str, str]]:
        """How many connections there are by kind and reason; the operator's own flags count as a kind."""
        found = Counter((key[0], bodies.reason(body)) for key, body in self._bodies.items())
        if self.flags is not None and DEFAULT_CONNECTION not in self._bodies:
            found["flags", str(self._said.reason) if self._said is not None else "Unknown"] += 1
        return found

    def accounts(self) -> Iterator[tuple[ConnectionKey, ManagementAPI]]:
        """Every account that may be asked now."""
        return iter([(key, a.remote) for key, a in self._accounts.items() if a.door.shut is None])

    def tokens(self) -> set[str]:
        """The API keys with which the service is called, or will be soon; for comparison alone."""
        return {*(f.api_key for f in (self.flags,) if f), *(t for a in self._accounts.values() for t in a.tokens())}

    def released(self, key: ConnectionKey) -> None:
        """A resource that went through a connection is gone; the connection may have waited for it."""
        if (self._bodies.get(key) or {"metadata": {}})["metadata"].get("deletionTimestamp"):
            self.queue.offer(key, priority=Priority.RETRY)

    # What is told -------------------------------------------------------------------------------

    def event(self, companion: Companion[Any], type_: str | None, resource: Resource) -> None:
        """An event of a watch."""
        meta = resource["metadata"]
        key = (companion.name, meta.get("namespace", ""), meta["name"])
        before = self._bodies.get(key)
        if type_ == "DELETED":
            if before is not None and before["metadata"]["uid"] == meta["uid"]:
                self._gone(key, before)
                self.queue.offer(key, priority=Priority.EDIT)
            return
        if not self._note(key, resource):
            return
        if bodies.was_wiped(before, resource) or before is None or bodies.asked(before) != bodies.asked(resource):
            self.queue.offer(key, priority=Priority.EDIT)

    def _note(self, key: ConnectionKey, body: Resource) -> bool:
        """Keep a body, if it is newer than the one that is known."""
        meta, before = body["metadata"], self._bodies.get(key)
        known = before["metadata"] if before is not None else {}
        if known.get("uid") == meta["uid"] and int(meta["resourceVersion"]) <= int(known["resourceVersion"]):
            return False
        self._bodies[key] = body
        if before is None or bodies.leads(before) != bodies.leads(body):
            self._shut(key, f"{bodies.shown(key)} was changed just now")
        return True

    def _gone(self, key: ConnectionKey, body: Resource) -> None:
        """A connection is no more."""
        del self._bodies[key]
        self._secrets.note(key, body)
        self._shut(key, self._absent(key))

    def _shut(self, key: ConnectionKey, why: str) -> None:
        """Nothing may be made any more in the account that a connection led to."""
        if key in self._accounts:
            self._accounts[key].shut(Shut(Waits.CONNECTION_NOT_READY, why))

    def secret(self, namespace: str, name: str) -> None:
        """A Secret changed, appeared or went."""
        for key, body in self._bodies.items():
            if (key[1] or self._namespace) == namespace and name in bodies.reads(body):
                self.queue.offer(key, priority=Priority.EDIT)

    def use_flags(self, flags: Terms) -> None:
        """What the operator's own flags say now."""
        if self.flags is not None and DEFAULT_CONNECTION in self._accounts and DEFAULT_CONNECTION not in self._bodies:
            self._accounts[DEFAULT_CONNECTION].shut(Shut(Waits.CONNECTION_NOT_READY, "the API key changed just now"))
        self.flags = flags
        self.queue.offer(DEFAULT_CONNECTION, priority=Priority.EDIT)

    # A pass -------------------------------------------------------------------------------------

    async def first(self, timeout_seconds: float) -> None:
        """Look at all of them at once, before resources are; what fails or takes longer is the queue's."""
        keys = {*self._bodies, DEFAULT_CONNECTION}
        for key in keys:
            self.queue.offer(key, priority=Priority.EDIT)
        looks = [asyncio.create_task(self.work(key), name=f"first look at {bodies.shown(key)}") for key in keys]
        try:
            await asyncio.wait(looks, timeout=timeout_seconds)
        finally:
            for look in looks:
                look.cancel()
        for error in await asyncio.gather(*looks, return_exceptions=True):
            if isinstance(error, Exception):
                _log.info("a connection is looked at again: %s", type(error).__name__)

    async def work(self, key: Key) -> None:
        """One pass of one connection."""
        try:
            body = await self._current(key)
            if body is not None:
                await self._attend(key, body)
            elif key == DEFAULT_CONNECTION and self.flags is not None:
                await self._attend_flags(self.flags)
            else:
                await self._forget(key)
        except BaseException:
            self._stale.add(key)
            raise

    async def _current(self, key: ConnectionKey) -> Resource | None:
        known = self._bodies.get(key)
        if key in self._stale and known is not None:
            live = await self.anchors.live(key)
            if live is not None:
                self._note(key, live)
            elif self._bodies.get(key) is known:
                self._gone(key, known)
        self._stale.discard(key)
        return self._bodies.get(key)

    async def _attend(self, key: ConnectionKey, body: Resource) -> None:
        """Hold on to what is needed, use the terms, and say how it stands; or let go of a connection that goes."""
        going, users = bool(body["metadata"].get("deletionTimestamp")), sorted(e.key for e in self._index.using(key))
        status = dict(body.get("status") or {})
        if going and not users:
            await self._let_go(key, body)
            return
        if not going:
            body = await self.anchors.hold(body)
            self._note(key, body)
        account, namespace, pause = self._account(key), key[1] or self._namespace, 0.0
        try:
            spec = bodies.parsed(body)
            if key[1] and not going:
                status["apiKeySecret"] = spec.api_key.secret_key_ref.name
                await self._secrets.hold(self.anchors, key, body, status["apiKeySecret"])
            found = await terms(spec, namespace, self.anchors.secrets, call_seconds=self._call_seconds)
            accepted = (body["metadata"].get("annotations") or {}).get(standing.ACCEPT)
            same = lambda: self._bodies.get(key) is body  # noqa: E731 - asked once, where it counts
            status["account"] = await self._admit(key, account, found, (status.get("account"), accepted), same)
            verdict = await account.standing(probe=bodies.wished(body, status), said=standing.outage(body))
        except (Waiting, Stalled) as why:
            verdict, pause = standing.refusal(why, standing.outage(body)), getattr(why, "after_seconds", None) or 0.0
            account.shut(standing.shut(bodies.shown(key), verdict))
        if going:
            verdict = standing.blocked(users, verdict)
        await self._report(key, body, status, verdict)
        self._come_back(key, account, verdict, pause)
        if body["metadata"].get("generation") != status.get("observedGeneration"):
            self._wake(self._index.waiting_for(key))

    async def _attend_flags(self, flags: Terms) -> None:
        """The same for the account that the flags name; what has to be remembered is on the operator's own Secret."""
        account, pause = self._account(DEFAULT_CONNECTION), 0.0
        same = lambda: self.flags is flags and DEFAULT_CONNECTION not in self._bodies  # noqa: E731 - as above
        try:
            trusted = await self.anchors.remembered()
            await self._admit(DEFAULT_CONNECTION, account, flags, trusted, same, eager=False)
            verdict = await account.standing(probe=False, said=self._said)
        except (Waiting, Stalled) as why:
            verdict, pause = standing.refusal(why, self._said), getattr(why, "after_seconds", None) or 0.0
            account.shut(standing.shut("the operator's own connection", verdict))
        if verdict != self._said:
            self._said, level = verdict, logging.INFO if verdict.ready else logging.WARNING
            _log.log(level, "the operator's own connection: %s: %s", verdict.reason, verdict.message)
        self._come_back(DEFAULT_CONNECTION, account, verdict, pause)

    async def _admit(
        self,
        key: ConnectionKey,
        account: Account,
        found: Terms,
        trusted: tuple[str | None, str | None],
        same: Callable[[], bool],
        *,
        eager: bool = True,
    ) -> str:
        """Use the terms, once it is sure that they lead to the account that holds what was made; their fingerprint.

        `trusted` are the fingerprints of the last account and of one that a person accepted; `same` says whether the
        terms are still those that count. `eager`: where nothing was made yet, see whether the service accepts the key.

        Raises:
            Restart: the connection changed meanwhile, or something was made through it.
            Stalled: none of the objects is there; nothing may be recreated, nothing let go.
            Waiting: the service does not answer, or refuses the key.
        """
        fingerprint = found.fingerprint(self.digest_key)
        if fingerprint not in trusted:
            ids = self._made(key)
            if (ids or eager) and not await account.holds(found, ids):
                raise Stalled(Stalls.ACCOUNT_MISMATCH, standing.mismatch([known for _, known in ids], fingerprint))
            if not ids and self._made(key):
                raise Restart
        if key == DEFAULT_CONNECTION and fingerprint != trusted[0]:
            await self.anchors.remember(fingerprint)
        if not same():
            raise Restart
        if fingerprint not in trusted:
            account.door.answered()
        was_shut = account.door.shut is not None
        account.use(found)
        if was_shut:
            self._wake(self._index.waiting_for(key))
        return fingerprint

    def _made(self, key: ConnectionKey) -> list[tuple[Collection[Any], frozenset[str]]]:
        """Ids of what was made through a connection, by collection."""
        found: dict[str, set[str]] = {}
        for entry in self._index.using(key):
            if entry.id is not None:
                found.setdefault(entry.key[0], set()).add(entry.id)
        return [(KINDS[kind].api, frozenset(ids)) for kind, ids in found.items()]

    async def _report(self, key: ConnectionKey, body: Resource, status: dict[str, Any], verdict: Verdict) -> None:
        """Write the status if it says something new."""
        before = body.get("status") or {}
        unsupported = self._account(key).door.unsupported
        after = standing.status(status, verdict, body["metadata"], unsupported, self._world.now())
        if patch := difference(before, after):
            self._note(key, await self.anchors.write_status(body, patch))
            if standing.is_news(before, verdict):
                self._tell(body, str(verdict.reason), verdict.message, not verdict.ready)

    def _come_back(self, key: ConnectionKey, account: Account, verdict: Verdict, pause: float) -> None:
        """Look again when it may be better, after a pause; what waits for an edit or a Secret is told of those."""
        if verdict.ready:
            self.queue.succeeded(key)
            return
        now, door = self._world.monotonic(), account.door
        if verdict.reason is Waits.RATE_LIMITED and door.shut is None:
            due = max(now + 1.0, door.paused_until + QUIET_SECONDS)
        elif door.refused is not None and door.shut is None:
            due = now + max(1.0, door.probe_in_seconds)
        else:
            due = now + max(pause, self.queue.failed(key))
        self.queue.offer(key, priority=Priority.RETRY, due=due)

    async def _let_go(self, key: ConnectionKey, body: Resource) -> None:
        """Nobody needs the connection: its Secret may go, and so may it."""
        self._secrets.note(key, body)
        await self._secrets.let_go(self.anchors, key)
        await self.anchors.release(body)
        await self._forget(key)

    async def _forget(self, key: ConnectionKey) -> None:
        """There is no such connection any more."""
        await self._secrets.let_go(self.anchors, key)
        if (account := self._accounts.pop(key, None)) is not None:
            account.retire(Shut(Waits.CONNECTION_NOT_READY, self._absent(key)))

    def _absent(self, key: ConnectionKey) -> str:
        return bodies.absent(key, clusterwide=self._clusterwide)

    def _account(self, key: ConnectionKey) -> Account:
        if key not in self._accounts:
            door = self._door()
            door.on_change = lambda: self.queue.offer(key, priority=Priority.EDIT)
            door.on_recovery = lambda: self._wake(self._index.waiting_for(key))
            shut = Shut(Waits.CONNECTION_NOT_READY, f"{bodies.shown(key)} was not looked at yet")
            self._accounts[key] = Account(door, shut, self._observer)
        return self._accounts[key]

    async def close(self) -> None:
        """Close every client."""
        await asyncio.gather(*(account.close() for account in self._accounts.values()))
