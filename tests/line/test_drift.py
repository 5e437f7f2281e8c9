"""Changes made elsewhere are found by a list and undone in one pass; what vanished is made again, or said."""

from __future__ import annotations

from typing import Any

import pytest

from doubles.rig import Rig
from doubles.scenarios import effect_of
from edge_operator.declare import Managed
from edge_operator.kinds import KINDS

from .test_life import made

RECREATED = [kind for kind in KINDS if KINDS[kind].on_remote_missing == "Recreate"]
STALLED = [kind for kind in KINDS if KINDS[kind].on_remote_missing == "Stall"]


async def touch(rig: Rig, kind: str, body: dict[str, Any], segment: str | None = None) -> None:
    """A change made elsewhere."""
    path = {"edge_id": rig.id("HTTPSEdge")} if kind == "HTTPSRoute" else {}
    collection = rig.outside.of(KINDS[kind].api).raw
    if segment is None:
        await collection.update(rig.id(kind), body, **path)
    else:
        await collection.put_module(rig.id(kind), segment, body, **path)


async def vanish(rig: Rig, kind: str) -> str:
    """The object is deleted elsewhere; its id."""
    path = {"edge_id": rig.id("HTTPSEdge")} if kind == "HTTPSRoute" else {}
    await rig.outside.of(KINDS[kind].api).raw.delete(rig.id(kind), **path)
    return rig.id(kind)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_drifted_description_is_healed_in_one_pass(kind):
    async with Rig() as rig:
        await made(rig, kind)
        await touch(rig, kind, {"description": "somebody else's"})
        await rig.resync(kind)
        assert [effect_of(call) for call in rig.calls if not call.startswith("GET")] == ["PATCH"]
        assert rig.remote(kind)[0]["description"] == rig.get(kind)["spec"].get("description", "")
        assert [(event.reason, event.message.rsplit(": ", 1)[1]) for event in rig.events()] == [
            ("DriftCorrected", "description")
        ]
        assert rig.writes == [], "nothing in the status changed"


@pytest.mark.parametrize("kind", KINDS)
async def test_metadata_that_lost_the_marker_gets_it_back(kind):
    async with Rig() as rig:
        await made(rig, kind)
        before = rig.remote(kind)[0]["metadata"]
        await touch(rig, kind, {"metadata": "mine now"})
        await rig.resync(kind)
        assert rig.remote(kind)[0]["metadata"] == before


@pytest.mark.parametrize(
    ("segment", "body", "path"),
    [
        ("compression", {"enabled": False}, "compression.enabled"),
        ("ip_restriction", {"ip_policy_ids": ["ipp_theirs"]}, "ipRestriction.ipPolicies"),
        ("request_headers", {"add": {"x-env": "production", "x-more": "1"}}, "requestHeaders.add"),
        ("circuit_breaker", {"tripped_duration": 11, "rolling_window": 60, "num_buckets": 10, "volume_threshold": 20,
                             "error_threshold_percentage": 0.25}, "circuitBreaker.trippedDuration"),
    ],
)  # fmt: skip
async def test_a_drifted_module_is_put_whole_and_named(segment, body, path):
    async with Rig() as rig:
        await made(rig, "HTTPSRoute")
        before = rig.remote("HTTPSRoute")
        await touch(rig, "HTTPSRoute", body, segment)
        await rig.resync("HTTPSRoute")
        assert [effect_of(call) for call in rig.calls if not call.startswith("GET")] == [f"PUT {segment}"]
        assert rig.remote("HTTPSRoute") == before
        (event,) = rig.events()
        assert path in event.message


async def test_a_module_that_was_removed_elsewhere_comes_back():
    async with Rig() as rig:
        await made(rig, "TLSEdge")
        before = rig.remote("TLSEdge")
        await rig.outside.tls_edges.raw.delete_module(rig.id("TLSEdge"), "mutual_tls")
        await rig.resync("TLSEdge")
        assert rig.remote("TLSEdge") == before


