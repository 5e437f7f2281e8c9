"""Runs one operation with the client, and says what each answer of the service means to the line.

A `Connection` is the door of one account: how many calls at a time, pauses that the service asked for, a key that it
refuses, and whether this replica may act at all. `Lists` are whole collections, read once for everybody who asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from edge_operator.api import catalog, errors
from edge_operator.api.client import Client
from edge_operator.api.wire import Collection
from edge_operator.declare import Body, Kind
from edge_operator.engine import marker
from edge_operator.engine.operations import Missing, Path, Stalled, Unsupported, Waiting, shown
from edge_operator.engine.reasons import Stalls, Waits
from edge_operator.ports import Owned

A = TypeVar("A")

_KEY_ACCEPTED = frozenset({400, 404, 405, 409, 422})
"""Refusals that come after the key was looked at."""


class NotLeading(Exception):
    """This replica does not lead, or would not for long enough; nothing was sent."""


@dataclass
class Connection:
    """The door of one account. All times are monotonic seconds.

    `may_act(seconds)` says whether this replica leads for at least that long.
    """

    monotonic: Callable[[], float]
    may_act: Callable[[float], bool] = lambda _: True
    call_seconds: float = 30.0
    concurrency: int = 16
    probe_seconds: float = 5.0
    probe_limit_seconds: float = 300.0
    default_pause_seconds: float = 5.0
    paused_until: float = 0.0
    refused: str | None = None
    """Why the key is refused, while it is."""
    _probe_at: float = 0.0
    _probe_wait: float = 0.0
    on_recovery: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.slots = asyncio.Semaphore(self.concurrency)

    async def gate(self, method: str, path: str) -> None:
        """Let an attempt through, or say why not. Awaited before each attempt.

        Raises:
            NotLeading: this replica may not act.
            Waiting: the service asked for a pause, or refuses the key and the next probe is not due.
        """
        del path
        if method != "GET" and not self.may_act(self.call_seconds):
            raise NotLeading
        now = self.monotonic()
        if now < self.paused_until:
            raise Waiting(Waits.RATE_LIMITED, "the service asked for a pause", after_seconds=self.paused_until - now)
        if self.refused is not None:
            if now < self._probe_at:
                raise Waiting(Waits.CONNECTION_NOT_READY, self.refused, after_seconds=self._probe_at - now)
            self._probe_at = now + self._probe_wait  # this attempt is the one probe

    def pause(self, seconds: float | None) -> float:
        """Hold all calls back, as a 429 asked; the pause in seconds."""
        wait = self.default_pause_seconds if seconds is None else max(seconds, 0.1)
        self.paused_until = max(self.paused_until, self.monotonic() + wait)
        return wait

    def refuse(self, why: str) -> float:
        """The key is not accepted; seconds until the next probe."""
        self._probe_wait = min(max(self._probe_wait * 2, self.probe_seconds), self.probe_limit_seconds)
        self.refused, self._probe_at = why, self.monotonic() + self._probe_wait
        return self._probe_wait

    def answered(self) -> None:
        """The service accepted the key."""
        if self.refused is not None:
            self.refused, self._probe_wait = None, 0.0
            self.on_recovery()

    def probe_now(self) -> None:
        """Something changed about the key: the next attempt goes out."""
        self._probe_at = self._probe_wait = 0.0


@dataclass(frozen=True)
class Listing:
    """A whole collection as one list showed it: objects by id, and those that carry a marker by (cluster, uid)."""

    began: float
    objects: Mapping[str, Body] = field(repr=False)
    owned: Mapping[tuple[str, str], Sequence[Owned]] = field(repr=False)


class ManagementAPI:
    """The `Remote` of the line: one client, one door, shared lists."""

    def __init__(self, client: Client, connection: Connection) -> None:
        self.client, self.connection = client, connection
        self._listings: dict[str, Listing] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def read(self, kind: Kind[Any], id_: str, path: Path) -> Body | None:
        try:
            return await self._call(self.client.of(kind.api).raw.get(id_, **path))
        except Missing:
            return None

    async def create(self, kind: Kind[Any], path: Path, body: Body) -> Body:
        try:
            return await self._call(self.client.of(kind.api).raw.create(body, **path), posting=True)
        except Missing:
            if path:
                where = ", ".join(path.values())
                raise Waiting(Waits.REFERENCE_NOT_READY, f"the service has no {where} to create this in") from None
            raise Unsupported(f"the service does not offer creation in {kind.api.path}") from None

    async def update(self, kind: Kind[Any], id_: str, path: Path, body: Body) -> Body:
        return await self._call(self.client.of(kind.api).raw.update(id_, body, **path))

    async def put_module(self, kind: Kind[Any], id_: str, path: Path, segment: str, body: Body) -> Body:
        try:
            return await self._call(self.client.of(kind.api).raw.put_module(id_, segment, body, **path))
        except Missing:
            await self._unsupported_if_there(kind, id_, path, segment)
            raise

    async def delete_module(self, kind: Kind[Any], id_: str, path: Path, segment: str) -> None:
        try:
            await self._call(self.client.of(kind.api).raw.delete_module(id_, segment, **path))
        except Missing:
            # Gone already, with or without the object it was part of; or the service has no such operation.
            if ((await self.read(kind, id_, path)) or {}).get(segment) is not None:
                raise Unsupported(f"the service does not offer to delete {segment} of {kind.api.path}") from None

    async def delete(self, kind: Kind[Any], id_: str, path: Path) -> None:
        try:
            await self._call(self.client.of(kind.api).raw.delete(id_, **path), deleting=True)
        except Missing:
            return

    async def owned(self, kind: Kind[Any], cluster: str, uid: str, since: float) -> Sequence[Owned]:
        return (await self.listing(kind.api, since)).owned.get((cluster, uid), ())

    async def listing(self, collection: Collection[Any], since: float) -> Listing:
        """The collection by a list that began at or after `since` (monotonic). Who asks at one time shares one list."""
        whole = collection if "list" in collection.verbs else catalog.https_edges
        async with self._locks.setdefault(whole.name, asyncio.Lock()):
            if (known := self._listings.get(whole.name)) is None or known.began < since:
                await self._list(whole)
            return self._listings[collection.name]

    def forget_listings(self) -> None:
        """Give the memory of lists back; who asks next causes a new one."""
        self._listings.clear()

    async def _list(self, whole: Collection[Any]) -> None:
        began = self.connection.monotonic()
        objects = await self._call(self._pages(whole))
        self._listings[whole.name] = _listing(began, objects, lambda _: {})
        if whole is catalog.https_edges:  # Assumed: routes have no list of their own, they are in their edges
            routes = [route for edge in objects for route in edge.get("routes") or ()]
            self._listings[catalog.https_routes.name] = _listing(began, routes, lambda r: {"edge_id": r["edge_id"]})

    async def _pages(self, whole: Collection[Any]) -> list[Body]:
        return [item async for item in self.client.of(whole).raw.list()]

    async def _unsupported_if_there(self, kind: Kind[Any], id_: str, path: Path, segment: str) -> None:
        if await self.read(kind, id_, path) is not None:
            raise Unsupported(f"the service does not offer the module {segment} of {kind.api.path}")

    async def _call(self, call: Awaitable[A], *, posting: bool = False, deleting: bool = False) -> A:
        """The call's answer, or what its failure means."""
        async with self.connection.slots:
            try:
                answer = await call
            except errors.APIError as error:
                if isinstance(error, errors.StatusError) and error.parsed and error.status in _KEY_ACCEPTED:
                    self.connection.answered()
                raise self._meaning(error, posting=posting, deleting=deleting) from error
        self.connection.answered()
        return answer

    def _meaning(self, error: errors.APIError, *, posting: bool, deleting: bool) -> Exception:  # noqa: C901, PLR0912 - a table
        unsettled = posting and error.created == "maybe"
        match error:
            case errors.StatusError(parsed=False) if unsettled and 400 <= error.status < 500:
                text = f"something in front of the service answers {error.status}"
                return Waiting(Waits.SERVICE_UNAVAILABLE, text, unsettled=True)
            case errors.AuthenticationFailed():
                why = "the service refuses the API key"
                return Waiting(Waits.CONNECTION_NOT_READY, why, after_seconds=self.connection.refuse(why))
            case errors.RateLimited():
                wait = self.connection.pause(error.retry_after_seconds)
                return Waiting(Waits.RATE_LIMITED, "the service asked for a pause", after_seconds=wait)
            case errors.PermissionDenied():
                return Stalled(Stalls.PERMISSION_DENIED, f"the service does not permit this: {shown(error.message)}")
            case errors.NotFound():
                return Missing(error.path)
            case errors.OperationUnsupported():
                return Unsupported(f"the service does not offer {error.method} {error.path}")
            case errors.Conflict() if deleting:
                return Waiting(Waits.DELETION_BLOCKED, f"the service refuses the deletion: {shown(error.message)}")
            case errors.Conflict():
                return Waiting(Waits.CONFLICT, shown(error.message), unsettled=unsettled)
            case errors.InvalidRequest():
                return Stalled(Stalls.INVALID_SPEC, f"the service refuses it: {shown(error.message)}")
            case errors.ForeignAddress() | errors.PagingLoop() | errors.Redirected():
                return Waiting(Waits.SERVICE_UNAVAILABLE, f"the service answers wrongly: {shown(error)}")
            case errors.OutcomeUnknown() if posting:
                text = "it is not known whether a creation arrived; the service is searched before it is tried again"
                return Waiting(Waits.RECOVERING, text, after_seconds=0, unsettled=True)
            case errors.StatusError():
                text = f"the service answers {error.status}"
                return Waiting(Waits.SERVICE_UNAVAILABLE, text, unsettled=unsettled)
            case _:
                return Waiting(Waits.SERVICE_UNAVAILABLE, "the service does not answer", unsettled=unsettled)


def _listing(began: float, objects: Sequence[Body], path: Callable[[Body], Path]) -> Listing:
    owned: dict[tuple[str, str], list[Owned]] = {}
    for answer in objects:
        _, who = marker.split(str(answer.get("metadata") or ""))
        if who is not None:
            owned.setdefault((who.cluster, who.uid), []).append(Owned(answer["id"], path(answer), who, answer))
    return Listing(began, {answer["id"]: answer for answer in objects}, owned)
