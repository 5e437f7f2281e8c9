"""An outage is said once, however its failures change."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import httpx
import pytest

from doubles.rig import Rig
from doubles.wire import Handled
from edge_operator.engine.operations import UNANSWERED

from .test_answers import needs_only, status
from .test_life import made

KINDS = ["TLSEdge", "APIKey", "SSHHostCertificate", "HTTPSRoute"]


def failures(*first: object) -> Iterator[object]:
    """Statuses, lost answers, refused connections and pages of a proxy, in turn."""
    others = (502, httpx.ReadError("cut"), 503, httpx.ConnectError("refused"), 500, httpx.ReadTimeout("slow"), 504)
    return itertools.chain(first, itertools.cycle(others))


def failing(rig: Rig, how: Iterator[object]) -> list[str]:
    """Nothing gets through any more; what was asked."""
    asked: list[str] = []

    async def handle(request: httpx.Request) -> httpx.Response:
        asked.append(f"{request.method} {request.url.path}")
        failure = next(how)
        if isinstance(failure, Exception):
            raise failure
        return httpx.Response(int(str(failure)), json={"msg": f"number {len(asked)}"}, request=request)

    rig.process.client._exchange._http = httpx.AsyncClient(transport=Handled(handle))
    return asked


def statuses(rig: Rig, kind: str) -> list[str]:
    return [said for said in rig.writes if said == f"PATCH {kind}/example status"]


FIRST = [502, httpx.ReadError("cut"), httpx.ConnectError("refused")]


@pytest.mark.fault("an outage whose failures differ")
@pytest.mark.parametrize("first", FIRST, ids=["502", "cut", "refused"])
@pytest.mark.parametrize("begun", ["created", "edited", "deleted"])
@pytest.mark.parametrize("kind", KINDS)
async def test_failures_that_alternate_are_one_outage_and_one_write(kind, begun, first):
    async with Rig() as rig:
        await (needs_only(rig, kind) if begun == "created" else made(rig, kind))
        whole = rig.process.client._exchange._http
        asked = failing(rig, failures(first))
        match begun:
            case "created":
                rig.sample(kind)
            case "edited":
                rig.edit(kind, description="edited in an outage")
            case _:
                rig.delete(kind)
        await rig.sleep(3600)
        assert len(asked) > 20
        assert len(statuses(rig, kind)) == 1, rig.cluster.writes
        if not (begun == "created" and isinstance(first, httpx.ReadError)):
            assert (rig.reason(kind), rig.message(kind)) == ("ServiceUnavailable", UNANSWERED)
        rig.process.client._exchange._http = whole
        await rig.sleep(400)
        assert not rig.exists(kind) if begun == "deleted" else rig.ready(kind)
        assert len(rig.remote(kind)) == (0 if begun == "deleted" else 1)


@pytest.mark.fault("503 to every creation")
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_creation_that_fails_and_is_searched_for_is_said_once(kind, when):
    async with Rig() as rig:
        await needs_only(rig, kind)
        rig.faults(status(503, method="POST", when=when))
        rig.sample(kind)
        await rig.settle(40)
        assert statuses(rig, kind) == [f"PATCH {kind}/example status"]
        if when == "before":
            await rig.sleep(1200)
            assert statuses(rig, kind) == [f"PATCH {kind}/example status"]
        rig.faults()
        await rig.sleep(400)
        assert rig.ready(kind)
        assert [doc["id"] for doc in rig.remote(kind)] == [rig.id(kind)]
        assert len(statuses(rig, kind)) == 2


async def test_what_an_answer_lacks_is_not_said_anew_with_each_failure_beside_it():
    """The text that says more stays, so that one which comes and goes is no write."""
    async with Rig() as rig:
        await made(rig, "TLSEdge")
        garbage, count = itertools.cycle([b"{", b'{"msg": "no"}']), itertools.count()

        async def handle(request: httpx.Request) -> httpx.Response:
            code = 200 if next(count) % 2 == 0 else 503
            return httpx.Response(code, content=next(garbage), request=request)

        rig.process.client._exchange._http = httpx.AsyncClient(transport=Handled(handle))
        rig.annotate("TLSEdge", reconcile_requested_at="now")
        await rig.sleep(1800)
        assert rig.reason("TLSEdge") == "ServiceUnavailable"
        assert "cannot be read" in rig.message("TLSEdge")
        assert len(statuses(rig, "TLSEdge")) == 1