async def test_a_guard_that_drifted_goes_on_before_anything_else_is_healed():
    async with Rig() as rig:
        await made(rig, "HTTPSRoute")
        await touch(rig, "HTTPSRoute", {"backend_id": "bkdtg_theirs"}, "backend")
        await touch(rig, "HTTPSRoute", {"match": "/theirs"})
        await touch(rig, "HTTPSRoute", {"ip_policy_ids": ["ipp_theirs"]}, "ip_restriction")
        await rig.resync("HTTPSRoute")
        healed = [effect_of(call) for call in rig.calls if not call.startswith("GET")]
        assert healed == ["PUT ip_restriction", "PATCH", "PUT backend"]


async def test_what_the_service_does_not_echo_is_trusted_by_its_digest():
    from edge_operator.server.settings import ServerSettings

    async with Rig(ServerSettings(echo_secrets=False, page_size=3)) as rig:
        await made(rig, "HTTPSRoute")
        await rig.resync("HTTPSRoute")
        assert {call.split()[0] for call in rig.calls} == {"GET"}
        held = rig.published("example-route")
        assert held is not None
        rig.secret("example-route", {**held["data"], "oauth": "another-oauth-secret"})
        await rig.settle()
        assert [effect_of(call) for call in rig.calls if not call.startswith("GET")] == ["PUT oauth"]


async def test_a_list_that_began_before_the_last_write_is_ignored():
    async with Rig() as rig:
        await made(rig, "TLSEdge")
        listing = await rig.process.remote.listing(KINDS["TLSEdge"].api, rig.world.elapsed)
        rig.edit("TLSEdge", description="newer than the list")
        await rig.settle()
        rig.forget()
        from edge_operator.ports import Snapshot

        await rig.reconcile(rig.get("TLSEdge"), Snapshot(listing.began, listing.objects[rig.id("TLSEdge")]))
        await rig.settle()
        assert (rig.calls, rig.writes) == ([], [])


@pytest.mark.parametrize("kind", RECREATED)
async def test_what_vanished_is_confirmed_and_made_again(kind):
    async with Rig() as rig:
        await made(rig, kind)
        old = await vanish(rig, kind)
        await rig.resync(kind)
        assert rig.ready(kind)
        assert [doc["id"] for doc in rig.remote(kind)] == [rig.id(kind)] != [old]
        assert [effect_of(call) for call in rig.calls if not call.startswith("GET")] == ["POST"]


@pytest.mark.parametrize("kind", STALLED)
async def test_what_would_not_be_the_same_thing_is_not_made_again(kind):
    async with Rig() as rig:
        await made(rig, kind)
        old = await vanish(rig, kind)
        await rig.resync(kind)
        assert rig.reason(kind) == "RemoteMissing"
        assert rig.message(kind).startswith(f"{old} does not exist any more")
        rig.forget()
        await rig.restart()
        await rig.settle()
        assert rig.reason(kind) == "RemoteMissing", "a restart does not make it well"
        assert rig.writes == []
        assert rig.remote(kind) == []
        rig.edit(kind, onRemoteMissing="Recreate")
        await rig.settle()
        assert rig.ready(kind)
        assert [doc["id"] for doc in rig.remote(kind)] == [rig.id(kind)] != [old]


@pytest.mark.parametrize("kind", STALLED)
async def test_a_stalled_resource_whose_object_vanished_can_be_deleted(kind):
    async with Rig() as rig:
        await made(rig, kind)
        await vanish(rig, kind)
        await rig.resync(kind)
        rig.delete(kind)
        await rig.settle()
        assert not rig.exists(kind)


