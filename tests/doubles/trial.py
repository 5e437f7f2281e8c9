"""Many resources of many kinds, all that can happen to them, and what has to hold whenever everything rests.

The state machine of tests/line/test_machine.py draws what happens; here it is done and judged.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from derive import kstatus
from doubles.apiserver import Key, Object, copied
from doubles.cluster import ID, points_at
from doubles.effects import Died, Fate
from doubles.finds import FINDERS, Finds
from doubles.foreign import FOREIGN, foreign
from doubles.hands import NAMESPACE
from doubles.rig import Rig
from doubles.scenarios import EDITS
from doubles.tally import hold
from edge_operator.declare import Token
from edge_operator.derive import samples
from edge_operator.engine import marker
from edge_operator.engine.operations import Missing, Stalled, Unsupported, Waiting
from edge_operator.kinds import KINDS

NAMES = ("one", "two", "three")
ALONE = sorted(kind for kind in KINDS if not points_at(samples.manifests(KINDS[kind])[-1]))
"""Kinds whose examples refer to nothing: they can be in an account of their own."""
_UNIQUE = {"hostports", "match", "domain"}
_NOOP_PASSES = 100


def faults(code: int) -> Iterator[dict[str, Any]]:
    """A status to each method. A 404 to a DELETE or a GET of an object would be a lie: it says that it is gone."""
    for method in ("POST", "PATCH", "PUT", "DELETE", "GET"):
        if code == 404 and method in ("DELETE", "GET"):
            continue
        yield {"kind": "status", "status": code, "method": method}


LISTS = "^(" + "|".join(sorted(KINDS[k].api.path for k in KINDS if "list" in KINDS[k].api.verbs)) + ")$"
"""What the address of a whole collection looks like, unlike that of anything in it."""
FAULTS: tuple[dict[str, Any], ...] = (
    *(fault for code in (400, 401, 403, 404, 405, 409, 500, 501, 503) for fault in faults(code)),
    *({**fault, "when": "after"} for code in (500, 501, 503) for fault in faults(code)),
    {"kind": "status", "status": 404, "method": "GET", "path": LISTS},
    *({**fault, "retry_after": "7"} for fault in faults(429)),
    *({"kind": "cut", "when": when, "method": m} for when in ("before", "after") for m in ("POST", "PATCH", "DELETE")),
    *({"kind": "garbage", "method": method} for method in ("POST", "PATCH", "GET")),
    {"kind": "null", "members": ("id",), "method": "POST"},
    {"kind": "null", "members": ("token",), "method": "POST"},
    {"kind": "lag", "seconds": 25},
    {"kind": "page_size", "size": 1},
)


@dataclass
class Trial:
    """A rig, what is known of its resources, and what of it is ours."""

    rig: Rig = field(default_factory=lambda: Rig(accounts=2))
    left: set[str] = field(default_factory=set)
    """uids of resources whose objects may stay: retained, abandoned."""
    spent: set[Key] = field(default_factory=set)
    """Names under which something was left that another of the same name would collide with."""
    vanished: set[Key] = field(default_factory=set)
    foreign: dict[str, Object] = field(default_factory=dict)
    beside: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.finds = Finds(self.rig)

    def keys(self, *, needs: bool = False) -> list[Key]:
        """The resources that are there, without what only serves as a need of others."""
        return sorted(k for k in self.rig.api.objects if k[0] in KINDS and (needs or k[2] != samples.NAME))

    # What happens --------------------------------------------------------------------------------

    async def declare(self, kind: str, name: str) -> None:
        if self.rig.exists(kind, name) or (kind, NAMESPACE, name) in self.spent:
            return
        second = {"connectionRef": {"name": "second"}} if name == NAMES[-1] and kind in ALONE else {}
        self.rig.sample(kind, name, **_members(kind, name), **second)
        self.vanished.discard((kind, NAMESPACE, name))

    async def adopt(self, kind: str, name: str, policy: str) -> None:
        """Somebody made an object by hand, and a resource adopts it."""
        if self.rig.exists(kind, name):
            return
        held = [app.faults._armed for app in self.rig.apps]
        self.rig.faults()
        await self.finds.adopt(kind, name, policy, _members(kind, FINDERS[0]))
        self._arm(held)

    def edit(self, key: Key, number: int) -> None:
        if self._deleting(key):
            return
        edits = [e.members for e in EDITS[key[0]] if not _UNIQUE & e.members.keys()]
        self.rig.edit(key[0], key[2], **[*edits, {"description": f"number {number}"}][number % (len(edits) + 1)])

    def delete(self, key: Key, how: str) -> None:
        kind, _, name = key
        finder, began = name in FINDERS, self._deleting(key)
        if how == "abandon":
            self.rig.annotate(kind, name, abandon="true")
        elif how == "retain" and not self._deleting(key):
            self.rig.edit(kind, name, deletionPolicy="Retain")
        if finder:
            if not began and (how != "plain" or self.rig.get(kind, name)["spec"]["deletionPolicy"] == "Retain"):
                self.finds.kept(key)
        elif how != "plain":
            self.left.add(self.rig.get(kind, name)["metadata"]["uid"])
            self.spent.add(key)
        self.rig.delete(kind, name)

    def lose_secret(self, key: Key, *, emptied: bool) -> None:
        name = f"{key[2]}-{key[0].lower()}"
        if self.rig.published(name) is None:
            return
        if emptied:
            self.rig.api.apply(("Secret", NAMESPACE, name), {"data": {}})
        else:
            self.rig.api.delete(("Secret", NAMESPACE, name))

    async def meddle(self, key: Key, *, deleted: bool) -> None:
        """Somebody changes or deletes the remote object by hand."""
        kind, _, name = key
        id_ = self.rig.status(kind, name).get("id")
        if id_ is None or id_ not in {doc["id"] for doc in self.rig.remote(kind)}:
            return
        path = self.rig.status(kind, name).get("path") or {}
        account = self.rig.account(self.rig.get(kind, name))
        collection = self.rig.outsides[account].of(KINDS[kind].api).raw
        held = [app.faults._armed for app in self.rig.apps]
        self.rig.faults()
        if deleted:
            await collection.delete(id_, **path)
            self.vanished.add(key)
            self.finds.vanished(id_)
        else:
            await collection.update(id_, {"description": "theirs"}, **path)
        self._arm(held)

    def _arm(self, held: list[Any]) -> None:
        """Have the services do wrong again what they did."""
        for app, armed in zip(self.rig.apps, held, strict=True):
            app.faults._armed = armed

    def ask(self, key: Key, number: int) -> None:
        """Ask for a rotation, where there is something to rotate."""
        if KINDS[key[0]].outputs:
            self.rig.annotate(key[0], key[2], rotate_requested_at=f"request {number}")

    def pause(self, key: Key) -> None:
        self.rig.annotate(key[0], key[2], paused="true")

    async def neighbours(self, kind: str) -> None:
        """Objects of others in the collection; routes of others would go with our edge."""
        if kind in self.beside or kind == "HTTPSRoute" or not self.keys(needs=True):
            return
        if kind.startswith("SSH") and "id" not in self._authority():
            return
        if kind == "TLSCertificate" and not any("tls.crt" in o.get("data", {}) for o in self.rig.api.objects.values()):
            return
        self.beside.add(kind)
        held = [app.faults._armed for app in self.rig.apps]
        self.rig.faults()
        await foreign(self.rig, kind)
        self._arm(held)
        self.foreign |= {doc["id"]: doc for doc in self.rig.remote(kind) if doc["description"] == FOREIGN}

    def fate(self, distance: int, fate: Fate) -> None:
        """Something becomes of one of the next effects."""
        self.rig.effects.fates[len(self.rig.effects.log) + distance] = fate

    async def work(self, passes: int) -> None:
        """A few passes, and no rest."""
        for _ in range(passes):
            if not self.rig.process.dirty:
                return
            try:
                await self.rig.work()
            except Died:
                await self.rig.restart()

    async def look(self, kind: str) -> None:
        """A drift round; where the service does not answer, none."""
        with contextlib.suppress(Waiting, Stalled, Unsupported, Missing):
            await self.rig.resync(kind)

    # What has to hold ----------------------------------------------------------------------------

    async def rest(self) -> None:
        """Put everything right that is not ours to put right, let the operator work, and judge."""
        rig = self.rig
        rig.faults()
        rig.effects.fates, rig.stale = {}, 0
        rig.world.step(-rig.world.stepped)
        for kind, _, name in self.keys(needs=True):
            rig.annotate(kind, name, paused=None)
        await rig.settle()
        rig.wake_all()
        for remote in (rig.process.remote, rig.process.second):
            if remote is not None:
                remote.door.probe_now()
        await rig.settle(700)
        for _ in range(2):
            for kind in KINDS:
                await rig.resync(kind)
        await self.judge()

    async def judge(self) -> None:
        owned = self._owned()
        self.finds.judge_rest()
        for key in self.keys(needs=True):
            if key[2] in FINDERS:
                self.finds.judge(key)
                continue
            self._judge(key, owned.pop(self.rig.api.objects[key]["metadata"]["uid"], set()))
        orphans = {uid: ids for uid, ids in owned.items() if uid not in self.left}
        hold("nothing is left after deletion", not orphans, str(orphans))
        for id_, doc in self.foreign.items():
            now = {d["id"]: d for d in self.rig.remote(_kind_of(id_))}.get(id_)
            hold("objects of others are untouched", now == doc, f"{now} was {doc}")
        await self._judge_quiet()

    def _judge(self, key: Key, ids: set[str]) -> None:
        kind, _, name = key
        resource = self.rig.get(kind, name)
        said = f"{kind}/{name} {self.rig.reason(kind, name)}: {self.rig.message(kind, name)}"
        hold("a deleted resource goes", not self._deleting(key), said)
        status = resource["status"]
        previous = {p["id"] for p in status.get("previous") or ()}
        if key in self.vanished and self.rig.reason(kind, name) == "RemoteMissing":
            hold("what vanished and stays away has no successor", ids <= previous, f"{said}, {ids}")
            hold("kstatus agrees", kstatus.verdict(resource) == "Failed", said)
            return
        hold("every resource ends in sync", self.rig.ready(kind, name), said)
        hold("kstatus agrees", kstatus.verdict(resource) == "Current", said)
        hold("one current remote object", status["id"] in ids, f"{said}, {ids}")
        there = {doc["id"] for doc in self.rig.held(kind, self.rig.account(resource))}
        hold("it is in its connection's account", ids <= there, f"{said}, {ids}")
        hold("one current remote object", ids - {status["id"]} <= previous, f"{ids}, {status}")
        if KINDS[kind].outputs:
            self._judge_secret(key, status["id"])

    def _judge_secret(self, key: Key, id_: str) -> None:
        kind, _, name = key
        secret = self.rig.published(f"{name}-{kind.lower()}")
        hold("the Secret is there", secret is not None, f"{kind}/{name}")
        assert secret is not None
        hold("the Secret is the current object's", secret["metadata"]["annotations"][ID] == id_, f"{kind}/{name} {id_}")
        if isinstance(KINDS[kind].lifecycle, Token):
            hold("a token is kept", bool(secret["data"].get("token")), f"{kind}/{name}")
            app = self.rig.apps[self.rig.account(self.rig.get(kind, name))]
            with app.store.read() as tx:
                holder = app.keyring.holder(tx, secret["data"]["token"])
            hold("the token opens the service", holder == id_, f"{holder}, {id_}")

    async def _judge_quiet(self) -> None:
        rig = self.rig
        rig.forget()
        keys = self.keys(needs=True)
        for _ in range(_NOOP_PASSES // max(len(keys), 1) + 1):
            rig.wake_all()
            await rig.settle(0)
        hold("a pass of what is in sync writes nothing", rig.writes == [], str(rig.writes))
        calls = {call.split()[0] for call in rig.calls}
        hold(
            "a pass of what is in sync calls nobody",
            calls <= ({"GET"} if self.vanished or self.finds.now else set()),
            str(rig.calls),
        )

    def _owned(self) -> dict[str, set[str]]:
        """Ids of remote objects by the uid in their marker."""
        found: dict[str, set[str]] = {}
        for kind in KINDS:
            for doc in self.rig.remote(kind):
                owner = marker.split(doc["metadata"])[1]
                if doc["id"] in self.foreign or doc["id"] in self.finds.ever:
                    continue
                if owner is not None:
                    found.setdefault(owner.uid, set()).add(doc["id"])
                else:
                    hold("every object has a marker or is not ours", holds=False, found=str(doc))
        return found

    def _deleting(self, key: Key) -> bool:
        return bool(self.rig.get(key[0], key[2])["metadata"].get("deletionTimestamp"))

    def _authority(self) -> Mapping[str, Any]:
        found = self.rig.api.get(("SSHCertificateAuthority", NAMESPACE, samples.NAME)) or {}
        return found.get("status") or {}


def _kind_of(id_: str) -> str:
    return next(name for name, kind in KINDS.items() if id_.startswith(kind.api.prefix))


def _members(kind: str, name: str) -> dict[str, Any]:
    """What of an example has to be each resource's own."""
    spec = copied(samples.spec(KINDS[kind]))
    found: dict[str, Any] = {}
    if "hostports" in spec:
        found["hostports"] = [f"{name}-{kind.lower()}.example.com:443"]
    if "match" in spec:
        found["match"] = f"/{name}"
    if "domain" in spec:
        found["domain"] = f"{name}.example.com"
    return found


SPANS = (timedelta(days=-30), timedelta(hours=-1), timedelta(hours=2), timedelta(days=3))
