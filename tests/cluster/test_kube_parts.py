"""The low-level parts of `kube` on a real API server: client, watch, lease and events."""

import asyncio
import base64
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import pytest

from edge_operator.kube import errors, paths
from edge_operator.kube.client import KubeAPI, Options
from edge_operator.kube.events import Recorder
from edge_operator.kube.lease import Leadership, Terms
from edge_operator.kube.watch import MetadataWatch, Pauses
from harness import kubeconfig
from harness.cluster import Cluster

QUICK = Terms(lease_seconds=2.0, renew_deadline_seconds=1.4, retry_seconds=0.3)
PATIENCE_SECONDS = 20.0


@pytest.fixture
async def api(control_plane: Cluster) -> AsyncIterator[KubeAPI]:
    async with await KubeAPI.connect(control_plane.kubeconfig, Options(page_size=2)) as client:
        yield client


async def until(question: Callable[[], Any], what: str) -> None:
    """Return when the answer is yes."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not question():
        assert time.monotonic() < deadline, f"waited for {what}, in vain"
        await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def beside(work: Any) -> AsyncIterator[asyncio.Task[None]]:
    """A task that is canceled in the end."""
    task = asyncio.ensure_future(work)
    try:
        yield task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def secret(name: str, value: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": {"key": base64.b64encode(value.encode()).decode()}}


async def test_objects_are_created_changed_listed_and_deleted(api: KubeAPI, namespace: str) -> None:
    where = paths.secret(namespace)
    made = [await api.create(where, secret(f"s{n}", "v")) for n in range(5)]
    assert ["s0", "s1", "s2", "s3", "s4"] == [s["metadata"]["name"] for s in (await api.list(where)).items]
    first = paths.secret(namespace, "s0")
    version = made[0]["metadata"]["resourceVersion"]
    guarded = {"metadata": {"resourceVersion": version, "labels": {"a": "b"}}}
    changed = await api.merge_patch(first, guarded)
    assert {"a": "b"} == changed["metadata"]["labels"]
    assert "edge-operator" == changed["metadata"]["managedFields"][0]["manager"]
    with pytest.raises(errors.Conflict):
        await api.merge_patch(first, guarded)
    with pytest.raises(errors.AlreadyExists):
        await api.create(where, secret("s0", "v"))
    with pytest.raises(errors.Conflict):
        await api.delete(first, uid="00000000-0000-0000-0000-000000000000")
    await api.json_patch(first, [{"op": "remove", "path": "/metadata/labels"}])
    light = await api.get(first, metadata_only=True)
    assert "data" not in light
    assert "labels" not in light["metadata"]
    await api.delete(first, uid=made[0]["metadata"]["uid"])
    with pytest.raises(errors.NotFound):
        await api.get(first)


async def test_a_refused_secret_is_not_quoted(api: KubeAPI, namespace: str) -> None:
    with pytest.raises(errors.KubeError) as raised:
        await api.create(paths.secret(namespace), {"metadata": {"name": "x"}, "data": {"key": "canary-17!"}})
    assert "canary" not in str(raised.value)


async def test_a_namespace_that_goes_is_told_from_a_lack_of_rights(
    api: KubeAPI, control_plane: Cluster, namespace: str
) -> None:
    held = {"metadata": {"name": "held", "finalizers": ["test.edge-operator.dev/held"]}}
    await api.create(paths.resource("", "v1", "configmaps", namespace), held)
    path = control_plane.service_account_kubeconfig(namespace, "default")
    await api.delete(f"/api/v1/namespaces/{namespace}")
    with pytest.raises(errors.Forbidden) as terminating:
        await api.create(paths.secret(namespace), secret("s", "v"))
    assert terminating.value.namespace_terminating
    async with await KubeAPI.connect(path) as nobody:
        with pytest.raises(errors.KubeError) as refused:
            await nobody.list(paths.secret(namespace))
    assert not getattr(refused.value, "namespace_terminating", False)


async def test_an_unknown_token_is_said_to_be_one(control_plane: Cluster) -> None:
    path = kubeconfig.write(control_plane.folder / "stranger.yaml", control_plane.server, "stranger", "nonsense")
    async with await KubeAPI.connect(path) as stranger:
        with pytest.raises(errors.Unauthorized):
            await stranger.get("/api/v1/namespaces")


async def test_a_watch_from_a_version_that_is_none_is_refused(api: KubeAPI, namespace: str) -> None:
    async with aclosing(api.watch(paths.secret(namespace), resource_version="nonsense")) as events:
        with pytest.raises(errors.KubeError):
            await asyncio.wait_for(anext(events), PATIENCE_SECONDS)


async def test_metadata_is_watched_through_a_crash_of_the_api_server(
    api: KubeAPI, control_plane: Cluster, namespace: str
) -> None:
    told: dict[str, bool] = {}
    seen: list[str] = []

    def note(_: str, name: str, metadata: Any) -> None:
        told[name] = metadata is not None
        seen.append(json.dumps(metadata))

    where = paths.secret(namespace)
    for name in ("a", "b", "c"):
        await api.create(where, secret(name, "canary-55"))
    watch = MetadataWatch(api, note, namespaces=[namespace], pauses=Pauses(first_seconds=0.05, ceiling_seconds=0.2))
    async with beside(watch.run()):
        await asyncio.wait_for(watch.synced(), PATIENCE_SECONDS)
        assert {"a": True, "b": True, "c": True} == told
        await api.create(where, secret("d", "canary-55"))
        await until(lambda: told.get("d"), "a new Secret to be told")
        control_plane.restart_apiserver(graceful=False)
        await api.delete(f"{where}/a")
        await api.create(where, secret("e", "canary-55"))
        await until(lambda: told.get("e") and not told["a"], "what happened after the restart to be told")
    assert "canary" not in "".join(seen)
    assert base64.b64encode(b"canary-55").decode() not in "".join(seen)


async def test_rights_given_later_are_noticed(control_plane: Cluster, namespace: str) -> None:
    path = control_plane.service_account_kubeconfig(namespace, "default")
    control_plane.kubectl("create", "secret", "generic", "x", "--namespace", namespace)
    told: list[str] = []
    async with await KubeAPI.connect(path) as limited:
        watch = MetadataWatch(
            limited, lambda _, name, __: told.append(name), namespaces=[namespace], pauses=Pauses(forbidden_seconds=0.2)
        )
        async with beside(watch.run()):
            await asyncio.wait_for(watch.synced(), PATIENCE_SECONDS)
            assert [] == told
            rights = ["--verb=list,watch", "--resource=secrets", "--namespace", namespace]
            control_plane.kubectl("create", "role", "r", *rights)
            account = f"--serviceaccount={namespace}:default"
            control_plane.kubectl("create", "rolebinding", "r", "--role=r", account, "--namespace", namespace)
            await until(lambda: told == ["x"], "the Secret to be told once it may be read")


class Replica:
    """A contender for the Lease of a namespace."""

    def __init__(self, api: KubeAPI, namespace: str, name: str) -> None:
        self.leadership = Leadership(api, namespace, "edge-operator", holder=name, terms=QUICK)
        self.started = 0.0

    async def run(self) -> None:
        async def on_started() -> None:
            self.started = time.monotonic()

        async def on_lost() -> None:
            assert not self.leadership.leading

        await self.leadership.run(on_started, on_lost)


async def test_a_lease_changes_hands_at_once_when_freed(api: KubeAPI, control_plane: Cluster, namespace: str) -> None:
    first, second = (Replica(api, namespace, name) for name in "ab")
    async with beside(first.run()) as task:
        await until(lambda: first.leadership.leading, "the first to lead")
        async with beside(second.run()):
            await asyncio.sleep(QUICK.lease_seconds * 1.5)
            assert (True, False) == (first.leadership.leading, second.leadership.leading)
            assert "a" == control_plane.kubectl(
                "get", "lease", "edge-operator", "-n", namespace, "-o", "jsonpath={.spec.holderIdentity}"
            )
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            freed = time.monotonic()
            await until(lambda: second.leadership.leading, "the second to lead")
    assert second.started - freed < QUICK.lease_seconds / 2
    lease = await api.get(paths.resource("coordination.k8s.io", "v1", "leases", namespace, "edge-operator"))
    assert ("", 1) == (lease["spec"]["holderIdentity"], lease["spec"]["leaseTransitions"])


async def test_a_lease_is_taken_over_when_its_holder_is_silent(
    control_plane: Cluster, api: KubeAPI, namespace: str
) -> None:
    """The holder's client is closed under it, so that it can neither renew nor free the lease."""
    async with await KubeAPI.connect(control_plane.kubeconfig) as own:
        first, second = Replica(own, namespace, "a"), Replica(api, namespace, "b")
        async with beside(first.run()):
            await until(lambda: first.leadership.leading, "the first to lead")
            async with beside(second.run()):
                await own.close()
                silenced = time.monotonic()
                while not second.leadership.leading:
                    silent_seconds = time.monotonic() - silenced
                    assert not first.leadership.leading or silent_seconds < QUICK.renew_deadline_seconds
                    assert silent_seconds < QUICK.lease_seconds + 3 * QUICK.retry_seconds
                    await asyncio.sleep(0.01)
                assert not first.leadership.leading


async def test_describe_shows_what_happened_and_how_often(api: KubeAPI, control_plane: Cluster, namespace: str) -> None:
    about = await api.create(paths.resource("", "v1", "configmaps", namespace), {"metadata": {"name": "web"}})
    recorder = Recorder(api)
    async with beside(recorder.run()):
        for _ in range(3):
            recorder.event("ConfigMap", about["metadata"], "Warning", "Conflict", "taken elsewhere", api_version="v1")
            assert await recorder.flush(5)
        recorder.event("ConfigMap", about["metadata"], "Normal", "Created", "made edghts_1", api_version="v1")
        assert await recorder.flush(5)
    shown = control_plane.kubectl("describe", "configmap", "web", "--namespace", namespace)
    lines = [line.split() for line in shown.partition("Events:")[2].splitlines()]
    warning = next(line for line in lines if "Conflict" in line)
    assert ["Warning", "Conflict", "edge-operator", "taken", "elsewhere"] == [warning[0], warning[1], *warning[-3:]]
    assert "(x3" in warning
    assert any(
        line[:2] == ["Normal", "Created"] and line[-3:] == ["edge-operator", "made", "edghts_1"] for line in lines
    )
    assert 2 == len((await api.list(paths.resource("", "v1", "events", namespace))).items)
