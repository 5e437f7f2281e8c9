"""How the operator ends: the signals, and what has to end before the Lease is given back."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from typing import Any, Protocol

from edge_operator.door import Halt

_log = logging.getLogger(__name__)

FAILED = 1
DRAIN_SECONDS = 20.0
"""How long a stop waits for passes that are under way: longer than a call and the writes that record its outcome."""


class Stop(asyncio.Event):
    """Set by the first SIGTERM or SIGINT; the second ends the process at once."""

    def listen(self) -> None:
        """Take the signals. Done again once kopf has started, because kopf takes them for itself."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal)

    def _on_signal(self) -> None:
        if self.is_set():
            _log.warning("stopped again: leaving at once")
            os._exit(FAILED)
        _log.info("stopping")
        self.set()


class Queue(Protocol):
    """What does the work."""

    async def drain(self, timeout_seconds: float) -> bool:
        """Begin nothing more, and wait for what is under way; whether it ended in time."""


class Held(Protocol):
    """The Lease that the work is done by."""

    def keep(self) -> None:
        """Do not give it back at the end."""


async def rest(halt: Halt, queue: Queue, lease: Held, timeout_seconds: float = DRAIN_SECONDS) -> None:
    """Begin nothing more, end what waits or only reads, and let what writes come to its end.

    What does not, may still arrive: then nobody else may act before the Lease runs out.
    """
    halt.begin()
    if not await queue.drain(timeout_seconds):
        _log.warning("some passes did not end in time; their resources are looked at again after the next start")
        lease.keep()


async def cancelled(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks, and wait until they are gone."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
