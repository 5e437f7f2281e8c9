"""Objects made by hand that resources adopt, two of them one object at times; for the state machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from derive import kstatus
from doubles.apiserver import Key, Object
from doubles.foreign import least
from doubles.hands import NAMESPACE
from doubles.rig import Rig
from doubles.tally import hold
from edge_operator.engine import marker
from edge_operator.engine.state import FINALIZER
from edge_operator.kinds import KINDS

FINDERS = ("finder", "rival")
"""Names of the resources that adopt; both want the same object of a kind."""
ADOPTABLE = (
    "AgentIngress",
    "APIKey",
    "EventDestination",
    "FailoverBackend",
    "HTTPSEdge",
    "TCPEdge",
    "TLSEdge",
    "TunnelCredential",
    "WeightedBackend",
)
"""Kinds of which an example can be had from any object, without a new one in its place."""


@dataclass
class Finds:
    """What was made by hand, and what may have become of it."""

    rig: Rig
    now: dict[str, str] = field(default_factory=dict)
    """The id of the object that the finders of a kind want."""
    ever: set[str] = field(default_factory=set)
    stays: set[str] = field(default_factory=set)
    goes: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.rig.api.listeners.append(self._seen)

    async def adopt(self, kind: str, name: str, policy: str, members: dict[str, Any]) -> None:
        """Have a resource adopt the object that is there, or one that is made for it."""
        there = {doc["id"] for doc in self.rig.remote(kind)}
        if self.now.get(kind) not in there:
            body = {**least(self.rig, kind, 0), **members, "description": "by hand", "metadata": "theirs"}
            if not self.rivals(kind):
                made = await self.rig.outside.of(KINDS[kind].api).raw.create(body)
                self.now[kind] = made["id"]
                self.ever.add(made["id"])
        self.rig.sample(kind, name, **members, externalID=self.now[kind], deletionPolicy=policy)

    def rivals(self, kind: str) -> list[Object]:
        """The finders of a kind that are there; the first has the object."""
        there = [o for name in FINDERS if (o := self.rig.api.get((kind, NAMESPACE, name)))]
        return sorted(there, key=lambda o: (o["metadata"]["creationTimestamp"], o["metadata"]["name"]))

    def kept(self, key: Key) -> None:
        """A finder is deleted, and its object, if it is still there, was to be kept before that."""
        there = {doc["id"] for doc in self.rig.remote(key[0])}
        if len(self.rivals(key[0])) == 1 and self.now[key[0]] in there:
            self.stays.add(self.now[key[0]])

    def vanished(self, id_: str) -> None:
        """Somebody deleted an object by hand."""
        self.stays.discard(id_)

    def _seen(self, key: Key, was: Object | None, now: Object | None, by: str) -> None:
        del by
        if key[2] not in FINDERS or key[0] not in self.now:
            return
        if was is None:
            self.stays.discard(self.now[key[0]])
        if was is None or now is not None or self.rivals(key[0]):
            return
        annotations = was["metadata"].get("annotations") or {}
        kept = was["spec"]["deletionPolicy"] == "Retain" or annotations.get("edge-operator.dev/abandon") == "true"
        if not kept and FINALIZER in was["metadata"].get("finalizers", ()):
            self.goes.add(self.now[key[0]])

    def judge(self, key: Key) -> None:
        """What has to hold of a finder that is there."""
        kind, _, name = key
        resource, id_ = self.rig.get(kind, name), self.now[kind]
        reason = self.rig.reason(kind, name)
        said = f"{kind}/{name} {reason}: {self.rig.message(kind, name)}"
        there = {doc["id"]: doc for doc in self.rig.remote(kind)}
        first = self.rivals(kind)[0]["metadata"]["name"]
        if first != name:
            hold("of two that adopt one object one has it", reason == "OwnershipConflict", said)
        elif id_ not in there:
            hold("what was adopted and is gone is not made anew", reason == "RemoteMissing", said)
        else:
            hold("every resource ends in sync", self.rig.ready(kind, name), said)
            hold("what is adopted is the object", resource["status"]["id"] == id_, said)
            owner = marker.split(there[id_]["metadata"])[1]
            gone = owner is not None and owner.uid != resource["metadata"]["uid"]
            hold("the marker names the resource", not gone, f"{said}, {owner}")
        verdict = kstatus.verdict(resource)
        hold("kstatus agrees", verdict == ("Current" if self.rig.ready(kind, name) else "Failed"), said)

    def judge_rest(self) -> None:
        """What has to hold of the objects."""
        there = set(self.rig.everything_remote())
        for id_ in sorted(self.stays):
            hold("what is retained or abandoned stays", id_ in there, id_)
        for id_ in sorted(self.goes):
            hold("an adopted object goes with its resource", id_ not in there, id_)
