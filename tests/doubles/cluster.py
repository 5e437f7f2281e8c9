"""`ports.Cluster` over the API server in memory: one process's way to it."""

from __future__ import annotations

import functools
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import ValidationError

from doubles import legal
from doubles.apiserver import ApiServer, Conflict, Gone, Key, Object, copied
from doubles.effects import Effects, Fate
from edge_operator.declare import GROUP, Kind, SecretKeyRef
from edge_operator.door import NotLeading
from edge_operator.engine import ownership, references, state
from edge_operator.engine.operations import KeyPair, Restart, Stalled, Waiting
from edge_operator.engine.ownership import Holder
from edge_operator.engine.reasons import Stalls, Waits
from edge_operator.engine.references import Named, Referent
from edge_operator.engine.state import Published
from edge_operator.kinds import KINDS
from edge_operator.ports import Resource

T = TypeVar("T")
KIND_LABEL = f"{GROUP}/kind"
ID = f"{GROUP}/id"


@dataclass(frozen=True)
class Event:
    """What `kubectl describe` would show."""

    about: str
    reason: str
    message: str
    warning: bool


async def _alone() -> None:
    """There is no other replica."""


@dataclass
class FakeCluster:
    """Reads are live, those of neighbours `behind` changes late. Writes pass through `effects`; `writes` has them."""

    api: ApiServer
    effects: Effects
    id: str = "11111111-2222-4333-8444-555555555555"
    digest_key: bytes = b"0123456789abcdef0123456789abcdef"
    writes: list[str] = field(default_factory=list)
    journal: list[Any] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    secret_values: Callable[[], Sequence[str]] = tuple
    wake: Callable[[Key], None] = lambda _: None
    overtaken: Callable[[], Awaitable[None]] = _alone
    """What another replica does while this one is frozen."""
    behind: int = 0
    calling: set[str] = field(default_factory=set)
    """Tokens by which connections call the service."""
    terminating: set[str] = field(default_factory=set)
    """Namespaces that are being deleted: no Secret can be created there, and after a refusal no claim is taken."""
    refused: set[str] = field(default_factory=set)

    @property
    def seen(self) -> Mapping[Key, Object]:
        """All objects as the cache shows them."""
        late = list(self.api.recent)[: self.behind]
        return late[-1] if late else self.api.objects

    def _seen(self, kind: str) -> list[Object]:
        return [copied(o) for (k, _, _), o in sorted(self.seen.items()) if k == kind]

    def find(self, namespace: str, named: Named) -> Referent | None:
        found = self.seen.get((named[0], namespace, named[1]))
        if found is None:
            return None
        deleting = bool(found["metadata"].get("deletionTimestamp"))
        return Referent(state.own_status(found, self.digest_key).get("id"), deleting)

    def points_at(self, namespace: str, named: Named) -> Sequence[Named]:
        found = self.seen.get((named[0], namespace, named[1]))
        return points_at(found) if found else ()

    def dependants(self, kind: Kind[Any], resource: Resource) -> Sequence[str]:
        meta = resource["metadata"]
        target, id_ = (kind.name, meta["name"]), (resource.get("status") or {}).get("id")
        return [
            f"{other}/{found['metadata']['name']}"
            for other in KINDS
            for found in self._seen(other)
            if found["metadata"]["uid"] != meta["uid"]
            if target in points_at(found) or id_ in ids_at(found)
        ]

    def lives(self, uid: str) -> bool:
        return any(o["metadata"]["uid"] == uid for (kind, _, _), o in self.seen.items() if kind in KINDS)

    def holders(self, kind: Kind[Any], id_: str) -> Iterable[Holder]:
        for found in self._seen(kind.name):
            meta, external = found["metadata"], (found.get("spec") or {}).get("externalID")
            if id_ in (state.own_status(found, self.digest_key).get("id"), external):
                place = f"{meta['namespace']}/{meta['name']}"
                yield Holder(external is not None, meta["creationTimestamp"], place, meta["uid"])

    async def values(self, namespace: str, keys: Mapping[SecretKeyRef, str]) -> Mapping[SecretKeyRef, str]:
        out = {}
        for ref, at in keys.items():
            secret = self.api.get(("Secret", namespace, ref.name))
            if secret is None:
                raise Waiting(Waits.SECRET_NOT_READY, f"{at}: there is no Secret {ref.name!r} in this namespace")
            if ref.key not in secret["data"]:
                raise Waiting(Waits.SECRET_NOT_READY, f"{at}: Secret {ref.name!r} has no key {ref.key!r}")
            out[ref] = secret["data"][ref.key]
        return out

    async def status_of(self, namespace: str, named: Named) -> Mapping[str, Any]:
        return (self.api.get((named[0], namespace, named[1])) or {}).get("status") or {}

    async def published(self, kind: Kind[Any], resource: Resource, secret: str) -> Published | None:
        return self._published(kind, resource, self.api.get(("Secret", resource["metadata"]["namespace"], secret)))

    @staticmethod
    def _published(kind: Kind[Any], resource: Resource, found: Object | None) -> Published | None:
        if found is None:
            return None
        data, meta = found["data"], found["metadata"]
        ours = _owned(found, resource)
        private = next((data.get(o.key) for o in kind.outputs if o.source == "private_key"), None)
        public = next((data.get(o.key) for o in kind.outputs if o.source == "public_key"), None)
        token = next((data.get(o.key) for o in kind.outputs if o.source == "token"), None)
        return Published(
            ours=ours,
            id=meta.get("annotations", {}).get(ID),
            keys=frozenset(k for k, v in data.items() if v),
            key_pair=KeyPair(public.strip(), private) if private and public else None,
            token=token or None,
            forsaken=_forsaken(kind, found, resource),
        )

    def in_use(self) -> frozenset[str]:
        held = [o["data"] for (kind, _, _), o in self.api.objects.items() if kind == "Secret"]
        pairs = [(d.get(f"{when}id"), d.get(f"{when}token")) for d in held for when in ("", "previous-")]
        return frozenset(id_ for id_, token in pairs if id_ and token in self.calling)

    async def claim(self, kind: Kind[Any], resource: Resource, nonce: str) -> Resource:
        if resource["metadata"]["namespace"] in self.refused:
            raise Waiting(Waits.DELETING, "the namespace is being deleted")

        def change(meta: Object) -> None:
            if state.FINALIZER not in meta.setdefault("finalizers", []):
                meta["finalizers"].append(state.FINALIZER)
            meta.setdefault("annotations", {}).update(state.claim(resource, nonce))

        meta = resource["metadata"]
        said = f"PATCH {kind.name}/{meta['name']} finalizer, claim {nonce}"
        return await self._write(
            said, lambda: self.api.patch_metadata(_key(kind, resource), meta["resourceVersion"], change, "operator")
        )

    async def publish(
        self,
        kind: Kind[Any],
        resource: Resource,
        secret: str,
        id_: str,
        data: Mapping[str, str],
        seen: Published | None,
    ) -> Published:
        meta = resource["metadata"]
        key: Key = ("Secret", meta["namespace"], secret)
        before = self.api.get(key)
        if before is None and meta["namespace"] in self.terminating:
            self.refused.add(meta["namespace"])
            raise Waiting(Waits.DELETING, "the namespace is being deleted")
        if before is not None and not _owned(before, resource):
            raise Stalled(Stalls.SECRET_CONFLICT, f"Secret {secret!r} exists and is not this resource's")
        if not state.undisturbed(seen, self._published(kind, resource, before)):
            raise Restart
        version = before["metadata"]["resourceVersion"] if before else ""
        wanted = {
            "type": "Opaque",
            "metadata": {
                "labels": {KIND_LABEL: kind.name},
                "annotations": {ID: id_},
                "ownerReferences": [{"kind": kind.name, "name": meta["name"], "uid": meta["uid"]}],
            },
            "data": dict(data),
        }
        verb = "PUT" if before else "POST"
        said = f"{verb} Secret/{secret} for {id_}: {', '.join(sorted(data))}"
        written = await self._write(said, lambda: self.api.apply(key, wanted, "operator", version))
        after = self._published(kind, resource, written)
        assert after is not None
        return after

    async def disown(self, kind: Kind[Any], resource: Resource, secret: str) -> None:
        key: Key = ("Secret", resource["metadata"]["namespace"], secret)
        found = self.api.get(key)
        if found is None or not _owned(found, resource):
            return

        def change(meta: Object) -> None:
            meta.pop("ownerReferences")

        version = found["metadata"]["resourceVersion"]
        await self._write(
            f"PATCH Secret/{secret} disowned", lambda: self.api.patch_metadata(key, version, change, "operator")
        )

    async def removal(self, kind: Kind[Any]) -> str | None:
        return self.api.removals.get(kind.name)

    async def take_over(self, kind: Kind[Any], resource: Resource, secret: str, seen: Published | None) -> Published:
        key: Key = ("Secret", resource["metadata"]["namespace"], secret)
        found = self.api.get(key)
        if found is None or not _forsaken(kind, found, resource):
            raise Restart
        if not state.undisturbed(seen, self._published(kind, resource, found)):
            raise Restart

        def change(meta: Object) -> None:
            own = resource["metadata"]
            meta["ownerReferences"] = [{"kind": kind.name, "name": own["name"], "uid": own["uid"]}]

        version = found["metadata"]["resourceVersion"]
        written = await self._write(
            f"PATCH Secret/{secret} taken over", lambda: self.api.patch_metadata(key, version, change, "operator")
        )
        after = self._published(kind, resource, written)
        assert after is not None
        return after

    async def release(self, kind: Kind[Any], resource: Resource) -> None:
        def change(meta: Object) -> None:
            meta["finalizers"] = [f for f in meta.get("finalizers") or () if f != state.FINALIZER]

        meta = resource["metadata"]
        await self._write(
            f"PATCH {kind.name}/{meta['name']} finalizer off",
            lambda: self.api.patch_metadata(_key(kind, resource), meta["resourceVersion"], change, "operator"),
        )

    async def write_status(self, kind: Kind[Any], resource: Resource, patch: Mapping[str, Any]) -> None:
        meta, key = resource["metadata"], _key(kind, resource)
        said = f"PATCH {kind.name}/{meta['name']} status {json.dumps(patch, sort_keys=True)}"
        before, disturbed = resource, False
        while True:
            version = before["metadata"]["resourceVersion"]
            try:
                after = await self._write(
                    said, functools.partial(self.api.patch_status, key, version, patch, "operator")
                )
            except Restart:
                live = self.api.get(key)
                if live is None or live["metadata"]["uid"] != meta["uid"]:
                    raise
                if (live.get("status") or {}) != (resource.get("status") or {}):
                    raise
                before, disturbed = live, True
                continue
            self._judge(after, before, patch)
            if disturbed:
                self.wake(key)
            return

    def _judge(self, after: Object, before: Resource, patch: Mapping[str, Any]) -> None:
        legal.check(after, before.get("status") or {}, self.secret_values())
        pruned = {k for k, v in patch.items() if v is not None and k not in after["status"]}
        if pruned:
            raise legal.IllegalStatus(f"the schema of {after['kind']} has no {pruned}")
        if after["status"] == before.get("status"):
            raise legal.IllegalStatus(f"a write that changes nothing: {patch}")

    def tell(self, resource: Resource, reason: str, message: str, *, warning: bool = False) -> None:
        for secret in self.secret_values():
            if secret in message:
                raise legal.IllegalStatus(f"an event shows a secret: {reason}")
        self.events.append(Event(f"{resource['kind']}/{resource['metadata']['name']}", str(reason), message, warning))

    async def _write(self, said: str, write: Callable[[], T]) -> T:
        """One write, after the check whether this replica may: what happens in between cannot be seen any more."""
        name = f"cluster {said.partition(' {')[0]}"
        fate = self.effects.begin(name)
        theirs = await self._frozen() if fate is Fate.OVERTAKEN else {}
        before = self.api.version
        try:
            if fate is Fate.CONFLICT:
                raise Conflict  # noqa: TRY301 - as the API server would
            written = write()
        except (Conflict, Gone):
            self.writes.append(f"{said} → refused")
            raise (NotLeading if fate is Fate.OVERTAKEN else Restart) from None
        if self.api.version != before:  # the API server drops what changes nothing
            self.writes.append(said)
            self.journal.append(said)
        self.effects.end(fate, name)
        if fate is Fate.OVERTAKEN:
            assert theirs.items() <= self._versions().items(), f"{said}: over what another replica recorded"
            raise NotLeading
        return written

    async def _frozen(self) -> dict[Key, str]:
        """Let another replica go on; the versions of what it wrote."""
        before = self._versions()
        await self.overtaken()
        return dict(self._versions().items() - before.items())

    def _versions(self) -> dict[Key, str]:
        return {key: found["metadata"]["resourceVersion"] for key, found in self.api.objects.items()}


