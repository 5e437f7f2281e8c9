"""What each answer of the service leads to: the table "Answers of the service", row by row."""

from __future__ import annotations

from types import SimpleNamespace

import httpx
import pytest

from doubles.rig import Rig
from doubles.scenarios import effect_of
from doubles.wire import Handled
from edge_operator.api import exchange
from edge_operator.kinds import KINDS

from .test_life import made

KIND = "TLSEdge"


async def needs_only(rig: Rig, kind: str = KIND) -> None:
    await made(rig, kind)
    rig.delete(kind)
    await rig.settle()
    rig.forget()


def status(code: int, **more: object) -> dict[str, object]:
    return {"kind": "status", "status": code, **more}


@pytest.mark.fault("400 or 422 to a creation")
@pytest.mark.parametrize("code", [400, 422])
async def test_a_refused_creation_is_stalled_and_tried_again_without_a_search(code):
    async with Rig() as rig:
        await needs_only(rig)
        rig.faults(status(code, method="POST"))
        rig.sample(KIND)
        await rig.settle()
        assert rig.reason(KIND) == "InvalidSpec"
        assert rig.message(KIND) == "the service refuses it: a fault that a test asked for"
        rig.faults()
        rig.edit(KIND, description="again")
        await rig.settle()
        assert rig.ready(KIND)
        assert [effect_of(call) for call in rig.calls] == ["POST", "POST"]


@pytest.mark.fault("401: the key is refused")
async def test_a_refused_key_pauses_the_whole_connection_and_recovery_wakes_all():
    async with Rig() as rig:
        await made(rig, KIND)
        rig.faults(status(401))
        rig.edit(KIND, description="edited")
        rig.edit("WeightedBackend", description="edited")
        await rig.settle(4)
        assert len(rig.calls) == 1, "one call told that the key is refused; the other resource made none"
        assert rig.reason(KIND) == rig.reason("WeightedBackend") == "ConnectionNotReady"
        assert (rig.condition("FailoverBackend") or {})["status"] == "True", "what is in sync stays so"
        rig.forget()
        await rig.sleep(100)
        assert 2 <= len(rig.calls) <= 6, "probes back off"
        assert rig.writes == [], "an outage is said once"
        rig.faults()
        await rig.sleep(300)
        assert rig.ready(KIND)
        assert rig.ready("WeightedBackend")


@pytest.mark.fault("401 to a deletion")
async def test_a_refused_key_on_a_deletion_keeps_the_finalizer():
    async with Rig() as rig:
        await made(rig, KIND)
        rig.faults(status(401))
        rig.delete(KIND)
        await rig.settle(30)
        assert rig.reason(KIND) == "ConnectionNotReady"
        rig.faults()
        await rig.sleep(300)
        assert not rig.exists(KIND)
        assert rig.remote(KIND) == []


async def test_a_refusal_after_the_key_was_looked_at_ends_the_outage():
    """A 400 says that the key is good, as much as a 200 does."""
    async with Rig() as rig:
        await needs_only(rig)
        rig.faults(status(401, count=1))
        rig.sample(KIND)
        await rig.settle(1)
        assert rig.reason(KIND) == "ConnectionNotReady"
        rig.faults(status(400, method="POST"))
        await rig.sleep(60)
        assert rig.process.remote.door.refused is None
        assert rig.reason(KIND) == "InvalidSpec"
        assert {call.split()[0] for call in rig.calls} == {"POST"}


@pytest.mark.fault("a refusal between two writes of one change")
async def test_what_was_sent_before_a_refusal_is_not_sent_again():
    async with Rig() as rig:
        await made(rig, "HTTPSRoute")
        rig.faults(status(400, path="response_headers$"))
        rig.edit("HTTPSRoute", compression={"enabled": False}, responseHeaders={"remove": ["via"]}, match="/edited")
        await rig.settle()
        assert rig.reason("HTTPSRoute") == "InvalidSpec"
        assert [effect_of(call) for call in rig.calls] == ["PATCH", "PUT compression", "PUT response_headers"]
        rig.faults()
        rig.forget()
        rig.annotate("HTTPSRoute", reconcile_requested_at="now")
        await rig.settle()
        assert [effect_of(call) for call in rig.calls] == ["GET", "PUT response_headers"]
        assert rig.ready("HTTPSRoute")


