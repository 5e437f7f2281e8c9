"""Runs one operation with the client, and says what each answer of the service means to the line.

`Listing`s are whole collections, read once for everybody who asks.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from edge_operator.api import catalog, errors
from edge_operator.api.address import is_segment
from edge_operator.api.client import Client
from edge_operator.api.wire import Collection
from edge_operator.declare import Body, Kind
from edge_operator.door import Door
from edge_operator.engine import commands, marker
from edge_operator.engine.operations import (
    SEARCHED,
    UNANSWERED,
    Missing,
    Path,
    Stalled,
    Unsupported,
    Waiting,
    shown,
)
from edge_operator.engine.reasons import Stalls, Waits
from edge_operator.ports import Owned

A = TypeVar("A")

_KEY_ACCEPTED = frozenset({400, 404, 405, 409, 422})
"""Refusals that come after the key was looked at."""


class AnswerLost(Exception):
    """A command to an agent was sent, and whether it was carried out is not known."""


@dataclass(frozen=True)
class Listing:
    """A whole collection as one list showed it: objects by id, and those that carry a marker by (cluster, uid)."""

    began: float
    objects: Mapping[str, Body] = field(repr=False)
    owned: Mapping[tuple[str, str], Sequence[Owned]] = field(repr=False)

    @functools.cached_property
    def placed(self) -> Mapping[tuple[str, str], Sequence[Owned]]:
        """Those that carry a marker by (cluster, place)."""
        found: dict[tuple[str, str], list[Owned]] = {}
        for owned in self.owned.values():
            for object_ in owned:
                found.setdefault((object_.owner.cluster, object_.owner.place), []).append(object_)
        return found


class ManagementAPI:
    """The `Remote` of the line: one client, one door, shared lists. Without a client the door has to be shut."""

    def __init__(self, client: Client | None, door: Door) -> None:
        self._client, self.door = client, door
        self._listings: dict[str, Listing] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._under_way: Counter[Client | None] = Counter()

    @property
    def client(self) -> Client:
        """The client in use.

        Raises:
            Waiting, Stalled: there is none, as the door says.
        """
        self.door.check()
        if self._client is None:
            raise RuntimeError("a door without a client should be shut")
        return self._client

    def use(self, client: Client | None) -> Client | None:
        """Go on with another client; the one before, which calls that are under way still hold."""
        before, self._client = self._client, client
        self.forget_listings()
        return before

    def uses(self, client: Client) -> bool:
        """Whether a call with this client is under way."""
        return self._under_way[client] > 0

    def check(self) -> None:
        """Nothing, where a call would be let through now."""
        self.door.check()

    async def probe(self) -> None:
        """One small read, to learn whether the service answers and accepts the key."""
        try:
            await self._call(self._one_page(self.client), reading=True)
        except (Missing, Unsupported):
            return  # it has no such collection, and looked at the key before it said so
        except Stalled as why:
            if why.reason is not Stalls.PERMISSION_DENIED:
                raise
            self.door.answered()

    @staticmethod
    async def _one_page(client: Client) -> None:
        async for _ in client.api_keys.raw.list(limit=1):
            return

    async def read(self, kind: Kind[Any], id_: str, path: Path) -> Body | None:
        try:
            return await self._call(self.client.of(kind.api).raw.get(id_, **path), reading=True)
        except Missing:
            return None

    async def has(self, collection: Collection[Any], id_: str) -> bool:
        """Whether there is such an object."""
        try:
            await self._call(self.client.of(collection).raw.get(id_), reading=True)
        except Missing:
            return False
        return True

    async def create(self, kind: Kind[Any], path: Path, body: Body) -> Body:
        try:
            return await self._call(self.client.of(kind.api).raw.create(body, **path), posting=True)
        except Missing:
            if path:
                where = ", ".join(path.values())
                raise Waiting(Waits.REFERENCE_NOT_READY, f"the service has no {where} to create this in") from None
            self.door.lacks(f"POST {kind.api.path}")
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
                self.door.lacks(f"DELETE {kind.api.path}/{{id}}/{segment}")
                raise Unsupported(f"the service does not offer to delete {segment} of {kind.api.path}") from None

    async def delete(self, kind: Kind[Any], id_: str, path: Path) -> None:
        try:
            await self._call(self.client.of(kind.api).raw.delete(id_, **path), deleting=True)
        except Missing:
            return

    async def session(self, session_id: str) -> Body | None:
        """An online session, or None."""
        try:
            return await self._call(self.client.of(catalog.tunnel_sessions).raw.get(session_id), reading=True)
        except Missing:
            return None

    async def command(self, session_id: str, word: str) -> None:
        """Tell the agent behind a session: restart, stop or update. At most one request arrives.

        Raises:
            Waiting: it was surely not carried out, and may be sent again.
            Stalled: the service refuses it.
            AnswerLost: it may have been carried out.
        """
        collection = catalog.tunnel_sessions
        try:
            await self._call(self.client.of(collection).command(session_id, word), posting=True)
        except (Waiting, Stalled, Missing, Unsupported) as why:
            error = why.__cause__
            if isinstance(error, errors.StatusError) and (reason := commands.refusal(error.code)):
                raise Stalled(reason, f"the service refuses to {word}: {shown(error.message)}") from error
            if isinstance(error, errors.APIError) and error.created == "maybe" and not isinstance(why, Unsupported):
                raise AnswerLost(shown(_lost(error))) from error
            match why:
                case Stalled(reason=Stalls.INVALID_SPEC):
                    raise Stalled(Stalls.COMMAND_REFUSED, why.message) from error
                case Missing() if await self.session(session_id) is not None:
                    raise Stalled(Stalls.OPERATION_UNSUPPORTED, f"the service does not offer {word}") from error
                case Missing():
                    raise Stalled(Stalls.SESSION_NOT_FOUND, f"the session {session_id} is not online") from error
                case Unsupported():
                    raise Stalled(Stalls.OPERATION_UNSUPPORTED, str(why)) from error
            raise

    async def owned(self, kind: Kind[Any], cluster: str, uid: str, since: float) -> Sequence[Owned]:
        return (await self.listing(kind.api, since)).owned.get((cluster, uid), ())

    async def standing(self, kind: Kind[Any], cluster: str, place: str, since: float) -> Sequence[Owned]:
        return (await self.listing(kind.api, since)).placed.get((cluster, place), ())

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
        client = None
        while client is not self.client:  # the list of an account that was left while it was read shows nothing
            client, began = self.client, self.door.monotonic()
            try:
                objects, routes = await self._call(self._pages(client, whole), reading=True)
            except Missing:
                self.door.lacks(f"GET {whole.path}")
                raise Unsupported(f"the service does not offer GET {whole.path}") from None
        self._listings[whole.name] = _listing(began, objects, lambda _: {})
        if whole is catalog.https_edges:  # Assumed: routes have no list of their own, they are in their edges
            self._listings[catalog.https_routes.name] = _listing(began, routes, lambda r: {"edge_id": r["edge_id"]})

    @staticmethod
    async def _pages(client: Client, whole: Collection[Any]) -> tuple[list[Body], list[Body]]:
        """Every object of a collection, and every route in it where it is that of the HTTPS edges."""
        objects = [item async for item in client.of(whole).raw.list()]
        if whole is not catalog.https_edges:
            return objects, []
        return objects, [route for edge in objects for route in _routes(edge, whole.path)]

    async def _unsupported_if_there(self, kind: Kind[Any], id_: str, path: Path, segment: str) -> None:
        if await self.read(kind, id_, path) is not None:
            self.door.lacks(f"PUT {kind.api.path}/{{id}}/{segment}")
            raise Unsupported(f"the service does not offer the module {segment} of {kind.api.path}")

    async def _call(
        self, call: Awaitable[A], *, reading: bool = False, posting: bool = False, deleting: bool = False
    ) -> A:
        """The call's answer, or what its failure means. A stop of the operator does not wait for one that reads."""
        client = self._client
        self._under_way[client] += 1
        try:
            async with self.door.slots, self.door.halt.interruptible() if reading else contextlib.nullcontext():
                answer = await call
        except errors.APIError as error:
            if isinstance(error, errors.AuthenticationFailed) and self._client is not client:
                text = "the API key was replaced meanwhile"  # and says nothing of the new one
                raise Waiting(Waits.CONNECTION_NOT_READY, text, after_seconds=0.0) from error
            if isinstance(error, errors.StatusError) and error.parsed and error.status in _KEY_ACCEPTED:
                self.door.answered()
            elif not isinstance(error, errors.StatusError) or error.status >= 500:
                self.door.failed(_outage(error))
            raise self._meaning(error, posting=posting, deleting=deleting) from error
        finally:
            self._under_way[client] -= 1
            if not self._under_way[client]:
                del self._under_way[client]
        self.door.answered()
        return answer

    def _meaning(self, error: errors.APIError, *, posting: bool, deleting: bool) -> Exception:  # noqa: C901, PLR0912 - a table
        unsettled = posting and error.created == "maybe"
        match error:
            case errors.StatusError(parsed=False) if unsettled and 400 <= error.status < 500:
                text = "something in front of the service answers in its place"
                return Waiting(Waits.SERVICE_UNAVAILABLE, text, unsettled=True, detail=f"{text}: {error.status}")
            case errors.AuthenticationFailed():
                why = "the service refuses the API key"
                return Waiting(Waits.CONNECTION_NOT_READY, why, after_seconds=self.door.refuse(why))
            case errors.RateLimited():
                wait = self.door.pause(error.retry_after_seconds)
                return Waiting(Waits.RATE_LIMITED, "the service asked for a pause", after_seconds=wait)
            case errors.PermissionDenied():
                return Stalled(Stalls.PERMISSION_DENIED, f"the service does not permit this: {shown(error.message)}")
            case errors.NotFound():
                return Missing(error.path)
            case errors.OperationUnsupported():
                self.door.lacks(f"{error.method} {_template(error.path)}")
                return Unsupported(f"the service does not offer {error.method} {error.path}", unsettled=unsettled)
            case errors.Conflict() if deleting:
                return Waiting(Waits.DELETION_BLOCKED, f"the service refuses the deletion: {shown(error.message)}")
            case errors.Conflict():
                return Waiting(Waits.CONFLICT, shown(error.message), unsettled=unsettled)
            case errors.InvalidRequest():
                return Stalled(Stalls.INVALID_SPEC, f"the service refuses it: {shown(error.message)}")
            case errors.ForeignAddress() | errors.PagingLoop() | errors.Redirected():
                return Waiting(Waits.SERVICE_UNAVAILABLE, f"the service answers wrongly: {shown(error)}")
            case errors.OutcomeUnknown() if posting:
                return Waiting(Waits.RECOVERING, SEARCHED, after_seconds=0, unsettled=True)
            case errors.Unreadable():
                text = f"the service answers with something that cannot be read, about {error.path}"
                return Waiting(Waits.SERVICE_UNAVAILABLE, text, detail=_outage(error))
            case _:
                return Waiting(Waits.SERVICE_UNAVAILABLE, UNANSWERED, unsettled=unsettled, detail=_outage(error))


