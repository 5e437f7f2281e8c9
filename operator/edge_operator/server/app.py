"""The ASGI application: what surrounds the handling of a request, its log, its faults and the shape of its errors.

`create_app` makes an ASGI application without a framework: the operations are a list of values, their paths a tree,
and the OpenAPI document is made from the same list.
"""

from __future__ import annotations

import functools
import json
import logging
import traceback
from collections.abc import Callable
from typing import Final

from edge_operator.api import profiles
from edge_operator.server import control, front, keys, openapi, problems
from edge_operator.server.faults import Active, Faults
from edge_operator.server.front import Answer, Request
from edge_operator.server.gate import Gate
from edge_operator.server.handling import Handling
from edge_operator.server.ids import Ids
from edge_operator.server.journal import Entry, Journal
from edge_operator.server.keys import Keyring
from edge_operator.server.problems import Problem
from edge_operator.server.settings import ServerSettings
from edge_operator.server.store import Store, Transaction
from edge_operator.server.world import World

_log: Final = logging.getLogger(__name__)
OPENAPI_PATH: Final = "/openapi.json"


def create_app(
    settings: ServerSettings | None = None,
    *,
    world: World | None = None,
    cut: Callable[[front.Scope], bool] | None = None,
) -> App:
    """The reference API as an ASGI application, with its database open; `close` it at the end.

    `cut` ends the connection of a request and says whether it could; without it a cut connection raises ConnectionCut
    out of the application, which is what an in-process transport shows its caller.

    Raises:
        StoreError: the database cannot be used.
        ProfileError: there is no such wire-name profile.
    """
    return App(settings or ServerSettings(), world or World(), cut)


class App:
    """The application. Its parts are public for tests in the same process."""

    def __init__(self, settings: ServerSettings, world: World, cut: Callable[[front.Scope], bool] | None) -> None:
        self.settings = settings
        self.world = world
        self.profile = profiles.load(settings.profile)
        self.store = Store(settings.database)
        self.faults = Faults(world)
        self.journal = Journal(settings.request_log, remember=settings.control)
        self.ids, self.keyring = self.store.write_now(self._start)
        self._cut = cut
        self._handling = self._handling_room()
        self._control = self._control_room() if settings.control else None
        self._operation_ids = Ids(world)

    def _start(self, tx: Transaction) -> tuple[Ids, Keyring]:
        ids = Ids(self.world, tx.newest_id())
        keys.prepare(tx, self.world, ids)
        keyring = Keyring(tx)
        if self.settings.seed_api_key is not None:
            keyring.seed(tx, self.settings.seed_api_key, self.world, ids)
        return ids, keyring

    def _handling_room(self) -> Handling:
        return Handling(
            settings=self.settings,
            world=self.world,
            profile=self.profile,
            store=self.store,
            ids=self.ids,
            keyring=self.keyring,
            gate=Gate(self.settings, self.world, self.profile, self.store, self.keyring),
            faults=self.faults,
        )

    def _control_room(self) -> control.Control:
        return control.Control(
            world=self.world,
            store=self.store,
            ids=self.ids,
            keyring=self.keyring,
            profile=self.profile,
            faults=self.faults,
            journal=self.journal,
        )

    @functools.cached_property
    def _openapi(self) -> bytes:
        return json.dumps(openapi.document(self.profile, self.settings), ensure_ascii=False).encode()

    def close(self) -> None:
        self.store.close()
        self.journal.close()

    async def __call__(self, scope: front.Scope, receive: front.Receive, send: front.Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)

    async def _http(self, scope: front.Scope, receive: front.Receive, send: front.Send) -> None:
        try:
            request = await front.read(scope, receive)
            answer = await self._answer(request)
        except front.CallerGone:
            return
        except front.ConnectionCut:
            if self._cut is None or not self._cut(scope):
                raise
            await receive()  # returns when the connection is gone
            return
        await front.send(answer, send)

    async def _answer(self, request: Request) -> Answer:
        if request.method == "GET" and request.path == OPENAPI_PATH:
            return Answer(200, raw=self._openapi)
        if self._control and request.path.startswith(control.PREFIX):
            try:
                return await self._control.answer(request)
            except Problem as problem:
                return self._refusal(problem)
        entry = self.journal.begin(request.method, request.path)
        try:
            active = self.faults.active(request.method, request.path)
            entry.fault = active.names
            answer = await self._with_faults(request, active, entry)
            entry.status = answer.status
        finally:
            self.journal.end(entry)
        return answer

    async def _with_faults(self, request: Request, active: Active, entry: Entry) -> Answer:
        delay = self.settings.latency_seconds + active.latency_seconds
        if delay:
            await self.world.sleep(delay)
        answer = self._interrupted(active, "before") or await self._guarded(request, active, entry)
        answer = self._interrupted(active, "after") or answer
        nulled = {name: None for fault in active.of("null") for name in fault.members}
        if nulled and isinstance(answer.value, dict) and answer.status < 300:
            shared = {name: value for name, value in nulled.items() if name in answer.value}
            answer = Answer(answer.status, {**answer.value, **shared})
        if any(active.of("garbage")):
            answer = Answer(answer.status, raw=b'{"id": "unfinished')
        return answer

    def _interrupted(self, active: Active, when: str) -> Answer | None:
        if any(active.of("cut", when)):
            raise front.ConnectionCut
        for fault in active.of("status", when):
            code = problems.RATE_LIMITED if fault.status == 429 else problems.INJECTED
            headers = fault.retry_after_header(self.world)
            return self._refusal(Problem(code, "a fault that a test asked for", status=fault.status, headers=headers))
        return None

    async def _guarded(self, request: Request, active: Active, entry: Entry) -> Answer:
        """The answer, where every refusal and every fault of our own has the one shape that errors have."""
        try:
            return await self._handling.answer(request, active, entry)
        except Problem as problem:
            return self._refusal(problem)
        except Exception as error:  # noqa: BLE001 - whatever it is, the caller gets an answer
            # The text of a foreign error may repeat a secret: its type and where it happened say enough.
            frames = "".join(traceback.format_tb(error.__traceback__))
            _log.error("%s %s failed with %s\n%s", request.method, request.path, type(error).__name__, frames)
            return self._refusal(Problem(problems.INTERNAL, "a fault of the server; its log has more"))

    def _refusal(self, problem: Problem) -> Answer:
        body = problem.body(self._operation_ids.new("op_"), self.profile.error_code_prefix)
        return Answer(problem.status, body, problem.headers)


async def _lifespan(receive: front.Receive, send: front.Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
