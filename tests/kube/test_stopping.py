"""The Lease is given back only when nothing is under way any more. In virtual time."""

from __future__ import annotations

import asyncio
import logging

import pytest

from edge_operator.door import Halt
from edge_operator.kube.queue import Priority, WorkQueue
from edge_operator.kube.stopping import DRAIN_SECONDS, cancelled, rest

from .contenders import TERMS, Process, holder
from .doubles import MemoryAPI, now, run, settled


@pytest.mark.fault("work that does not end when the operator stops")
@pytest.mark.parametrize(("seconds", "given_back"), [(DRAIN_SECONDS - 1, True), (DRAIN_SECONDS + 60, False)])
def test_the_lease_is_given_back_only_once_all_work_has_ended(
    seconds: float, given_back: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """A call that hangs may arrive later than a successor's, were it let in at once."""

    async def scenario() -> None:
        api, halt = MemoryAPI(), Halt()
        old = Process(api, "old")

        async def work(_: str) -> None:
            await asyncio.sleep(seconds)

        queue: WorkQueue[str] = WorkQueue(work, monotonic=now)
        working = asyncio.create_task(queue.run())
        await settled()
        assert old.leadership.leading
        queue.offer("a", priority=Priority.EDIT)
        await settled()
        young = Process(api, "young")
        await settled()
        began = now()

        await rest(halt, queue, old.leadership)
        ended = now()
        assert halt.begun
        assert old.leadership.leading, "the Lease is held for as long as work is waited for"
        await cancelled(old.task, working)

        assert (holder(api) == "") == given_back
        assert ended - began == pytest.approx(min(seconds, DRAIN_SECONDS))
        while not young.leadership.leading:
            await asyncio.sleep(0.1)
        waited = now() - ended
        assert waited <= TERMS.retry_seconds if given_back else waited >= TERMS.lease_seconds - TERMS.retry_seconds
        await young.stop()

    with caplog.at_level(logging.WARNING):
        run(scenario())

    assert ("is not given back, because work may be under way still" in caplog.text) != given_back
