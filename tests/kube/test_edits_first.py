"""What a person edited goes first until it is done: pauses, refusals and conflicts in between do not put it back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from edge_operator.door import URGENT, USUAL, NotLeading, urgency
from edge_operator.engine import seal, state
from edge_operator.kinds import KINDS
from edge_operator.kube import errors
from edge_operator.kube.cluster import path
from edge_operator.kube.controller import Controller
from edge_operator.kube.index import Index
from edge_operator.kube.queue import Priority

from .connected import KIND, Scene, scene
from .test_connection_uses import REF, controller

KEY = (KIND, "a", "edited")
AT = path(KINDS[KIND], "a", "edited")
READ = "GET /backends/failover/bkdfo_1"


def edit(found: Scene, taker: Controller, description: str) -> None:
    """As `kubectl apply` does, with the event."""
    old = found.cluster.objects[AT]
    meta = {**old["metadata"], "generation": old["metadata"]["generation"] + 1}
    spec = {**old["spec"], "description": description}
    taker.event(KINDS[KIND], "MODIFIED", found.cluster.put(AT, {**old, "metadata": meta, "spec": spec}))


def edited(found: Scene) -> Controller:
    """A resource that has its object, and that somebody edits once a watch has told of it."""
    found.service.accounts["key-a"].append("bkdfo_1")
    meta = {
        "namespace": "a",
        "name": "edited",
        "uid": "u9",
        "generation": 1,
        "finalizers": [state.FINALIZER],
    }
    spec = {"backends": [{"id": "bkdtg_1"}], "connectionRef": REF}
    taker = controller(found)
    status = {"id": "bkdfo_1"}
    status["seal"] = seal.of(b"digest key", "u9", status, f"Connection/{REF['name']}") or ""
    body = found.cluster.put(AT, {"kind": KIND, "metadata": meta, "spec": spec, "status": status})
    taker.event(KINDS[KIND], None, body)
    assert found.queue.priorities.pop(KEY) == [Priority.RETRY]
    edit(found, taker, "by somebody who waits")
    assert found.queue.priorities.pop(KEY) == [Priority.EDIT]
    return taker


def urgent(index: Index) -> bool:
    entry = index.get(KEY)
    return entry is not None and entry.urgent


async def rate_limited(found: Scene) -> None:
    found.service.refuses[READ] = (429, {"Retry-After": "1"})


async def unavailable(found: Scene) -> None:
    found.service.refuses[READ] = (503, {})


async def conflict(found: Scene) -> None:
    refuse(found, lambda: errors.Conflict("no", status=409))


async def api_server(found: Scene) -> None:
    refuse(found, lambda: errors.Unreachable("no", sent=True))


async def not_leading(found: Scene) -> None:
    refuse(found, NotLeading)


def refuse(found: Scene, error: Callable[[], Exception]) -> None:
    async def before(what: str) -> None:
        if what.startswith("PATCH"):
            raise error()

    found.cluster.before = before


async def nothing(_: str) -> None:
    """No disturbance."""


@pytest.mark.parametrize("disturbed", [rate_limited, unavailable, conflict, api_server, not_leading])
@pytest.mark.fault("an edit is refused with 429, a conflict or an outage before it is done")
async def test_an_edit_keeps_its_priority_until_it_is_done(disturbed: Any) -> None:
    async with scene() as found:
        taker = edited(found)
        await disturbed(found)
        await taker.work(KEY)
        assert urgency.get() == URGENT
        assert set(found.queue.priorities.pop(KEY)) == {Priority.EDIT}

        taker.wake([KEY])
        assert found.queue.priorities.pop(KEY) == [Priority.EDIT], "whoever wakes it"
        found.service.refuses.clear()
        found.cluster.before = nothing
        found.door().paused_until = 0.0
        await taker.work(KEY)

        assert found.cluster.objects[AT]["status"]["conditions"][0]["reason"] == "Available"
        assert not urgent(found.index)
        taker.wake([KEY])
        assert found.queue.priorities.pop(KEY)[-1] is Priority.RETRY
        await taker.work(KEY)
        assert urgency.get() == USUAL


async def test_an_edit_that_stalls_is_done_too() -> None:
    async with scene() as found:
        taker = edited(found)
        found.service.refuses[READ] = (403, {})
        await taker.work(KEY)

        assert found.cluster.objects[AT]["status"]["conditions"][0]["reason"] == "PermissionDenied"
        assert not urgent(found.index)


async def test_an_edit_during_a_pass_is_not_done_with_that_pass() -> None:
    async with scene() as found:
        taker = edited(found)

        async def again(what: str) -> None:
            if what == READ:
                found.service.before = nothing
                edit(found, taker, "and once more")

        found.service.before = again
        await taker.work(KEY)

        assert urgent(found.index)