def points_at(resource: Resource) -> list[Named]:
    """What a resource points at by name; nothing where its spec is no good."""
    return [p.named for p in _pointers(resource) if p.named]


def ids_at(resource: Resource) -> list[str]:
    """What a resource points at by id."""
    return [p.ref.id for p in _pointers(resource) if p.ref.id]


def _pointers(resource: Resource) -> list[references.Pointer]:
    return _parsed(resource["kind"], json.dumps(resource.get("spec") or {}))


@functools.lru_cache(4096)
def _parsed(kind: str, spec: str) -> list[references.Pointer]:
    try:
        return references.pointers(KINDS[kind].spec.model_validate(json.loads(spec)))
    except ValidationError:
        return []


def _key(kind: Kind[Any], resource: Resource) -> Key:
    meta = resource["metadata"]
    return kind.name, meta["namespace"], meta["name"]


def _forsaken(kind: Kind[Any], secret: Object, resource: Resource) -> bool:
    meta = resource["metadata"]
    return ownership.forsaken(secret["metadata"], kind.name, meta["name"], meta["uid"])


def _owned(secret: Mapping[str, Any], resource: Resource) -> bool:
    owners = secret["metadata"].get("ownerReferences") or ()
    return any(o["uid"] == resource["metadata"]["uid"] for o in owners)