@pytest.mark.fault("403 to any method")
@pytest.mark.parametrize(
    ("method", "kind"), [("GET", KIND), ("POST", KIND), ("PATCH", KIND), ("PUT", "HTTPSRoute"), ("DELETE", KIND)]
)
async def test_what_the_key_may_not_do_is_stalled(method, kind):
    async with Rig() as rig:
        await (needs_only(rig, kind) if method == "POST" else made(rig, kind))
        rig.faults(status(403, method=method))
        match method:
            case "GET":
                rig.annotate(kind, reconcile_requested_at="now")
            case "POST":
                rig.sample(kind)
            case "PATCH":
                rig.edit(kind, description="edited")
            case "PUT":
                rig.edit(kind, compression={"enabled": False})
            case _:
                rig.delete(kind)
        await rig.settle()
        assert rig.reason(kind) == "PermissionDenied"
        assert [call.split()[0] for call in rig.calls] == [method], "said at once, and not tried again"
        assert rig.exists(kind)
        rig.faults()
        await rig.restart()
        await rig.settle()
        assert not rig.exists(kind) if method == "DELETE" else rig.ready(kind)


@pytest.mark.fault("405 or 501: the service lacks an operation")
@pytest.mark.parametrize("code", [405, 501])
@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE"])
async def test_an_operation_that_the_service_lacks_is_named(code, method):
    async with Rig() as rig:
        await (needs_only(rig) if method == "POST" else made(rig, KIND))
        rig.faults(status(code, method=method))
        match method:
            case "POST":
                rig.sample(KIND)
            case "PATCH":
                rig.edit(KIND, description="edited")
            case _:
                rig.delete(KIND)
        await rig.settle()
        assert rig.reason(KIND) == "OperationUnsupported"
        assert f"{method} /edges/tls" in rig.message(KIND)


@pytest.mark.fault("404 on the path of a module")
async def test_a_module_path_that_is_not_there_although_the_object_is_is_unsupported():
    async with Rig() as rig:
        await made(rig, "HTTPSRoute")
        rig.faults(status(404, path="compression$"))
        rig.edit("HTTPSRoute", compression={"enabled": False})
        await rig.settle()
        assert rig.reason("HTTPSRoute") == "OperationUnsupported"
        assert "compression" in rig.message("HTTPSRoute")


@pytest.mark.parametrize("code", [404, 405, 501])
async def test_a_module_that_cannot_be_deleted_is_switched_off(code):
    async with Rig() as rig:
        await made(rig, "HTTPSRoute")
        rig.faults(status(code, method="DELETE"))
        rig.edit("HTTPSRoute", compression=None, requestHeaders=None)
        await rig.settle()
        assert rig.ready("HTTPSRoute"), rig.message("HTTPSRoute")
        (route,) = rig.remote("HTTPSRoute")
        assert route["compression"] == {"enabled": False}
        assert route["request_headers"]["enabled"] is False
        rig.faults()
        rig.forget()
        await rig.resync("HTTPSRoute")
        await rig.restart()
        await rig.settle()
        assert {call.split()[0] for call in rig.calls} == {"GET"}
        assert rig.writes == []


@pytest.mark.fault("404 to a PATCH of what a GET returns")
async def test_a_404_to_a_patch_of_what_a_read_returns_does_not_spin():
    async with Rig() as rig:
        await made(rig, KIND)
        rig.faults(status(404, method="PATCH"))
        rig.edit(KIND, description="edited")
        await rig.settle(60)
        assert rig.reason(KIND) == "ServiceUnavailable"
        assert len(rig.calls) < 20
        assert len(rig.remote(KIND)) == 1
        rig.faults()
        await rig.sleep(120)
        assert rig.ready(KIND)


@pytest.mark.fault("409: another object holds what is asked for")
async def test_a_hostport_that_is_taken_is_a_conflict_and_comes_free_by_itself():
    async with Rig() as rig:
        await made(rig, KIND)
        await needs_only(rig, "TCPEdge")
        rig.sample("TCPEdge", hostports=["db.example.com:443"])
        await rig.settle()
        assert rig.reason("TCPEdge") == "Conflict"
        assert f"is taken by {rig.id(KIND)}" in rig.message("TCPEdge")
        assert rig.remote("TCPEdge") == []
        writes = len(rig.writes)
        await rig.sleep(1200)
        assert len(rig.writes) == writes, "the conflict is said once, not with each try"
        rig.delete(KIND)
        await rig.sleep(400)
        assert rig.ready("TCPEdge")
        assert len(rig.remote("TCPEdge")) == 1


