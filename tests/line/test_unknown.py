"""A POST whose answer is lost, late or wrong: unknown is not failed, and nothing comes to be twice."""

from __future__ import annotations

import json

import httpx
import pytest

from doubles.effects import Fate
from doubles.rig import Rig
from doubles.scenarios import effect_of
from doubles.wire import Handled
from doubles.world import key_pair
from edge_operator.declare import Token
from edge_operator.engine import marker
from edge_operator.kinds import KINDS
from edge_operator.server.settings import ServerSettings

from .test_answers import needs_only, status
from .test_life import made

HOST = "SSHHostCertificate"

KIND = "TLSEdge"


@pytest.mark.fault("429 to a creation")
async def test_a_429_to_a_creation_means_that_nothing_was_created():
    async with Rig() as rig:
        await needs_only(rig)
        rig.faults(status(429, count=1, retry_after="3"))
        rig.sample(KIND)
        began = rig.world.elapsed
        await rig.settle()
        assert rig.ready(KIND)
        assert rig.world.elapsed - began < 10, "no search, no grace"
        assert [effect_of(call) for call in rig.calls] == ["POST", "POST"]


@pytest.mark.fault("5xx to a creation, before and after it was carried out")
@pytest.mark.parametrize("code", [500, 501, 502, 503, 504, 408, 425])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("kind", ["WeightedBackend", "SSHHostCertificate", "HTTPSRoute"])
async def test_a_5xx_to_a_creation_is_unknown_and_searched_for(kind, when, code):
    async with Rig() as rig:
        await needs_only(rig, kind)
        rig.faults(status(code, method="POST", when=when, count=1))
        rig.sample(kind)
        await rig.settle()
        assert rig.ready(kind), rig.message(kind)
        assert [doc["id"] for doc in rig.remote(kind)] == [rig.id(kind)]


TOKENS = [kind for kind in KINDS if isinstance(KINDS[kind].lifecycle, Token)]


@pytest.mark.fault("null where an id or a token should be")
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize(("kind", "member"), [*((kind, "id") for kind in KINDS), *((kind, "token") for kind in TOKENS)])
async def test_null_where_an_id_or_a_token_should_be_ends_with_one_object(kind, member, count):
    async with Rig() as rig:
        await needs_only(rig, kind)
        path = "/routes$" if kind == "HTTPSRoute" else f"^{KINDS[kind].api.path}$"
        rig.faults({"kind": "null", "members": (member,), "method": "POST", "path": path, "count": count})
        rig.sample(kind)
        await rig.settle()
        assert rig.ready(kind), rig.message(kind)
        assert [doc["id"] for doc in rig.remote(kind)] == [rig.id(kind)]
        posts = [call for call in rig.calls if call.startswith("POST")]
        lost = bool(KINDS[kind].outputs)
        assert len(posts) == (count + 1 if lost else 1), "what has no id is found; with a token or a key it is replaced"


@pytest.mark.fault("null for an id in an answer to a PATCH or a GET")
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("method", ["PATCH", "GET"])
@pytest.mark.parametrize("kind", KINDS)
async def test_null_for_an_id_that_is_known_changes_nothing(kind, method, count):
    async with Rig() as rig:
        await made(rig, kind)
        before = rig.id(kind)
        rig.faults({"kind": "null", "members": ("id",), "method": method, "count": count})
        rig.edit(kind, description="edited")
        rig.annotate(kind, reconcile_requested_at="now")
        await rig.settle(0)
        assert rig.reason(kind) == "ServiceUnavailable"
        await rig.settle()
        assert [call.split()[0] for call in rig.calls].count(method) == count + 1
        assert rig.ready(kind), rig.message(kind)
        assert (rig.id(kind), [doc["id"] for doc in rig.remote(kind)]) == (before, [before])
        assert rig.remote(kind)[0]["description"] == "edited"


@pytest.mark.fault("an answer of a proxy in front of the service")
async def test_an_answer_of_something_in_front_of_the_service_is_unknown():
    """A proxy's page says nothing about what the service did."""
    async with Rig() as rig:
        await needs_only(rig, "WeightedBackend")
        inner = rig.wire.handle_async_request
        left = [403, 404, 400]

        async def in_front(request: httpx.Request) -> httpx.Response:
            answer = await inner(request)
            if request.method == "POST" and left:
                return httpx.Response(left.pop(), text="<html>no</html>", request=request)
            return answer

        rig.process.client._exchange._http = httpx.AsyncClient(transport=Handled(in_front))
        rig.sample("WeightedBackend")
        await rig.settle()
        assert rig.ready("WeightedBackend")
        assert [doc["id"] for doc in rig.remote("WeightedBackend")] == [rig.id("WeightedBackend")]


@pytest.mark.fault("a connection that never opens")
async def test_a_connection_that_never_opened_needs_no_search():
    async with Rig() as rig:
        await needs_only(rig, "WeightedBackend")

        async def refused(request: httpx.Request) -> httpx.Response:
            raise httpx.ConnectError("refused", request=request)

        whole = rig.process.client._exchange._http
        rig.process.client._exchange._http = httpx.AsyncClient(transport=Handled(refused))
        rig.sample("WeightedBackend")
        await rig.settle(1)
        assert rig.reason("WeightedBackend") == "ServiceUnavailable"
        rig.process.client._exchange._http = whole
        began = rig.world.elapsed
        await rig.settle()
        assert rig.ready("WeightedBackend")
        assert rig.world.elapsed - began < 40
        assert [effect_of(call) for call in rig.calls] == ["POST"]