def _template(path: str) -> str:
    """The address with ids taken out: "/tls_certificates/{id}"."""
    return "/".join("{id}" if "_" in part and any(c.isdigit() for c in part) else part for part in path.split("/"))


def _outage(error: errors.APIError) -> str:
    """What the service does instead of answering."""
    if isinstance(error, errors.StatusError):
        return f"the service answers {error.status}"
    if isinstance(error, errors.Unreadable):
        return f"the service answers with something that cannot be read: {shown(error)}"
    return f"the service does not answer{': no connection opens' if isinstance(error, errors.NotSent) else ''}"


def _lost(error: errors.APIError) -> str:
    return f"the service answers {error.status}" if isinstance(error, errors.StatusError) else "the answer was lost"


def _routes(edge: Body, path: str) -> list[Body]:
    """The routes in an edge of a list.

    Raises:
        Unreadable: one of them lacks what is relied on.
    """
    routes = edge.get("routes")
    if not isinstance(routes, list | None):
        raise errors.Unreadable("the routes of an edge are no array", method="GET", path=path)
    for route in routes or ():
        if not isinstance(route, dict) or not all(is_segment(route.get(name)) for name in ("id", "edge_id")):
            raise errors.Unreadable("a route in an edge has no id or no edge_id", method="GET", path=path)
        if not isinstance(route.get("metadata"), str | None):
            raise errors.Unreadable("metadata of a route is neither a string nor null", method="GET", path=path)
    return routes or []


def _listing(began: float, answers: Sequence[Body], path: Callable[[Body], Path]) -> Listing:
    objects = {answer["id"]: answer for answer in answers}  # pages may overlap, and an object is no second of itself
    owned: dict[tuple[str, str], list[Owned]] = {}
    for id_, answer in objects.items():
        _, who = marker.split(answer.get("metadata") or "")
        if who is not None:
            owned.setdefault((who.cluster, who.uid), []).append(Owned(id_, path(answer), who, answer))
    return Listing(began, objects, owned)