async def test_a_hostport_that_moves_between_two_resources_frees_itself():
    async with Rig() as rig:
        await made(rig, KIND)
        await made(rig, "TCPEdge")
        rig.edit("TCPEdge", hostports=["db.example.com:443"])
        rig.edit(KIND, hostports=["mq.example.com:5672"])
        await rig.settle()
        assert rig.reason("TCPEdge") == "Conflict"
        rig.edit(KIND, hostports=["third.example.com:443"])
        await rig.sleep(400)
        assert rig.ready("TCPEdge")
        assert rig.ready(KIND)


@pytest.mark.fault("429 with Retry-After in seconds, as a date, absurd, or without")
@pytest.mark.parametrize(
    ("header", "expected"),
    [({"retry_after": "30"}, 30), ({"retry_after_date_seconds": 30.0}, 30), ({}, 5), ({"retry_after": "soon"}, 5)],
)
async def test_a_429_pauses_the_whole_connection_for_as_long_as_was_asked(header, expected, monkeypatch):
    async with Rig() as rig:
        # A date is judged by the wall clock, here that of the rig as everywhere else.
        monkeypatch.setattr(exchange, "time", SimpleNamespace(time=lambda: rig.world.now().timestamp()))
        await made(rig, KIND)
        rig.faults(status(429, count=1, **header))
        rig.edit(KIND, description="edited")
        rig.edit("WeightedBackend", description="edited")
        began = rig.world.elapsed
        await rig.settle(0)
        assert len(rig.calls) == 1
        assert rig.reason(KIND) == rig.reason("WeightedBackend") == "RateLimited"
        await rig.settle()
        assert rig.world.elapsed - began == pytest.approx(expected, abs=1)
        await rig.sleep(3700)
        assert rig.ready(KIND)
        assert rig.ready("WeightedBackend")


@pytest.mark.fault("5xx to a GET, PATCH, PUT or DELETE, before and after it was carried out")
@pytest.mark.parametrize("code", [500, 503])
@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_5xx_to_anything_else_is_tried_again(method, when, code):
    async with Rig() as rig:
        await made(rig, KIND)
        rig.faults(status(code, method=method, when=when, count=2))
        if method == "DELETE":
            rig.delete(KIND)
        else:
            rig.edit(KIND, description="edited")
        await rig.settle()
        if method == "DELETE":
            assert not rig.exists(KIND)
            assert rig.remote(KIND) == []
        else:
            assert rig.ready(KIND)
            assert rig.remote(KIND)[0]["description"] == "edited"


@pytest.mark.fault("an answer that cannot be read")
async def test_an_object_that_cannot_be_read_is_waited_for_and_not_a_defect():
    async with Rig() as rig:
        await made(rig, KIND)
        rig.faults({"kind": "garbage", "method": "GET"})
        rig.annotate(KIND, reconcile_requested_at="now")
        await rig.settle(60)
        assert rig.reason(KIND) == "ServiceUnavailable"
        rig.faults()
        await rig.sleep(120)
        assert rig.ready(KIND)


@pytest.mark.fault("an answer of another shape")
async def test_a_module_of_another_shape_is_waited_for_and_named():
    async with Rig() as rig:
        await made(rig, KIND)
        inner = rig.wire.handle_async_request

        async def odd(request: httpx.Request) -> httpx.Response:
            answer = await inner(request)
            if request.method == "GET":
                return httpx.Response(200, json={"id": rig.id(KIND), "backend": "off"}, request=request)
            return answer

        rig.process.client._exchange._http = httpx.AsyncClient(transport=Handled(odd))
        rig.annotate(KIND, reconcile_requested_at="now")
        await rig.settle(60)
        assert rig.reason(KIND) == "ServiceUnavailable"
        assert "backend" in rig.message(KIND)


@pytest.mark.fault("the service is away for hours")
@pytest.mark.parametrize("kind", KINDS)
async def test_an_outage_is_said_once_and_costs_no_more_writes(kind):
    async with Rig() as rig:
        await made(rig, kind)
        rig.faults(status(503))
        rig.edit(kind, description="edited in an outage")
        await rig.sleep(1800)
        assert rig.reason(kind) == "ServiceUnavailable"
        assert rig.writes == [f"PATCH {kind}/example status"]
        rig.faults()
        await rig.sleep(300)
        assert rig.ready(kind)
        assert len(rig.writes) == 2
