"""Events are written beside the work: counted up, bounded, and never in its way."""

import asyncio
import contextlib
import datetime as dt
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from edge_operator.kube import errors
from edge_operator.kube.events import Limits, Recorder

from .doubles import MemoryAPI, now, run, settled

EDGE = {"name": "web", "namespace": "shop", "uid": "5f1c"}


@contextlib.asynccontextmanager
async def recording(api: MemoryAPI, limits: Limits | None = None) -> AsyncIterator[tuple[Recorder, Counter[str]]]:
    outcomes: Counter[str] = Counter()
    recorder = Recorder(
        api, instance="pod-1", limits=limits, monotonic=now, on_outcome=lambda outcome: outcomes.update([outcome]),
        wall=lambda: dt.datetime.fromtimestamp(now(), dt.UTC),
    )  # fmt: skip
    task = asyncio.ensure_future(recorder.run())
    try:
        yield recorder, outcomes
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def written(api: MemoryAPI) -> list[dict[str, Any]]:
    return [value for path, value in api.objects.items() if "/events/" in path]


def test_an_event_says_who_what_why_and_when() -> None:
    async def scenario() -> None:
        api = MemoryAPI()
        async with recording(api) as (recorder, _):
            recorder.event("HTTPSEdge", EDGE, "Normal", "Created", "made edghts_1")
            await settled()
        (event,) = written(api)
        assert event["metadata"].pop("name").startswith("web.")
        event["metadata"].pop("resourceVersion")
        assert event == {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"namespace": "shop"},
            "involvedObject": {
                "apiVersion": "edge-operator.dev/v1alpha1", "kind": "HTTPSEdge",
                "name": "web", "namespace": "shop", "uid": "5f1c",
            },
            "type": "Normal",
            "reason": "Created",
            "message": "made edghts_1",
            "count": 1,
            "firstTimestamp": "1970-01-01T00:16:40Z",
            "lastTimestamp": "1970-01-01T00:16:40Z",
            "source": {"component": "edge-operator"},
            "reportingComponent": "edge-operator",
            "reportingInstance": "pod-1",
        }  # fmt: skip

    run(scenario())


def test_what_is_said_again_is_counted_up_by_a_patch() -> None:
    async def scenario() -> None:
        api = MemoryAPI()
        async with recording(api) as (recorder, outcomes):
            for _ in range(3):
                recorder.event("HTTPSEdge", EDGE, "Warning", "Conflict", "taken")
                await asyncio.sleep(60)
        (event,) = written(api)
        assert (3, "1970-01-01T00:16:40Z", "1970-01-01T00:18:40Z") == (
            event["count"], event["firstTimestamp"], event["lastTimestamp"],
        )  # fmt: skip
        assert {"created": 1, "counted": 2} == outcomes

    run(scenario())


def test_what_is_said_many_times_before_it_is_written_is_one_request() -> None:
    async def scenario() -> None:
        api = MemoryAPI()
        async with recording(api) as (recorder, _):
            for _ in range(50):
                recorder.event("HTTPSEdge", EDGE, "Warning", "Conflict", "taken")
            await settled()
        assert 1 == len(api.log)
        assert 50 == written(api)[0]["count"]

    run(scenario())


def test_another_object_reason_or_message_is_another_event() -> None:
    async def scenario() -> None:
        api = MemoryAPI()
        async with recording(api) as (recorder, _):
            for uid in "xy":
                for reason in ("A", "B"):
                    for message in ("1", "2"):
                        recorder.event("HTTPSEdge", {**EDGE, "uid": uid}, "Normal", reason, message)
            await asyncio.sleep(1)
        assert 8 == len(written(api))
        assert 8 == len({event["metadata"]["name"] for event in written(api)})

    run(scenario())


def test_an_event_that_the_api_server_dropped_is_written_anew() -> None:
    async def scenario() -> None:
        api = MemoryAPI()
        async with recording(api) as (recorder, outcomes):
            recorder.event("HTTPSEdge", EDGE, "Normal", "Healed", "x")
            await settled()
            (path,) = api.objects
            api.remove(path)
            recorder.event("HTTPSEdge", EDGE, "Normal", "Healed", "x")
            await settled()
        assert 1 == written(api)[0]["count"]
        assert {"created": 2} == outcomes

    run(scenario())


def test_after_an_hour_a_new_event_is_written_without_asking_for_the_old() -> None:
    async def scenario() -> None:
        api = MemoryAPI()
        async with recording(api) as (recorder, _):
            for _ in range(2):
                recorder.event("HTTPSEdge", EDGE, "Normal", "Healed", "x")
                await asyncio.sleep(3500)
        assert ["POST", "POST"] == [line.split()[0] for line in api.log]

    run(scenario())


