"""Looks after TunnelSessionCommands: takes each from its order to its end, and away when its time is over.

`engine.commands` decides. What is about to be sent is written to the status first, guarded by resourceVersion; what
became of it is remembered here until it is written too. There is no finalizer: nothing is left behind by an order, and
one that is deleted before it was sent is never sent.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from edge_operator.api import catalog
from edge_operator.declare import Body, Companion
from edge_operator.door import NotLeading, Stopping
from edge_operator.engine import commands, conditions, references
from edge_operator.engine.commands import Answer, End, Keep, Order, Pause, Remove, Seek, Send
from edge_operator.engine.conditions import Verdict
from edge_operator.engine.operations import Missing, Stalled, Unsupported, Waiting, shown
from edge_operator.engine.reasons import Events, Ready, Stalls, Waits
from edge_operator.engine.references import ConnectionKey
from edge_operator.engine.state import parsed, stamp
from edge_operator.kinds import COMPANIONS
from edge_operator.kube import errors, metrics, orders
from edge_operator.kube.cluster import Tell, path
from edge_operator.kube.index import Key
from edge_operator.kube.orders import KIND, Objects, Orders
from edge_operator.kube.queue import Priority, WorkQueue
from edge_operator.ports import Resource, World
from edge_operator.remote import AnswerLost, Listing

_log = logging.getLogger(__name__)

SESSION = COMPANIONS["TunnelSession"]
__all__ = ["KIND", "Commander"]

PATIENCE_SECONDS = 30.0
"""The longest that an order waits before it asks again whether it can go on: somebody waits for it."""
LOOK_SECONDS = 1.0
"""How long after a restart, and after each look, the next look for its session is; it grows with the time passed."""


class Agents(Protocol):
    """What is needed of the management API."""

    async def session(self, session_id: str) -> Body | None:
        """An online session, or None."""

    async def command(self, session_id: str, word: str) -> None:
        """Tell the agent; raises Waiting, Stalled and AnswerLost."""

    async def listing(self, collection: Any, since: float) -> Listing:
        """The collection by a list that began at or after `since`."""


@dataclass
class _Known:
    """What this process knows of one command. `status` and `version` are as last seen."""

    uid: str
    version: int = 0
    status: Mapping[str, Any] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    """How what this process sent has ended, by nonce."""
    accepted: dict[str, float] = field(default_factory=dict)
    """When each was accepted (monotonic seconds)."""

    def saw(self, resource: Resource) -> bool:
        """Take a resource in, unless a newer one is known; whether it is the first."""
        first, version = self.version == 0, int(resource["metadata"]["resourceVersion"])
        if version > self.version:
            self.version, self.status = version, resource.get("status") or {}
        return first


@dataclass
class _Pass:
    """One pass of one command."""

    key: Key
    known: _Known
    resource: Resource
    order: Order = field(default_factory=lambda: Order(""))

    @property
    def status(self) -> Mapping[str, Any]:
        return self.resource.get("status") or {}


class Commander:
    """The attendant of TunnelSessionCommand. `remote` is the account behind a connection, for a namespace."""

    def __init__(
        self,
        api: Objects,
        queue: WorkQueue[Key],
        world: World,
        *,
        namespace: str,
        remote: Callable[[ConnectionKey, str], Agents],
        may_write: Callable[[], None],
        tell: Tell,
    ) -> None:
        self._api, self._queue, self._world, self._namespace = api, queue, world, namespace
        self._orders, self._remote, self._tell = Orders(api, may_write), remote, tell
        self._all: dict[Key, _Known] = {}

    def event(self, companion: Companion[Any], type_: str | None, resource: Resource) -> None:
        """An event of a watch."""
        meta = resource["metadata"]
        key = (companion.name, meta["namespace"], meta["name"])
        if type_ == "DELETED":
            if (known := self._all.get(key)) is not None and known.uid == meta["uid"]:
                del self._all[key]
            return
        new = self._known(key, meta["uid"]).saw(resource)
        if ended := (resource.get("status") or {}).get("completionTime"):
            ttl = (resource.get("spec") or {}).get("ttlSecondsAfterFinished")
            if ttl is not None:
                self._later(key, ttl - (self._world.now() - parsed(ended)).total_seconds())
            return
        if new:  # a spec does not change, and what the operator writes itself is no news
            self._queue.offer(key, priority=Priority.EDIT if type_ else Priority.RETRY)

    def knows(self, key: Key) -> bool:
        """Whether a watch has told of it."""
        return key in self._all

    async def work(self, key: Key) -> None:
        """One pass of one command, by a live read."""
        resource = await self._orders.read(key)
        if resource is None:
            self._all.pop(key, None)
            return
        known = self._known(key, resource["metadata"]["uid"])
        known.saw(resource)
        if resource["metadata"].get("deletionTimestamp"):
            return
        line = _Pass(key, known, resource)
        try:
            line.order = orders.order(resource)
            await self._advance(line)
        except Waiting as why:
            await self._write(line, _said(line, why.reason, why.message, self._world.now()))
            after = self._queue.failed(key) if why.after_seconds is None else why.after_seconds
            self._later(key, min(after, PATIENCE_SECONDS))
        except Stalled as why:
            await self._end(line, End(why.reason, why.message))
        except (Unsupported, Missing) as why:
            await self._end(line, End(Stalls.OPERATION_UNSUPPORTED, f"the service does not offer this: {shown(why)}"))

    async def _advance(self, line: _Pass) -> None:
        """Go on as far as possible now."""
        while True:
            now = self._world.now()
            match commands.next_step(line.order, line.status, line.known.answers, now, self._settled(line)):
                case Send(word):
                    await self._send(line, word)
                case Pause(seconds, message):
                    await self._write(line, _said(line, Waits.PROGRESSING, message, now))
                    return self._later(line.key, seconds)
                case Seek(word):
                    return await self._seek(line, word)
                case End() as end:
                    return await self._end(line, end)
                case Keep(seconds):
                    return None if seconds is None else self._later(line.key, seconds)
                case Remove():
                    return await self._orders.remove(line.key, line.resource)

    async def _send(self, line: _Pass, word: str) -> None:
        """Record that it is about to be sent, send it, and remember what became of it."""
        facts, agents = await self._facts(line, word), self._agents(line)
        answers, nonce, now = line.known.answers, self._world.nonce(), self._world.now()
        text = f"{word.lower()} is being sent to the agent of {facts['sessionID']}"
        status = commands.marked(commands.answered(line.status, answers), word, nonce, now, **facts)
        answers[nonce] = commands.Unsent()  # what is true until the request begins, however this write ends
        await self._write(line, _said(line, Waits.PROGRESSING, text, now, status), unless_deleted=True)
        del answers[nonce]
        try:
            await agents.command(facts["sessionID"], word.lower())
        except (Waiting, NotLeading) as why:
            answers[nonce] = commands.Unsent()
            if isinstance(why, Stopping):  # no other process could tell that it was not sent
                text = f"the operator stops; {word.lower()} is sent after its next start"
                await self._write(line, _said(line, Waits.PROGRESSING, text, self._world.now()))
            raise
        except Stalled as why:
            answers[nonce] = commands.Refused(why.reason, why.message)
        except AnswerLost as why:
            answers[nonce] = commands.Lost(str(why))
        else:
            answers[nonce] = commands.Accepted(self._world.now())
            line.known.accepted[word] = self._world.monotonic()
        metrics.commanded(word, type(answers[nonce]).__name__.lower())

    async def _facts(self, line: _Pass, word: str) -> dict[str, Any]:
        """Which session it is and, before a restart, what the one that follows is recognised by."""
        id_ = line.status.get("sessionID") or await self._session_id(line.resource["spec"])
        agents = self._agents(line)
        session = await agents.session(id_)
        if session is None:
            raise Stalled(Stalls.SESSION_NOT_FOUND, f"the session {id_} is not online")
        if word != "Restart":
            return {"sessionID": id_}
        listing = await agents.listing(catalog.tunnel_sessions, self._world.monotonic())
        return {"sessionID": id_, "agent": commands.agent(session, [*listing.objects.values()])}

    async def _session_id(self, spec: Mapping[str, Any]) -> str:
        if id_ := spec.get("sessionID"):
            return str(id_)
        name = spec["sessionRef"]["name"]
        try:
            found = await self._api.get(path(SESSION, self._namespace, name))
        except errors.NotFound:
            text = f"spec.sessionRef.name: there is no TunnelSession {name} in namespace {self._namespace}"
            raise Stalled(Stalls.SESSION_NOT_FOUND, text) from None
        return str(found["spec"]["sessionID"])

    async def _seek(self, line: _Pass, word: str) -> None:
        """Look once for the session that follows; what was accepted is recorded before."""
        now = self._world.now()
        await self._write(line, _said(line, Waits.PROGRESSING, "the agent restarts; its next session is awaited", now))
        passed = self._since(line.known, word)
        end = None
        try:
            agents = self._agents(line)
            listing = await agents.listing(catalog.tunnel_sessions, self._world.monotonic())
            others = [k for k in self._all.values() if k is not line.known]
            end = commands.successor(line.status, [*listing.objects.values()], [k.status for k in others])
        except (Waiting, Stalled, Unsupported, Missing) as why:
            _log.info("%s: sessions cannot be listed now: %s", "/".join(line.key), why)
        if end is None and passed >= commands.SEEKING_SECONDS:
            end = commands.not_seen()
        if end is not None:
            await self._end(line, end)
        else:
            self._later(line.key, min(LOOK_SECONDS + passed / 4, 10.0))

    async def _end(self, line: _Pass, end: End) -> None:
        """Record the end, once."""
        if "completionTime" in line.status:
            return
        now = self._world.now()
        status = {**_said(line, end.reason, end.message, now), "completionTime": stamp(now)}
        await self._write(line, {**status, **({"successorID": end.successor} if end.successor else {})})
        failed = not isinstance(end.reason, Ready)
        self._tell(line.resource, Events.COMMAND_FAILED if failed else Events.COMMANDED, end.message, failed)
        _log.info("%s: %s: %s", "/".join(line.key), end.reason, end.message)
        self._queue.succeeded(line.key)
        if line.order.ttl_seconds is not None:
            self._later(line.key, line.order.ttl_seconds)

    async def _write(self, line: _Pass, status: Mapping[str, Any], *, unless_deleted: bool = False) -> None:
        line.resource = await self._orders.write(line.key, line.resource, status, unless_deleted=unless_deleted)
        line.known.saw(line.resource)

    def _agents(self, line: _Pass) -> Agents:
        """The account that a command is for."""
        namespace = line.key[1]
        return self._remote(references.connection(namespace, line.resource["spec"]), namespace)

    def _known(self, key: Key, uid: str) -> _Known:
        known = self._all.get(key)
        if known is None or known.uid != uid:
            known = self._all[key] = _Known(uid)
        return known

    def _settled(self, line: _Pass) -> float:
        """How long ago an update of the same session was accepted, by this command or another; endless without one."""
        session = line.status.get("sessionID") or line.resource["spec"].get("sessionID")
        same = [k for k in self._all.values() if k is line.known or (k.status.get("sessionID") == session and session)]
        return min((self._since(k, "Update") for k in same if _accepted(k, "Update")), default=float("inf"))

    def _since(self, known: _Known, word: str) -> float:
        """Seconds since a command was accepted. What another process recorded counts from the whole second after."""
        now = self._world.monotonic()
        if word not in known.accepted and (at := _accepted(known, word)) is not None:
            known.accepted[word] = now - max(0.0, (self._world.now() - at).total_seconds() - 1)
        return now - known.accepted.get(word, now)

    def _later(self, key: Key, seconds: float) -> None:
        self._queue.offer(key, priority=Priority.RETRY, due=self._world.monotonic() + max(0.0, seconds))


def _said(
    line: _Pass, reason: StrEnum, message: str, now: datetime, status: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The status with the conditions that say how it stands; without another, what is recorded and answered."""
    found = dict(commands.answered(line.status, line.known.answers) if status is None else status)
    generation = line.resource["metadata"]["generation"]
    before = line.status.get("conditions") or ()
    found["conditions"] = conditions.conditions(Verdict(reason, message), before, generation, now)
    return {**found, "observedGeneration": generation}


def _accepted(known: _Known, word: str) -> datetime | None:
    return commands.accepted_at(commands.answered(known.status, known.answers), word)