@pytest.mark.fault("a list that lags within the grace")
async def test_a_list_that_lags_within_the_grace_leads_to_no_second_object():
    async with Rig() as rig:
        await needs_only(rig)
        rig.faults({"kind": "lag", "seconds": 40.0}, {"kind": "cut", "when": "after", "method": "POST", "count": 1})
        rig.sample(KIND)
        await rig.settle()
        assert len(rig.remote(KIND)) == 1
        assert rig.ready(KIND)


async def test_many_recoveries_share_one_list():
    async with Rig(ServerSettings(page_size=100)) as rig:
        for number in range(40):
            rig.apply("WeightedBackend", f"w{number}", {"backends": [{"ref": {"id": "bkdhr_1"}, "weight": 1}]})
        rig.faults({"kind": "cut", "when": "after", "method": "POST"})
        await rig.settle(1)
        assert len(rig.remote("WeightedBackend")) == 40
        rig.faults()
        rig.forget()
        await rig.settle()
        assert all(rig.ready("WeightedBackend", f"w{number}") for number in range(40))
        assert len(rig.remote("WeightedBackend")) == 40
        assert rig.calls == ["GET /backends/weighted 200"]


@pytest.mark.fault("one request that makes several objects")
async def test_several_objects_of_one_claim_end_as_one():
    """A copy of a POST that some proxy repeated: the one that the Secret names stays, else the lowest id."""
    async with Rig() as rig:
        await needs_only(rig, "WeightedBackend")
        rig.sample("WeightedBackend")
        rig.effects.fates = {len(rig.effects.log) + 2: Fate.CUT_AFTER}
        await rig.settle(1)
        (first,) = rig.remote("WeightedBackend")
        body = {"metadata": first["metadata"], "description": first["description"], "backends": {}}
        await rig.outside.weighted_backends.raw.create(body)
        await rig.settle()
        assert [doc["id"] for doc in rig.remote("WeightedBackend")] == [first["id"]] == [rig.id("WeightedBackend")]


async def test_of_several_objects_of_one_claim_the_one_that_the_secret_names_stays():
    async with Rig() as rig:
        await needs_only(rig, HOST)
        rig.sample(HOST, privateKey=None, publicKey={"value": key_pair(number=7).public})
        status_write = len(rig.effects.log) + 4
        rig.effects.fates = {status_write: Fate.DIE_BEFORE}
        service = rig.outside.ssh_host_certificates.raw

        async def copy_before_the_answer(request: httpx.Request) -> httpx.Response:
            if request.method == "POST":
                await service.create(json.loads(request.content))  # the copy is the older one
            return await rig.wire.handle_async_request(request)

        rig.process.client._exchange._http = httpx.AsyncClient(transport=Handled(copy_before_the_answer))
        await rig.settle()
        secret = rig.published("example-sshhostcertificate")
        assert secret is not None
        assert [doc["id"] for doc in rig.remote(HOST)] == [rig.id(HOST)]
        assert secret["metadata"]["annotations"]["edge-operator.dev/id"] == rig.id(HOST)
        assert rig.deaths == 1
        assert len([said for said in rig.writes if "Secret" in said]) == 1, "what was published stays"


async def test_an_orphan_of_an_older_claim_does_not_take_the_place_of_what_is_recorded():
    async with Rig() as rig:
        rig.sample(HOST, privateKey=None, publicKey={"value": key_pair(number=7).public})
        await rig.settle()
        (first,) = rig.remote(HOST)
        who = marker.owner(rig.cluster.id, rig.get(HOST)["metadata"]["uid"], "older", "default", "example")
        members = ("ssh_certificate_authority_id", "public_key", "principals", "description")
        body = {**{name: first[name] for name in members}, "metadata": marker.attach("", who)}
        orphan = await rig.outside.ssh_host_certificates.raw.create(body)
        rig.faults({"kind": "cut", "when": "before", "method": "POST", "count": 1})
        rig.edit(HOST, validFor="100h")
        await rig.settle()
        assert rig.ready(HOST), rig.message(HOST)
        assert [doc["id"] for doc in rig.remote(HOST)] == [rig.id(HOST)]
        assert rig.id(HOST) not in (first["id"], orphan["id"])


@pytest.mark.fault("a resource restored or copied with its annotations")
async def test_a_copy_of_a_resource_with_its_annotations_makes_its_own_object():
    async with Rig() as rig:
        await made(rig, "WeightedBackend")
        original = rig.get("WeightedBackend")
        copy = {"spec": original["spec"], "metadata": {"annotations": original["metadata"]["annotations"]}}
        rig.api.apply(("WeightedBackend", "default", "copy"), copy)
        await rig.settle()
        assert rig.ready("WeightedBackend", "copy")
        assert len(rig.remote("WeightedBackend")) == 2
        assert rig.id("WeightedBackend") == original["status"]["id"] != rig.id("WeightedBackend", "copy")
        rig.delete("WeightedBackend", "copy")
        await rig.settle()
        assert [doc["id"] for doc in rig.remote("WeightedBackend")] == [original["status"]["id"]]


async def test_a_claim_that_was_refused_is_taken_back_when_the_edit_is():
    """Otherwise each restart would search for what is known not to exist."""
    async with Rig() as rig:
        await made(rig, HOST)
        rig.faults(status(400, method="POST"))
        rig.edit(HOST, principals=["web-9.example.com"])
        await rig.settle()
        assert rig.reason(HOST) == "InvalidSpec"
        rig.faults()
        rig.edit(HOST, principals=["web-1.example.com"])
        await rig.settle()
        assert rig.ready(HOST)
        rig.forget()
        await rig.restart()
        await rig.settle()
        assert (rig.calls, rig.writes) == ([], [])