def test_a_long_message_is_cut_at_1024_bytes_between_characters() -> None:
    async def scenario() -> None:
        api = MemoryAPI()
        async with recording(api) as (recorder, _):
            recorder.event("HTTPSEdge", EDGE, "Normal", "Long", "ü" * 2000)
            await settled()
        message = written(api)[0]["message"]
        assert 1020 < len(message.encode()) <= 1024
        assert message.endswith("ü…")

    run(scenario())


def test_what_does_not_fit_is_dropped_and_counted_and_nothing_waits() -> None:
    async def scenario() -> None:
        api = MemoryAPI()

        async def hang(what: str) -> None:
            await asyncio.sleep(3600)

        api.fault = hang
        async with recording(api, Limits(pending=10)) as (recorder, outcomes):
            for number in range(40):
                recorder.event("HTTPSEdge", {**EDGE, "uid": str(number)}, "Normal", "R", "m")
            assert {"dropped": 30} == outcomes

    run(scenario())


def test_an_object_that_says_something_else_each_time_is_silenced_but_no_other() -> None:
    async def scenario() -> None:
        api = MemoryAPI()
        async with recording(api, Limits(per_object=5, object_seconds=60)) as (recorder, outcomes):
            for number in range(30):
                recorder.event("HTTPSEdge", EDGE, "Normal", "R", f"message {number}")
            recorder.event("HTTPSEdge", {**EDGE, "uid": "other"}, "Normal", "R", "m")
            await settled()
            assert {"created": 6, "dropped": 25} == outcomes
            await asyncio.sleep(61)
            recorder.event("HTTPSEdge", EDGE, "Normal", "R", "later")
            await settled()
            assert 7 == outcomes["created"]

    run(scenario())


def test_the_rate_is_bounded_and_a_flush_ignores_it() -> None:
    async def scenario() -> None:
        api = MemoryAPI()
        async with recording(api, Limits(per_second=2, burst=4)) as (recorder, outcomes):
            for number in range(100):
                recorder.event("HTTPSEdge", {**EDGE, "uid": str(number)}, "Normal", "R", "m")
            await asyncio.sleep(10)
            assert 23 <= outcomes["created"] <= 25
            assert await recorder.flush(3)
            assert {"created": 100} == outcomes
            assert now() < 1011

    run(scenario())


def test_a_flush_gives_up_when_the_api_server_does_not_answer() -> None:
    async def scenario() -> None:
        api = MemoryAPI()

        async def hang(what: str) -> None:
            await asyncio.sleep(3600)

        api.fault = hang
        async with recording(api) as (recorder, _):
            recorder.event("HTTPSEdge", EDGE, "Normal", "R", "m")
            assert not await recorder.flush(2)
            assert now() == 1002

    run(scenario())


def test_a_busy_api_server_is_tried_again() -> None:
    async def scenario() -> None:
        api = MemoryAPI()
        left = iter((True, True))

        async def busy(what: str) -> None:
            if next(left, False):
                raise errors.Unavailable("503", status=503)

        api.fault = busy
        async with recording(api) as (recorder, outcomes):
            recorder.event("HTTPSEdge", EDGE, "Normal", "R", "m")
            await asyncio.sleep(10)
        assert {"created": 1} == outcomes

    run(scenario())


@pytest.mark.parametrize("error", [errors.Forbidden("no", status=403), errors.Invalid("bad", status=422)])
def test_a_refused_event_is_counted_and_the_next_is_written(error: errors.KubeError) -> None:
    async def scenario() -> None:
        api = MemoryAPI()
        refused = iter((True,))

        async def refuse(what: str) -> None:
            if next(refused, False):
                raise error

        api.fault = refuse
        async with recording(api) as (recorder, outcomes):
            recorder.event("HTTPSEdge", EDGE, "Normal", "R", "1")
            recorder.event("HTTPSEdge", EDGE, "Normal", "R", "2")
            await asyncio.sleep(10)
        assert {"created": 1, "failed": 1} == outcomes

    run(scenario())


def test_what_is_remembered_is_bounded() -> None:
    async def scenario() -> None:
        api = MemoryAPI()
        async with recording(api, Limits(pending=100_000, burst=5000)) as (recorder, _):
            for number in range(3000):
                recorder.event("HTTPSEdge", {**EDGE, "uid": str(number)}, "Normal", "R", "m")
            await asyncio.sleep(60)
            assert len(recorder._said) <= 1000
            assert len(recorder._objects) <= 1000

    run(scenario())


def test_an_event_about_an_object_of_the_whole_cluster_goes_to_the_default_namespace() -> None:
    async def scenario() -> None:
        api = MemoryAPI()
        async with recording(api) as (recorder, _):
            recorder.event("ClusterConnection", {"name": "default", "uid": "7"}, "Warning", "Down", "401")
            await settled()
        (event,) = written(api)
        assert event["metadata"]["namespace"] == "default"
        assert "namespace" not in event["involvedObject"]

    run(scenario())
