"""What goes on through a connection while it changes, what is said of it, and key files."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from edge_operator.engine.operations import Waiting
from edge_operator.engine.references import DEFAULT_CONNECTION
from edge_operator.kinds import KINDS
from edge_operator.kube.cluster import KubeCluster, path
from edge_operator.kube.controller import Controller
from edge_operator.kube.flags import Flags

from .connected import KIND, MAIN, Scene, nothing, scene

REF = {"name": "main"}
LIST = "GET /backends/failover"


# Clients that are replaced ---------------------------------------------------------------------


async def test_a_list_that_is_under_way_ends_although_the_key_is_replaced_and_is_read_anew():
    async with scene() as found:
        remote = found.connections.remote(MAIN, "a")
        held, begun = asyncio.Event(), asyncio.Event()

        async def wait(what: str) -> None:
            if what == LIST and not begun.is_set():
                begun.set()
                await held.wait()

        found.service.accounts |= {"key-a": ["bkdfo_1"], "key-b": ["bkdfo_1", "bkdfo_2"]}
        found.service.before = wait
        listing = asyncio.create_task(remote.listing(KINDS[KIND].api, 0.0))
        await begun.wait()
        old = remote.client
        found.secret(key="key-b")
        found.event(found.connect(timeout="1s"))
        await found.work()
        assert remote.client is not old
        assert remote.uses(old)
        held.set()
        assert set((await listing).objects) == {"bkdfo_1", "bkdfo_2"}, "not what the account of before held"
        assert not remote.uses(old)


async def test_a_late_refusal_of_the_old_key_says_nothing_of_the_new_one():
    async with scene() as found:
        remote = found.connections.remote(MAIN, "a")
        held, begun = asyncio.Event(), asyncio.Event()

        async def wait(what: str) -> None:
            if what.endswith("bkdfo_1"):
                begun.set()
                await held.wait()

        found.service.before = wait
        reading = asyncio.create_task(remote.read(KINDS[KIND], "bkdfo_1", {}))
        await begun.wait()
        found.secret(key="key-b")
        await found.work()
        del found.service.accounts["key-a"]
        held.set()
        with pytest.raises(Waiting, match="replaced meanwhile"):
            await reading
        assert found.door().refused is None


# Limits ----------------------------------------------------------------------------------------


async def test_a_look_at_an_account_keeps_to_the_limit_too():
    async with scene() as found:
        account = found.connections._accounts[MAIN]
        slow = dataclasses.replace(found.terms("key-b"), requests_per_minute=6)
        found.service.calls.clear()
        found.service.refuses[LIST] = (405, {})
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await account.holds(slow, [(KINDS[KIND].api, frozenset({"bkdfo_1"}))])
        assert found.service.calls == [LIST]


# What is said ----------------------------------------------------------------------------------


async def test_a_profile_in_a_secret_is_not_quoted():
    async with scene() as found:
        at = {"secretKeyRef": {"name": "account", "key": "api-key"}}
        found.secret(key="{canary: *hunter2")
        found.event(found.connect(customProfile=at))
        await found.work()
        assert found.reason() == "InvalidSpec"
        assert "hunter2" not in str(found.status())
        assert "canary" not in str(found.status())


async def test_connections_are_counted_by_how_they_stand():
    async with scene() as found:
        assert found.connections.counts() == {("Connection", "Connected"): 1}
        found.event(found.connect(("Connection", "a", "new"), uid="u2"), "ADDED")
        found.connections.use_flags(found.terms("canary-refused"))
        found.resource("made", "bkdfo_1")
        await found.work(DEFAULT_CONNECTION)
        assert found.connections.counts() == {
            ("Connection", "Connected"): 1,
            ("Connection", "Unknown"): 1,
            ("flags", "AuthenticationFailed"): 1,
        }


# Resources whose pass is under way -------------------------------------------------------------


def controller(found: Scene) -> Controller:
    """What takes resources down the line in this scene."""
    made = Controller(KINDS, found.cluster, found.index, found.world, grace_seconds=0.0, resync_seconds=600.0)  # type: ignore[arg-type]
    made.queue, made.connections = found.queue, found.connections  # type: ignore[assignment]  # what is asked of it
    made.cluster = KubeCluster(
        found.cluster,  # type: ignore[arg-type]  # likewise
        found.index,
        cluster_id="c",
        digest_key=b"digest key",
        may_write=lambda: None,
        tell=lambda *_: None,
        wake=lambda _: None,
    )
    return made


@pytest.mark.parametrize("shut_at", ["before", "meanwhile"])
async def test_a_resource_that_says_it_waits_while_the_connection_comes_back_goes_on(shut_at):
    async with scene() as found:
        if shut_at == "before":
            found.secret(key="canary-refused")
            await found.work()
        key = (KIND, "a", "first")
        spec = {"backends": [{"id": "bkdtg_1"}], "connectionRef": REF}
        meta = {"namespace": "a", "name": "first", "uid": "u9", "generation": 2}
        said = [{"type": "Ready", "status": "False", "reason": "Progressing", "message": "", "lastTransitionTime": "x"}]
        body = {"kind": KIND, "metadata": meta, "spec": spec, "status": {"conditions": said}}
        at = path(KINDS[KIND], "a", "first")
        found.index.observe(KINDS[KIND], found.cluster.put(at, body))

        async def comes_back(what: str) -> None:
            if what == f"PATCH {at}" and shut_at == "meanwhile":
                found.event(found.connect(url=found.service.url + "/"))
            if what == f"PATCH {at} status":
                found.cluster.before = nothing
                found.secret(key="key-a")
                await found.work()

        found.cluster.before = comes_back
        found.queue.offers.clear()
        await controller(found).work(key)
        assert found.cluster.objects[at]["status"]["conditions"][0]["reason"] == "ConnectionNotReady"
        assert key not in found.woken, "its pass was not over"
        assert key in [offered for offered, _ in found.queue.offers]


# Key files -------------------------------------------------------------------------------------


async def test_a_key_file_with_what_is_no_key_leaves_the_old_key_in_use_and_complains_once(tmp_path, caplog):
    async with scene(connected=False) as found:
        file, used = tmp_path / "key", []
        file.write_text("key-b canary")
        following = asyncio.create_task(
            Flags(found.terms("key-a"), file, look_seconds=0.001).follow(lambda terms: used.append(terms.api_key))
        )
        await asyncio.sleep(0.1)
        assert not used
        assert len([r for r in caplog.records if "stays in use" in r.getMessage()]) == 1
        assert "canary" not in caplog.text
        file.write_text("key-b\n")
        await asyncio.sleep(0.1)
        following.cancel()
        assert used == ["key-b"]
