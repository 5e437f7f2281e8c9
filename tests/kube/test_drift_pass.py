"""A round of the drift pass takes lists, of the account and of the cluster, and no read of a single resource."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from edge_operator.declare import Kind
from edge_operator.engine import marker
from edge_operator.engine.operations import Missing, Stalled, Unsupported, Waiting
from edge_operator.engine.reasons import Stalls, Waits
from edge_operator.engine.references import DEFAULT_CONNECTION
from edge_operator.kinds import KINDS
from edge_operator.kube import errors
from edge_operator.kube.drift import DriftPass, fingerprint, settled
from edge_operator.kube.index import Index, Key
from edge_operator.kube.marks import Marks
from edge_operator.ports import Outcome, Owned, Resource
from edge_operator.remote import Listing

KIND = KINDS["FailoverBackend"]


def resource(name: str, version: int = 1, id_: str | None = None) -> Resource:
    meta = {"namespace": "a", "name": name, "uid": name, "resourceVersion": str(version), "generation": 1}
    spec = {"backends": [{"id": "bkdtg_1"}]}
    return {"kind": KIND.name, "metadata": meta, "spec": spec, "status": {"id": id_} if id_ else {}}


def key(name: str) -> Key:
    return (KIND.name, "a", name)


class Account:
    """A service whose lists say this, or fail."""

    def __init__(self, **objects: Any) -> None:
        self.objects = objects
        self.failure: Exception | None = None
        self.lists = 0
        self.owned: dict[tuple[str, str], list[Owned]] = {}

    async def listing(self, _collection: Any, since: float) -> Listing:
        self.lists += 1
        if self.failure is not None:
            raise self.failure
        return Listing(since, {id_: {"id": id_, **answer} for id_, answer in self.objects.items()}, self.owned)

    def forget_listings(self) -> None:
        pass


class World:
    """An index with these resources, as it is after their passes, and what a round offers and reads."""

    def __init__(self, *names: str, page_size: int = 500) -> None:
        self.index, self.offered, self.lists = Index(KINDS), list[Key](), 0
        self.stored = {name: resource(name, id_=name) for name in names}
        self.account: Any = Account(**{name: {"description": ""} for name in names})
        self.accounts: list[Any] = []
        self.defects: list[str] = []
        self.refusal: Exception | None = None
        self.page_size = page_size
        self.orphans: dict[str, int] = {}
        self.marks = Marks("us", self.index, count=self.orphans.__setitem__)
        for stored in self.stored.values():
            self.index.observe(KIND, stored, dirty=False)

    async def round(self) -> None:
        drift = DriftPass(
            KINDS, self.index, lambda: self.accounts or [(DEFAULT_CONNECTION, self.account)], self.offered.append,
            self.marks, monotonic=lambda: 7.0, interval_seconds=1.0, bodies=self.bodies, page_size=self.page_size,
            defect=self.defects.append,
        )  # fmt: skip
        await drift.round()

    async def bodies(self, kind: Kind[Any]) -> AsyncIterator[Resource]:
        assert kind is KIND
        self.lists += 1
        if self.refusal is not None:
            raise self.refusal
        for stored in self.stored.values():
            yield stored

    def sync(self, *names: str) -> None:
        """Let passes find these in sync with what the account holds."""
        for name in names:
            entry = self.index.get(key(name))
            assert entry is not None
            snapshot, entry.snapshot, entry.body, entry.ready = entry.snapshot, None, None, True
            settled(entry, snapshot, Outcome(ready=True, reason="Available"))


async def test_the_first_round_offers_all_with_their_bodies_from_one_list() -> None:
    world = World("x", "y")

    await world.round()

    entries = [world.index.get(key(name)) for name in ("x", "y")]
    assert world.offered == [key("x"), key("y")]
    assert [e.body for e in entries if e] == [world.stored["x"], world.stored["y"]]
    assert [e.snapshot.answer["id"] for e in entries if e and e.snapshot and e.snapshot.answer] == ["x", "y"]
    assert (world.lists, world.account.lists) == (1, 1)


async def test_a_round_with_nothing_new_offers_nothing_and_lists_no_resource() -> None:
    world = World("x", "y")
    await world.round()
    world.sync("x", "y")
    world.offered.clear()

    await world.round()

    assert world.offered == []
    assert (world.lists, world.account.lists) == (1, 2)


async def test_one_that_differs_among_many_is_left_to_a_read_of_its_own() -> None:
    """Where a list would take more requests than that."""
    names = [f"b{number}" for number in range(5)]
    world = World(*names, page_size=2)
    await world.round()
    world.sync(*names)
    world.offered.clear()
    world.account.objects["b3"] = {"description": "edited"}

    await world.round()

    entry = world.index.get(key("b3"))
    assert world.offered == [key("b3")]
    assert entry is not None
    assert entry.body is None
    assert world.lists == 1


@pytest.mark.parametrize("newer", ["in the index", "in the list"])
async def test_a_body_of_another_version_than_the_index_knows_is_not_used(newer: str) -> None:
    world = World("x")
    if newer == "in the list":
        world.stored["x"] = resource("x", version=2, id_="x")
    else:
        world.index.observe(KIND, resource("x", version=2, id_="x"), dirty=False)

    await world.round()

    entry = world.index.get(key("x"))
    assert entry is not None
    assert entry.body is None
    assert world.offered == [key("x")]


async def test_a_refused_list_leaves_the_bodies_to_the_passes() -> None:
    world = World("x")
    world.refusal = errors.Unavailable("busy")

    await world.round()

    assert world.offered == [key("x")]


async def test_an_account_that_cannot_be_listed_offers_nothing() -> None:
    world = World("x")
    world.account.failure = Waiting(Waits.SERVICE_UNAVAILABLE, "the service does not answer")

    await world.round()

    assert (world.offered, world.lists) == ([], 0)


@pytest.mark.fault("403, 404 or 405 to the list of one collection")
@pytest.mark.parametrize(
    "why",
    [Stalled(Stalls.PERMISSION_DENIED, "no"), Unsupported("GET /backends/failover"), Missing("/backends/failover")],
    ids=["403", "405", "404"],
)
async def test_where_a_list_is_refused_what_is_not_in_sync_is_looked_at_all_the_same(why: Exception) -> None:
    world = World("x", "y", "z")
    world.sync("y")
    world.account.failure = why

    await world.round()

    entry = world.index.get(key("x"))
    assert world.offered == [key("x"), key("z")]
    assert entry is not None
    assert entry.snapshot is None
    assert world.account.lists == 1


@pytest.mark.fault("a defect in the look at one collection")
async def test_a_defect_in_one_look_is_counted_and_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    world = World("x")
    broken = World("b")
    broken.account.failure = KeyError("canary-secret")
    other = ("Connection", "a", "broken")
    stored = {**resource("b", version=9, id_="b")}
    stored["spec"] = {**stored["spec"], "connectionRef": {"name": "broken"}}
    world.index.observe(KIND, stored, dirty=False)
    world.accounts = [(other, broken.account), (DEFAULT_CONNECTION, world.account)]

    await world.round()

    assert (world.offered, world.defects) == ([key("x")], ["drift"])
    (told,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert told.startswith("no look at /backends/failover in this round: a defect of the operator: KeyError at test_")
    assert "canary-secret" not in caplog.text


def marked(id_: str, uid: str, place: str = "a/x") -> Owned:
    return Owned(id_, {}, marker.Owner("us", uid, "n", place), {"id": id_})


async def test_a_further_object_of_a_resource_in_sync_has_it_looked_at() -> None:
    world = World("x", "y")
    await world.round()
    world.sync("x", "y")
    world.offered.clear()
    more = [marked("x", "x"), marked("x2", "x")]
    world.account.owned = {("us", "x"): more, ("us", "y"): [marked("y", "y")], ("them", "y"): [marked("y2", "y")]}

    await world.round()

    entry = world.index.get(key("x"))
    assert world.offered == [key("x")]
    assert entry is not None
    assert entry.snapshot is not None
    assert entry.snapshot.owned == more


async def test_a_recorded_predecessor_is_nothing_further() -> None:
    world = World("x")
    status = {"id": "x", "previous": [{"id": "x1"}]}
    world.index.observe(KIND, {**resource("x", version=2), "status": status}, dirty=False)
    await world.round()
    world.sync("x")
    world.offered.clear()
    world.account.owned = {("us", "x"): [marked("x", "x"), marked("x1", "x")]}

    await world.round()

    assert world.offered == []


async def test_an_object_of_a_resource_that_is_gone_is_counted_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """At the second list that shows it: a first one may have begun before the deletion."""
    world = World("x")
    world.account.owned = {("us", "gone"): [marked("o1", "gone", "a/old")], ("them", "gone"): [marked("o2", "gone")]}

    counts = []
    for _ in range(3):
        await world.round()
        counts.append(world.orphans[KIND.name])

    (told,) = [record.getMessage() for record in caplog.records if "o1" in record.getMessage()]
    assert counts == [0, 1, 1]
    assert told.startswith("o1 is marked as that of FailoverBackend a/old, which is gone; it is left alone.")
    assert world.offered == [key("x")] * 3


async def test_what_somebody_adopted_or_nobody_watches_is_no_orphan() -> None:
    world = World("x")
    adopter = {**resource("y", version=2), "spec": {"backends": [{"id": "bkdtg_1"}], "externalID": "o1"}}
    world.index.observe(KIND, adopter, dirty=False)
    world.marks = Marks("us", world.index, ("a",), count=world.orphans.__setitem__)
    world.account.owned = {("us", "gone"): [marked("o1", "gone", "a/old"), marked("o2", "gone", "elsewhere/old")]}

    await world.round()
    await world.round()

    assert world.orphans == {KIND.name: 0}


def test_routes_in_an_edge_do_not_count_in_its_fingerprint() -> None:
    assert fingerprint({"id": "1", "routes": [{"id": "2"}]}) == fingerprint({"id": "1", "routes": []})
    assert fingerprint({"id": "1"}) != fingerprint({"id": "2"})
