"""`/_control`: what tests switch and read while the server runs. It exists only where the settings say so.

GET, PUT, DELETE /_control/faults      {"faults": [Fault, …]}; PUT replaces all
GET, DELETE      /_control/requests    {"requests": [{number, method, path, status, key_id, fault}, …]}, oldest first
GET, POST        /_control/agents      POST: an Agent comes online; both answer with sessions as callers see them
PATCH, DELETE    /_control/agents/{id} change what the agent does next; take it offline
GET, PUT         /_control/regions     {"regions": ["us", …]}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from edge_operator.api import catalog
from edge_operator.api.profiles import Profile
from edge_operator.server import agents, bodies, problems, regions
from edge_operator.server.faults import Fault, Faults
from edge_operator.server.front import Answer, Request
from edge_operator.server.ids import Ids
from edge_operator.server.journal import Journal
from edge_operator.server.keys import Keyring
from edge_operator.server.present import View
from edge_operator.server.problems import Problem, not_found
from edge_operator.server.store import Store, Stored, Transaction
from edge_operator.server.world import World

PREFIX: Final = "/_control/"
M = TypeVar("M", bound=BaseModel)


class FaultList(BaseModel):
    """The body of PUT /_control/faults."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    faults: list[Fault] = []


class RegionList(BaseModel):
    """The body of PUT /_control/regions."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    regions: list[str] = Field(min_length=1)


@dataclass(frozen=True, kw_only=True)
class Control:
    """Answers requests below `/_control`. They need no key, are not logged, and no fault acts on them."""

    world: World
    store: Store
    ids: Ids
    keyring: Keyring
    profile: Profile
    faults: Faults
    journal: Journal

    async def answer(self, request: Request) -> Answer:
        """Raises Problem for what is not there or malformed."""
        name, _, identifier = request.path.removeprefix(PREFIX).partition("/")
        handlers = {"faults": self._faults, "requests": self._requests, "regions": self._regions}
        if name == "agents":
            return await (self._agent(request, identifier) if identifier else self._agents(request))
        if name not in handlers or identifier:
            raise not_found(f"nothing is at this address; there are {', '.join([*handlers, 'agents'])}")
        return await handlers[name](request)

    async def _faults(self, request: Request) -> Answer:
        match request.method:
            case "GET":
                return Answer(200, {"faults": self.faults.state()})
            case "PUT":
                self.faults.put(_body(request, FaultList).faults)
                return Answer(200, {"faults": self.faults.state()})
            case "DELETE":
                self.faults.put([])
                return Answer(204)
        raise _no_method("GET, PUT, DELETE")

    async def _requests(self, request: Request) -> Answer:
        match request.method:
            case "GET":
                return Answer(200, {"requests": self.journal.entries()})
            case "DELETE":
                self.journal.clear()
                return Answer(204)
        raise _no_method("GET, DELETE")

    async def _regions(self, request: Request) -> Answer:
        match request.method:
            case "GET":
                with self.store.read() as tx:
                    return Answer(200, {"regions": regions.every(tx)})
            case "PUT":
                names = _body(request, RegionList).regions
                await self.store.write(lambda tx: regions.put(tx, names))
                return Answer(200, {"regions": names})
        raise _no_method("GET, PUT")

    async def _agents(self, request: Request) -> Answer:
        match request.method:
            case "GET":
                with self.store.read() as tx:
                    online = tx.page(agents.KIND, None, 100_000)
                return Answer(200, {"agents": [self._seen(request, session) for session in online]})
            case "POST":
                agent = _body(request, agents.Agent)
                return Answer(201, self._seen(request, await self.store.write(lambda tx: self._connect(tx, agent))))
        raise _no_method("GET, POST")

    async def _agent(self, request: Request, identifier: str) -> Answer:
        match request.method:
            case "PATCH":
                changes = _body(request, agents.AgentChange)
                changed = await self.store.write(lambda tx: agents.change(tx, _online(tx, identifier), changes))
                return Answer(200, self._seen(request, changed))
            case "DELETE":
                await self.store.write(lambda tx: tx.delete(_online(tx, identifier).id))
                return Answer(204)
        raise _no_method("PATCH, DELETE")

    def _connect(self, tx: Transaction, agent: agents.Agent) -> Stored:
        credential = agent.credential_id
        if agent.token is not None:
            credential = self.keyring.holder(tx, agent.token)
            if credential is None or not credential.startswith(catalog.credentials.prefix):
                raise Problem(problems.UNAUTHENTICATED, "token: is no tunnel credential's, or that was deleted")
        elif credential is not None and tx.get(catalog.credentials.name, credential) is None:
            raise not_found(f"credential_id: no tunnel credential has the id {problems.shown(credential)}")
        credential = credential or self.ids.new(catalog.credentials.prefix)
        return agents.connect(tx, self.ids, self.world.now(), agent, credential)

    def _seen(self, request: Request, session: Stored) -> Any:
        collection = catalog.tunnel_sessions
        view = View(request.base, echo_secrets=False)
        return self.profile.encode(collection, view.resource(collection, session.doc))


def _online(tx: Transaction, identifier: str) -> Stored:
    session = tx.get(agents.KIND, identifier)
    if session is None:
        raise not_found(f"{problems.shown(identifier)} is not online")
    return session


def _no_method(allowed: str) -> Problem:
    return Problem(problems.METHOD_NOT_ALLOWED, f"this address takes {allowed}", headers={"allow": allowed})


def _body(request: Request, shape: type[M]) -> M:
    # Strict models take tuples from JSON text, but not from Python lists.
    try:
        return shape.model_validate_json(request.body)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)
        texts = (f"{bodies.dotted(one['loc'])}: {one['msg']}" for one in found[:5])
        raise Problem(problems.INVALID_FIELD, "; ".join(texts)) from None