@pytest.mark.parametrize("kind", [kind for kind in RECREATED if isinstance(KINDS[kind].lifecycle, Managed)])
async def test_on_remote_missing_stall_overrides(kind):
    async with Rig() as rig:
        await made(rig, kind)
        rig.edit(kind, onRemoteMissing="Stall")
        await vanish(rig, kind)
        await rig.resync(kind)
        assert rig.reason(kind) == "RemoteMissing"


async def test_an_edit_of_what_vanished_finds_out_and_makes_it_again():
    """No list has told yet: the PATCH is answered 404, a read confirms it."""
    async with Rig() as rig:
        await made(rig, "TLSEdge")
        old = await vanish(rig, "TLSEdge")
        rig.edit("TLSEdge", description="edited")
        await rig.settle()
        assert [effect_of(call) for call in rig.calls] == ["PATCH", "GET", "POST"]
        assert rig.id("TLSEdge") != old
        assert rig.remote("TLSEdge")[0]["description"] == "edited"


@pytest.mark.parametrize("kind", KINDS)
async def test_another_digest_key_costs_one_read_and_no_replacement(kind):
    async with Rig() as rig:
        await made(rig, kind)
        id_ = rig.id(kind)
        rig.cluster.digest_key = b"another key of the operator's own"
        await rig.restart()
        rig.process.dirty = {key: None for key in rig.process.dirty if key[0] == kind}
        await rig.settle()
        assert {call.split()[0] for call in rig.calls} == {"GET"}
        assert len([call for call in rig.calls if id_ in call]) == 1
        assert rig.id(kind) == id_
        assert rig.writes == [f"PATCH {kind}/example status"]
        rig.forget()
        await rig.restart()
        rig.process.dirty = {key: None for key in rig.process.dirty if key[0] == kind}
        await rig.settle()
        assert (rig.calls, rig.writes) == ([], [])


async def test_drift_that_could_not_be_healed_is_not_called_in_sync():
    async with Rig() as rig:
        await made(rig, "TLSEdge")
        await touch(rig, "TLSEdge", {"description": "somebody else's"})
        rig.faults({"kind": "status", "status": 503, "method": "PATCH"})
        await rig.resync("TLSEdge")
        assert rig.reason("TLSEdge") == "ServiceUnavailable"
        await rig.restart()
        rig.faults()
        await rig.settle()
        assert rig.ready("TLSEdge")
        assert rig.remote("TLSEdge")[0]["description"] == "TLS for the database"


async def test_a_member_taken_out_of_a_module_is_sent_although_the_object_was_looked_at():
    """What was seen tells nothing of a member that the spec has no more; a property test found it unsent."""
    async with Rig() as rig:
        await made(rig, "HTTPSRoute")
        rig.edit("HTTPSRoute", circuitBreaker={"trippedDuration": 10})
        rig.annotate("HTTPSRoute", reconcile_requested_at="now")
        await rig.settle()
        assert [effect_of(call) for call in rig.calls] == ["GET", "PUT circuit_breaker"]
        assert rig.remote("HTTPSRoute")[0]["circuit_breaker"]["num_buckets"] == 0


@pytest.mark.parametrize("kind", ["HTTPSEdge", "TLSEdge"])
async def test_termination_goes_and_comes_with_what_guards_behind_it(kind):
    """The service refuses mutual TLS under termination upstream, so each step has to be one that it takes."""
    guard = {"certificateAuthorities": [{"id": "ca_1"}]}
    steps = [
        {"mutualTLS": None, "tlsTermination": {"terminateAt": "upstream"}},
        {"mutualTLS": guard, "tlsTermination": None},
        {"mutualTLS": None, "tlsTermination": {"terminateAt": "upstream"}},
        {"mutualTLS": guard, "tlsTermination": {"terminateAt": "edge"}},
    ]
    async with Rig() as rig:
        await made(rig, kind)
        for members in steps:
            rig.edit(kind, **members)
            await rig.settle()
            assert rig.ready(kind), rig.message(kind)
        assert {call.split()[-1] for call in rig.calls} <= {"200", "204"}
