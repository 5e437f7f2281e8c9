"""One account of the service: its door, a client that is replaced when the terms change, a look at what it holds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from edge_operator.api.caller import Attempt
from edge_operator.api.client import Client
from edge_operator.api.wire import Collection
from edge_operator.door import Door
from edge_operator.engine.operations import Missing, Shut, Unsupported
from edge_operator.engine.reasons import Waits
from edge_operator.kube.terms import Terms
from edge_operator.remote import ManagementAPI

_CLOSED = Shut(Waits.CONNECTION_NOT_READY, "the operator stops")


class Account:
    """Shut until it is told what terms to use."""

    def __init__(self, door: Door, shut: Shut, observer: Callable[[Attempt], None]) -> None:
        door.shut = shut
        self.door, self.remote = door, ManagementAPI(None, door)
        self.terms: Terms | None = None
        self._observer = observer
        self._closing: set[asyncio.Task[None]] = set()

    def use(self, terms: Terms) -> bool:
        """Go on with these terms, and open; whether anything is new. Calls that are under way end as they began."""
        if terms == self.terms and self.door.shut is None:
            return False
        if terms != self.terms:
            before = self.remote.use(terms.client(self.door.gate, self._observer))
            self.terms = terms
            self.door.allow(terms.concurrency, terms.requests_per_minute, terms.call_seconds)
            self.door.probe_now()
            self._close_later(before, terms.call_seconds)
        self.door.shut = None
        return True

    def shut(self, why: Shut) -> None:
        """Let nobody call any more. What was used before is not used again without `use`."""
        self.door.shut = why

    async def holds(self, terms: Terms, ids: Sequence[tuple[Collection[Any], frozenset[str]]]) -> bool:
        """Whether one of these objects is in the account of these terms; without any, whether the key is accepted.

        Raises:
            Waiting, Stalled: the service does not answer, or refuses.
        """
        client = terms.client(None, self._observer)
        try:
            remote = ManagementAPI(client, Door(self.door.monotonic))
            if not ids:
                await remote.probe()
                return True
            for collection, known in ids:
                try:
                    listing = await remote.listing(collection, 0.0)
                except (Missing, Unsupported):
                    continue
                if not known.isdisjoint(listing.objects):
                    return True
            return False
        finally:
            await client.close()

    def _close_later(self, client: Client | None, seconds: float) -> None:
        if client is not None:
            task = asyncio.create_task(_closed(client, seconds), name="old client")
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Close every connection."""
        for task in [*self._closing]:
            task.cancel()
        await asyncio.gather(*self._closing, return_exceptions=True)
        self.door.shut = self.door.shut or _CLOSED
        if (client := self.remote.use(None)) is not None:
            await client.close()


async def _closed(client: Client, seconds: float) -> None:
    try:
        await asyncio.sleep(seconds)
    finally:
        await client.close()
