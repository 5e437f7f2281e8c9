"""Takes one request, past the gate, to its operation's answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from edge_operator.api import catalog
from edge_operator.api.profiles import Profile
from edge_operator.server import agents, bodies, paging, problems
from edge_operator.server.faults import Active, Faults
from edge_operator.server.front import Answer, Request
from edge_operator.server.gate import Gate
from edge_operator.server.ids import Ids
from edge_operator.server.journal import Entry
from edge_operator.server.keys import Keyring
from edge_operator.server.operations import Operation
from edge_operator.server.present import View
from edge_operator.server.problems import Problem
from edge_operator.server.rules.rule import Caller, Context, Place
from edge_operator.server.service import Call, carry_out, slow_work
from edge_operator.server.settings import ServerSettings
from edge_operator.server.store import Store, Transaction
from edge_operator.server.world import World

_JSON: Final = "application/json"
_NO_PAGE: Final = paging.Page(1)


@dataclass(frozen=True, kw_only=True)
class Handling:
    """The parts of the server that an operation needs."""

    settings: ServerSettings
    world: World
    profile: Profile
    store: Store
    ids: Ids
    keyring: Keyring
    gate: Gate
    faults: Faults

    async def answer(self, request: Request, active: Active, entry: Entry) -> Answer:
        """Raises Problem for every refusal."""
        caller = self.gate.caller(request)
        entry.key_id = caller.key_id
        self.gate.check_version(request)
        self.gate.check_rate()
        operation, ids = self.gate.operation(request)
        page = self._page(request, operation, active)
        place = self._place(operation)
        sent = self._body(request, operation, place)
        slow = slow_work(operation, self.world, sent, place)
        prepared = await asyncio.to_thread(slow) if slow else None
        view = View(request.base, self.settings.echo_secrets)
        unlisted = self._unlisted(operation, page, active)

        def work(tx: Transaction) -> Any:
            context = self._context(tx, operation, caller, place, prepared)
            call = Call(operation, ids, context, view, self.keyring, sent, page, unlisted)
            value = carry_out(call)
            if self.settings.control and operation.verb == "create" and value:
                self.faults.born(operation.collection.name, value["id"])
            return value

        value = await self._transact(operation, work)
        module = operation.module.segment if operation.module else None
        return Answer(operation.status, self.profile.encode(operation.collection, value, module=module))

    async def _transact(self, operation: Operation, work: Callable[[Transaction], Any]) -> Any:
        if operation.collection.name == agents.KIND:
            await self._bring_agents_back()
        if operation.writes:
            return await self.store.write(work)
        with self.store.read() as tx:
            return work(tx)

    async def _bring_agents_back(self) -> None:
        """Agents that were in a restart and should be online again by now get their new sessions."""
        now = self.world.now()
        with self.store.read() as tx:
            overdue = agents.overdue(tx, now)
        if overdue:
            await self.store.write(lambda tx: agents.come_back(tx, self.ids, now))

    def _page(self, request: Request, operation: Operation, active: Active) -> paging.Page:
        if operation.verb == "list":
            return paging.page(request.query, operation.collection, active.page_size(self.settings.page_size))
        paging.none_expected(request.query)
        return _NO_PAGE

    def _unlisted(self, operation: Operation, page: paging.Page, active: Active) -> frozenset[str]:
        """The ids that lagging lists leave out; an edge is also a list, of its routes."""
        if not self.settings.control or operation.verb not in {"list", "get"} or operation.module:
            return frozenset()
        name, found = operation.collection.name, frozenset[str]()
        if operation.verb == "list":
            found |= self.faults.listing(name, active, first_page=page.before is None)
        if name == catalog.https_edges.name:
            found |= self.faults.listing(catalog.https_routes.name, active, first_page=page.before is None)
        return found

    def _context(self, tx: Transaction, operation: Operation, caller: Caller, place: Place, prepared: Any) -> Context:
        return Context(
            tx=tx,
            world=self.world,
            ids=self.ids,
            settings=self.settings,
            profile=self.profile,
            collection=operation.collection,
            caller=caller,
            now=self.world.now(),
            place=place,
            prepared=prepared,
        )

    def _place(self, operation: Operation) -> Place:
        profile, collection = self.profile, operation.collection
        module = operation.module.segment if operation.module else None
        return Place(lambda path: profile.encode_path(collection, path, module=module))

    def _body(self, request: Request, operation: Operation, place: Place) -> dict[str, Any]:
        """What the body gives, in neutral names."""
        if not request.body and not operation.body_required:
            return {}
        content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if content_type != _JSON:
            found = f"is {problems.shown(content_type)}" if content_type else "is missing"
            raise Problem(problems.INVALID_HEADER, f"the header Content-Type {found}; expected is {_JSON}")
        value = bodies.parse(request.body)
        if operation.body is None:
            if value:
                raise Problem(problems.INVALID_BODY, "no body is expected here")
            return {}
        module = operation.module.segment if operation.module else None
        neutral = self.profile.decode(operation.collection, value, module=module)
        return bodies.given(operation.body, neutral, place.spell)
