"""A leader that is frozen between its check and a request on a Secret: what it sends late does no harm, or is not sent.

The real cluster class and the real rules of the Lease, on an API server in memory that knows versions and conflicts.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from edge_operator.door import NotLeading
from edge_operator.engine.operations import Restart
from edge_operator.engine.state import Published
from edge_operator.kinds import KINDS
from edge_operator.kube import errors, paths
from edge_operator.kube.cluster import KubeCluster
from edge_operator.kube.index import Index
from edge_operator.kube.lease import Leadership

from .connected import Cluster

JSON = dict[str, Any]
KIND, AT, WRITE_SECONDS = KINDS["APIKey"], paths.secret("a", "s"), 5.0
RESOURCE = {
    "apiVersion": "edge-operator.dev/v1alpha1",
    "kind": KIND.name,
    "metadata": {"name": "example", "namespace": "a", "uid": "1"},
}
DATA = {"token": "t2", "id": "ak_2"}


class Api(Cluster):
    """With creations."""

    async def create(self, at: str, body: JSON) -> JSON:
        await self._enter(f"POST {at}")
        target = f"{at}/{body['metadata']['name']}"
        if target in self.objects:
            raise errors.AlreadyExists("no", status=409)
        return self.put(target, body)

    async def replace(self, at: str, body: JSON) -> JSON:
        await self._enter(f"PUT {at}")
        return self.put(at, body)


@dataclass
class Leader:
    """One replica that leads by a Lease, and the hands of another one."""

    api: Api = field(default_factory=Api)
    now: float = 0.0

    def __post_init__(self) -> None:
        self.lease = Leadership(self.api, "operator", "lease", monotonic=lambda: self.now)
        self.cluster = KubeCluster(
            self.api,  # type: ignore[arg-type]  # as far as used
            Index(KINDS),
            cluster_id="c",
            digest_key=b"k",
            may_write=self.may_write,
            tell=lambda *_: None,
            wake=lambda _: None,
        )

    async def lead(self) -> None:
        assert await self.lease._attempt(5.0)
        self.api.log.clear()

    def may_write(self) -> None:
        if not self.lease.still_leading(WRITE_SECONDS):
            raise NotLeading

    def holds(self, id_: str, owner: str | None = "1") -> None:
        """The Secret, as a leader wrote it."""
        owners = [{"kind": KIND.name, "name": "example", "uid": owner}] if owner else []
        labels = {"edge-operator.dev/kind": KIND.name}
        meta = {"name": "s", "labels": labels, "annotations": {"edge-operator.dev/id": id_}, "ownerReferences": owners}
        data = {key: base64.b64encode(f"{key} of {id_}".encode()).decode() for key in ("token", "id")}
        self.api.put(AT, {"type": "Opaque", "metadata": meta, "data": data})

    @property
    def secret(self) -> JSON:
        return copy.deepcopy(self.api.objects[AT])

    @property
    def written(self) -> list[str]:
        return [said for said in self.api.log if not said.startswith("GET")]

    async def published(self) -> Published | None:
        return await self.cluster.published(KIND, RESOURCE, "s")


Act = Callable[[Leader, Published | None], Awaitable[object]]


async def publish(leader: Leader, seen: Published | None) -> object:
    return await leader.cluster.publish(KIND, RESOURCE, "s", "ak_2", DATA, seen)


async def disown(leader: Leader, _: Published | None) -> object:
    return await leader.cluster.disown(KIND, RESOURCE, "s")


async def take_over(leader: Leader, seen: Published | None) -> object:
    return await leader.cluster.take_over(KIND, RESOURCE, "s", seen)


@dataclass(frozen=True)
class Case:
    """What an old leader decided, on what, and what the new one writes before it gets to it."""

    act: Act
    before: Callable[[Leader], None]
    other: Callable[[Leader], None]


CASES = {
    "a first publication": Case(publish, lambda _: None, lambda leader: leader.holds("ak_3")),
    "a publication": Case(publish, lambda leader: leader.holds("ak_1"), lambda leader: leader.holds("ak_3")),
    "disowning": Case(disown, lambda leader: leader.holds("ak_1"), lambda leader: leader.holds("ak_1", None)),
    "taking over": Case(take_over, lambda leader: leader.holds("ak_1", "0"), lambda leader: leader.holds("ak_1", "1")),
    "taking another over": Case(
        take_over, lambda leader: leader.holds("ak_1", "0"), lambda leader: leader.holds("ak_3", "0")
    ),
}
each = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


async def begun(case: Case) -> tuple[Leader, Published | None]:
    """A leader, and what it decided on."""
    leader = Leader()
    await leader.lead()
    case.before(leader)
    seen = await leader.published()
    leader.api.log.clear()
    return leader, seen


@each
async def test_no_write_begins_once_the_lease_may_run_out(case: Case) -> None:
    """Time passes while the Secret is read, as it does in a process that is frozen."""
    leader, seen = await begun(case)
    before = dict(leader.api.objects)

    async def freeze(what: str) -> None:
        leader.now += 60.0 if what.startswith("GET") else 0.0

    leader.api.before = freeze
    with pytest.raises(NotLeading):
        await case.act(leader, seen)

    assert (leader.written, leader.api.objects) == ([], before)


@each
async def test_no_write_is_repeated_once_the_lease_may_run_out(case: Case) -> None:
    """The first one conflicts, with something that does not matter, and took a while."""
    leader, seen = await begun(case)

    async def disturb(what: str) -> None:
        if what.startswith("GET"):
            return
        leader.now += 60.0
        case.before(leader)
        if AT not in leader.api.objects:
            leader.api.before = nothing
            raise errors.Conflict("no", status=409)

    leader.api.before = disturb
    with pytest.raises((NotLeading, Restart)):
        await case.act(leader, seen)

    assert len(leader.written) == 1


async def nothing(what: str) -> None:
    """No disturbance."""


@pytest.mark.fault("an old leader writes a Secret late, from what it decided before")
@each
@pytest.mark.parametrize("at", ["before it reads the Secret again", "before its write arrives"])
async def test_what_the_new_leader_wrote_stays(case: Case, at: str) -> None:
    leader, seen = await begun(case)
    theirs: list[JSON] = []

    async def overtake(what: str) -> None:
        if not theirs and what.startswith("GET") == ("reads" in at):
            case.other(leader)
            theirs.append(leader.secret)

    leader.api.before = overtake
    if case.act is disown:
        await case.act(leader, seen)  # it is as it should be already
    else:
        with pytest.raises(Restart):
            await case.act(leader, seen)

    assert [leader.secret] == theirs


async def test_a_label_of_somebody_else_stops_nothing() -> None:
    leader, seen = await begun(CASES["a publication"])

    async def label(what: str) -> None:
        found = leader.secret
        if what.startswith("PATCH") and "theirs" not in found["metadata"]["labels"]:
            found["metadata"]["labels"]["theirs"] = "yes"
            leader.api.put(AT, found)

    leader.api.before = label
    after = await leader.cluster.publish(KIND, RESOURCE, "s", "ak_2", DATA, seen)

    meta = leader.secret["metadata"]
    assert (meta["annotations"]["edge-operator.dev/id"], meta["labels"]["theirs"]) == ("ak_2", "yes")
    assert (after.ours, after.id, after.token) == (True, "ak_2", "t2")
    assert after == await leader.published(), "what follows in the same pass is decided on this"
