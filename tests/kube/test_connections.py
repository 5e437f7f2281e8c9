"""Passes of connections between events, Secrets and faults: who is woken, which key is used, what is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time

import pytest

from edge_operator.engine import standing
from edge_operator.engine.operations import Restart
from edge_operator.engine.references import DEFAULT_CONNECTION
from edge_operator.kube import errors, paths
from edge_operator.kube.anchors import ACCOUNT, SECRET_FINALIZER
from edge_operator.kube.bootstrap import DIGEST_SECRET

from .connected import KIND, MAIN, nothing, scene

REF = {"name": "main"}
LIST = "GET /backends/failover"


# What goes through a connection is woken -------------------------------------------------------


async def test_resources_are_woken_although_the_status_cannot_be_written_at_once():
    async with scene() as found:
        found.resource("waits", "bkdfo_1", REF)
        found.service.accounts["key-a"].append("bkdfo_1")
        found.secret(key="canary-refused")
        await found.work()
        assert found.reason() == "AuthenticationFailed"
        found.secret(key="key-a")
        found.cluster.before = fails_once("PATCH", errors.Conflict("no", status=409))
        with pytest.raises(Restart):
            await found.work()
        await found.work()
        assert found.key_in_use() == "key-a"
        assert (KIND, "a", "waits") in found.woken


def fails_once(method: str, error: Exception):
    left = [error]

    async def fail(what: str) -> None:
        if what.startswith(method) and what.endswith("status") and left:
            raise left.pop()

    return fail


# No pause is shortened by asking again ---------------------------------------------------------


async def test_a_service_that_asks_for_a_pause_is_left_alone_while_an_account_is_looked_at():
    async with scene() as found:
        found.resource("made", "bkdfo_1", REF)
        found.secret(key="key-b")
        found.service.refuses[LIST] = (429, {"Retry-After": "30"})
        found.queue.offers.clear()
        await found.work()
        assert found.reason() == "RateLimited"
        dues = [due for key, due in found.queue.offers if key == MAIN]
        assert all(due is not None and due > time.monotonic() + 20 for due in dues), dues


# An outage is said once ------------------------------------------------------------------------


@pytest.mark.fault("a connection whose failures differ")
async def test_a_connection_says_the_first_failure_of_an_outage_until_it_is_over():
    async with scene() as found:
        found.resource("waits", "bkdfo_1", REF)
        codes = itertools.cycle([502, 503, 500, 504])

        async def fail(what: str) -> None:
            found.service.refuses[what] = (next(codes), {})

        found.service.before = fail
        for _ in range(5):
            found.door().failed("the service answers 502")
        found.cluster.log.clear()
        said = []
        for _ in range(3):
            await found.work()
            said.append(found.status()["lastError"])
        assert len(set(said)) == 1
        assert said[0].startswith("the service answers 50")
        assert len([write for write in found.cluster.log if write.endswith("status")]) == 1
        assert found.reason() == "ServiceUnavailable"
        assert found.told == ["ServiceUnavailable"]
        found.service.before = nothing
        found.service.refuses.clear()
        await found.work()
        assert found.reason() == "Connected"
        found.service.refuses["GET /api_keys"] = (504, {})
        for _ in range(5):
            found.door().failed("the service answers 504")
        await found.work()
        assert found.status()["lastError"] == "the service answers 504", "another outage"


@pytest.mark.fault("a new account that cannot be looked at, in an outage whose failures differ")
async def test_resources_of_a_connection_that_cannot_be_looked_at_are_told_the_same_all_along():
    async with scene() as found:
        found.resource("made", "bkdfo_1", REF)
        found.secret(key="key-b")
        codes, shut = itertools.cycle([502, 503]), set()
        found.cluster.log.clear()
        for _ in range(6):
            found.service.refuses[LIST] = (next(codes), {})
            await found.work()
            shut.add(found.door().shut)
        assert len(shut) == 1
        assert len([said for said in found.cluster.log if said.endswith("status")]) == 1
        found.service.refuses[LIST] = (503, {})
        found.event(found.connect(timeout="4s"))
        await found.work()
        assert found.status()["lastError"] == "the service answers 503", "another spec, another look"


# Nothing is made in an account that a connection leads to no more ------------------------------


async def test_a_pass_does_not_open_a_door_that_an_edit_shut_meanwhile():
    async with scene() as found:
        found.secret(key="key-b")
        edited = found.service.url + "/elsewhere"

        async def edit(_: str) -> None:
            found.service.before = nothing
            found.event(found.connect(url=edited))

        found.service.before = edit
        with pytest.raises(Restart):
            await found.work()
        assert found.key_in_use() is None


async def test_a_live_read_shuts_the_door_like_an_event_does():
    async with scene() as found:
        found.secret(key="key-b")
        found.cluster.before = fails_once("PATCH", errors.Conflict("no", status=409))
        with pytest.raises(Restart):
            await found.work()
        found.connect(url=found.service.url + "/elsewhere")
        seen = []

        async def look(_: str) -> None:
            seen.append(found.key_in_use())

        found.service.before = look
        await found.work()
        assert seen
        assert set(seen) == {None}


async def test_a_live_read_that_is_older_than_an_event_is_not_believed():
    async with scene() as found:
        found.secret(key="key-b")
        found.cluster.before = fails_once("PATCH", errors.Conflict("no", status=409))
        with pytest.raises(Restart):
            await found.work()
        newer = found.connect(timeout="2s")
        older = {**newer, "metadata": {**newer["metadata"], "resourceVersion": "3", "generation": 1}}
        older = {**older, "spec": {**older["spec"], "timeout": "4s"}}
        found.cluster.objects[found.at()] = older

        async def overtake(what: str) -> None:
            if what == f"GET {found.at()}":
                found.event(newer)

        found.cluster.before = overtake
        with contextlib.suppress(Restart):
            await found.work()
        found.cluster.before = nothing
        found.cluster.objects[found.at()] = newer
        await found.work()
        assert found.connections._accounts[MAIN].terms.call_seconds == 2.0  # type: ignore[union-attr]


async def test_what_was_made_while_an_account_was_looked_at_counts():
    async with scene() as found:
        found.secret(key="key-b")

        async def make(_: str) -> None:
            found.resource("made", "bkdfo_1", REF)

        found.service.before = make
        with pytest.raises(Restart):
            await found.work()
        found.service.before = nothing
        await found.work()
        assert found.reason() == "AccountMismatch"
        assert found.key_in_use() is None


# The default connection, with and without flags ------------------------------------------------


async def test_flags_are_not_used_at_once_for_what_a_cluster_connection_made():
    async with scene(connected=False) as found:
        found.connections.use_flags(found.terms("key-a"))
        await found.work(DEFAULT_CONNECTION)
        assert found.key_in_use(DEFAULT_CONNECTION) == "key-a"
        found.secret(key="key-b", namespace="op")
        found.event(found.connect(DEFAULT_CONNECTION), "ADDED")
        assert found.key_in_use(DEFAULT_CONNECTION) is None
        await found.work(DEFAULT_CONNECTION)
        found.resource("made", "bkdfo_b")
        found.service.accounts["key-b"].append("bkdfo_b")
        found.gone(DEFAULT_CONNECTION)
        assert found.key_in_use(DEFAULT_CONNECTION) is None, "nothing more in the account of before"
        await found.work(DEFAULT_CONNECTION)
        assert found.key_in_use(DEFAULT_CONNECTION) is None, "nothing of it is in the account of the flags"


async def test_flags_that_return_to_an_account_that_was_left_are_looked_at():
    async with scene(connected=False) as found:
        found.connections.use_flags(found.terms("key-a"))
        await found.work(DEFAULT_CONNECTION)
        found.resource("made", "bkdfo_a")
        moved = found.terms("key-b")
        at = paths.secret("op", DIGEST_SECRET)
        annotations = {standing.ACCEPT: moved.fingerprint(b"digest key")}
        await found.cluster.merge_patch(at, {"metadata": {"annotations": annotations}})
        found.connections.use_flags(moved)
        await found.work(DEFAULT_CONNECTION)
        assert found.key_in_use(DEFAULT_CONNECTION) == "key-b", "as a person said"
        assert found.cluster.objects[at]["metadata"]["annotations"][ACCOUNT] == moved.fingerprint(b"digest key")
        found.connections.use_flags(found.terms("key-a"))
        await found.work(DEFAULT_CONNECTION)
        assert found.key_in_use(DEFAULT_CONNECTION) is None


# Looking for what was made ---------------------------------------------------------------------


@pytest.mark.parametrize("status", [403, 405])
@pytest.mark.parametrize(("key", "reason"), [("key-b", "Connected"), ("key-c", "AccountMismatch")])
async def test_where_lists_are_refused_objects_are_asked_for_one_by_one(status, key, reason):
    async with scene() as found:
        found.resource("made", "bkdfo_1", REF)
        found.service.accounts |= {"key-b": ["bkdfo_1"], "key-c": []}
        found.service.refuses[LIST] = (status, {})
        found.secret(key=key)
        await found.work()
        assert found.reason() == reason


# Connections that go, and Secrets that stay ----------------------------------------------------


async def test_a_connection_that_is_deleted_before_its_status_is_written_leaves_no_finalizer():
    async with scene(connected=False) as found:
        found.secret()
        found.event(found.connect(), "ADDED")

        async def delete(_: str) -> None:
            found.service.before = nothing
            found.delete()

        found.service.before = delete
        with pytest.raises(Restart):
            await found.work()
        assert SECRET_FINALIZER in found.finalizers()
        await found.work()
        assert found.at() not in found.cluster.objects
        assert SECRET_FINALIZER not in found.finalizers()


async def test_each_of_several_secrets_that_were_named_one_after_the_other_is_let_go():
    async with scene() as found:
        found.secret("second")
        found.secret("third")
        found.event(found.connect(account="second"))
        found.cluster.before = fails_once("PATCH", errors.Conflict("no", status=409))
        with pytest.raises(Restart):
            await found.work()
        found.event(found.connect(account="third"))
        await found.work()
        held = [name for name in ("account", "second", "third") if found.finalizers(name)]
        assert held == ["third"]


async def test_a_connection_that_was_taken_away_by_force_leaves_no_finalizer():
    async with scene() as found:
        found.gone()
        await found.work()
        assert SECRET_FINALIZER not in found.finalizers()


async def test_a_secret_that_another_connection_names_is_not_let_go():
    async with scene() as found:
        found.event(found.connect(("Connection", "a", "other"), uid="u2"), "ADDED")
        found.gone()
        await found.work()
        assert SECRET_FINALIZER in found.finalizers()


async def test_the_client_of_a_connection_that_is_gone_is_closed():
    async with scene() as found:
        account = found.connections._accounts[MAIN]
        client = account.remote.client
        found.gone()
        await found.work()
        assert MAIN not in found.connections._accounts
        await account.close()
        assert client._exchange.closed


async def test_a_connection_that_nobody_made_is_not_kept_in_mind():
    async with scene(connected=False) as found:
        assert found.connections.marked(("Connection", "a", "made-up"))
        assert not found.connections._accounts


async def test_a_wiped_status_is_written_again():
    async with scene() as found:
        before = found.status()
        body = found.cluster.objects[found.at()]
        found.queue.offers.clear()
        found.event(found.cluster.put(found.at(), {k: v for k, v in body.items() if k != "status"}))
        assert [key for key, _ in found.queue.offers] == [MAIN]
        await found.work()
        assert found.status()["account"] == before["account"]
        assert found.reason() == "Connected"


async def test_first_looks_end_with_the_leadership():
    async with scene() as found:
        forever = asyncio.Event()

        async def wait(_: str) -> None:
            await forever.wait()

        found.cluster.before = wait
        first = asyncio.create_task(found.connections.first(60.0))
        await asyncio.sleep(0.01)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await asyncio.sleep(0)
        assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("first look")]
        forever.set()
