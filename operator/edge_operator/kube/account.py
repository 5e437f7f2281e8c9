"""One account of the service: its door, a client that is replaced when the terms change, a look at what it holds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from edge_operator.api.caller import Attempt
from edge_operator.api.client import Client
from edge_operator.api.retry import NEVER
from edge_operator.api.wire import Collection
from edge_operator.door import Door
from edge_operator.engine import standing
from edge_operator.engine.conditions import Verdict
from edge_operator.engine.operations import Missing, Shut, Stalled, Unsupported, Waiting
from edge_operator.engine.reasons import Ready, Stalls, Waits
from edge_operator.kube.terms import Terms
from edge_operator.remote import ManagementAPI

QUIET_SECONDS = 60.0
"""How long after a pause the connection still says that it is rate-limited: one that comes and goes is not news."""
_ASKED_FOR = 5
"""How many of the known objects are asked for one by one, where a list of them is refused."""
_CLOSED = Shut(Waits.CONNECTION_NOT_READY, "the operator stops")


class Account:
    """Shut until it is told what terms to use."""

    def __init__(self, door: Door, shut: Shut, observer: Callable[[Attempt], None]) -> None:
        door.shut = shut
        self.door, self.remote = door, ManagementAPI(None, door)
        self.terms: Terms | None = None
        self._observer = observer
        self._closing: dict[asyncio.Task[None], tuple[Client, str]] = {}

    def use(self, terms: Terms) -> bool:
        """Go on with these terms, and open; whether anything is new. Calls that are under way end as they began."""
        if terms == self.terms and self.door.shut is None:
            return False
        if terms != self.terms:
            client = terms.client(self.door.gate, self._observer, sleep=self.door.halt.sleep)
            before = self.remote.use(client)
            token, self.terms = self.terms.api_key if self.terms is not None else "", terms
            self.door.unsupported.clear()
            self.door.allow(terms.concurrency, terms.requests_per_minute, terms.call_seconds)
            self.door.probe_now()
            self._close_later(before, token, terms.call_seconds)
        self.door.shut = None
        return True

    def shut(self, why: Shut) -> None:
        """Let nobody call any more. What was used before is not used again without `use`."""
        self.door.shut = why

    def retire(self, why: Shut) -> None:
        """Never be used again; the client is closed when calls that are under way have ended."""
        self.shut(why)
        self._close_later(self.remote.use(None), "", self.door.call_seconds)

    async def holds(self, terms: Terms, ids: Sequence[tuple[Collection[Any], frozenset[str]]]) -> bool:
        """Whether one of these objects is in the account of these terms; without any, whether the key is accepted.

        Raises:
            Waiting, Stalled: the service does not answer, or refuses.
        """
        door = Door(self.door.monotonic, halt=self.door.halt)
        door.allow(terms.concurrency, terms.requests_per_minute, terms.call_seconds)
        client = terms.client(door.gate, self._observer, retry=NEVER)
        try:
            remote = ManagementAPI(client, door)
            if not ids:
                await remote.probe()
                return True
            for collection, known in ids:
                try:
                    listing = await remote.listing(collection, 0.0)
                except (Missing, Unsupported):
                    seen = await _any_there(remote, collection, known)
                except Stalled as why:
                    if why.reason is not Stalls.PERMISSION_DENIED:
                        raise
                    seen = await _any_there(remote, collection, known)
                else:
                    seen = not known.isdisjoint(listing.objects)
                if seen:
                    return True
            return False
        finally:
            await client.close()

    async def standing(self, *, probe: bool, said: Verdict | None = None) -> Verdict:
        """How it stands while it is open; a door that was refused or found nobody in is knocked at.

        `said` is what is said of an outage already.
        """
        door = self.door
        due = door.refused is not None and door.probe_in_seconds == 0
        if probe or due or door.unavailable is not None:
            try:
                await self.remote.probe()
            except Waiting as why:
                return standing.refusal(why, said)
        if door.refused is not None:
            return Verdict(Stalls.AUTHENTICATION_FAILED, door.refused)
        if door.paused_until and door.monotonic() < door.paused_until + QUIET_SECONDS:
            return Verdict(Waits.RATE_LIMITED, "the service asks for pauses; calls are spread out")
        return Verdict(Ready.CONNECTED, "the service accepts the key")

    def tokens(self) -> set[str]:
        """The API keys of calls that are made, or still under way."""
        closing = {token for _, token in self._closing.values()} - {""}
        return closing | ({self.terms.api_key} if self.terms is not None else set())

    def _close_later(self, client: Client | None, token: str, seconds: float) -> None:
        if client is not None:
            task = asyncio.create_task(self._close_unused(client, seconds), name="old client")
            self._closing[task] = client, token
            task.add_done_callback(lambda done: self._closing.pop(done, None))

    async def _close_unused(self, client: Client, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            if not self.remote.uses(client):  # a list may have many pages, and wait for its turn before each
                break
        await client.close()

    async def close(self) -> None:
        """Close every connection."""
        left = dict(self._closing)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await asyncio.gather(*(client.close() for client, _ in left.values()))
        self.door.shut = self.door.shut or _CLOSED
        if (client := self.remote.use(None)) is not None:
            await client.close()


def barred(monotonic: Callable[[], float], why: Shut) -> ManagementAPI:
    """A service that nobody may ask."""
    return ManagementAPI(None, Door(monotonic, shut=why))


async def _any_there(remote: ManagementAPI, collection: Collection[Any], known: frozenset[str]) -> bool:
    """Whether the service returns one of the first few of these objects."""
    if "{" in collection.path:
        return False  # where it is would have to be known
    for id_ in sorted(known)[:_ASKED_FOR]:
        try:
            if await remote.has(collection, id_):
                return True
        except Unsupported:
            return False
        except Stalled as why:
            if why.reason is not Stalls.PERMISSION_DENIED:
                raise
            return False
    return False
