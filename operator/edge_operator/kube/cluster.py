"""The `Cluster` of the line: custom resources through the Kubernetes API, references through the index.

Every write carries the resourceVersion that the decision was made on, and every answer goes into the index, so that
the echo of our own write is known for what it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from edge_operator.declare import GROUP, VERSION, CustomResource, Kind, SecretKeyRef
from edge_operator.engine import state
from edge_operator.engine.operations import Restart
from edge_operator.engine.ownership import Holder
from edge_operator.engine.references import Named, Referent
from edge_operator.engine.state import Published
from edge_operator.kinds import KINDS
from edge_operator.kube import errors, paths
from edge_operator.kube.client import JSON, KubeAPI
from edge_operator.kube.definitions import Definitions
from edge_operator.kube.endings import Endings
from edge_operator.kube.index import Index, Key
from edge_operator.kube.keys import KeysInUse
from edge_operator.kube.secrets import ATTEMPTS, Secrets
from edge_operator.ports import Resource

Tell = Callable[[Resource, str, str, bool], None]


def path(kind: CustomResource[Any], namespace: str = "", name: str = "") -> str:
    """Where a custom resource is in the Kubernetes API."""
    return paths.resource(GROUP, VERSION, kind.plural, namespace, name)


class KubeCluster:
    """Fulfils `ports.Cluster`. `wake` is told who has to be looked at after a write, `doubt` the kinds of those
    that something waits for or yields to: whether they are still there is looked up.
    `calling` says by which tokens connections call the service.
    """

    def __init__(
        self,
        api: KubeAPI,
        index: Index,
        *,
        cluster_id: str,
        digest_key: bytes,
        may_write: Callable[[], None],
        tell: Tell,
        wake: Callable[[frozenset[Key]], None],
        doubt: Callable[[Iterable[str]], None] = lambda _: None,
        calling: Callable[[], Iterable[str]] = tuple,
        clusterwide: bool = True,
    ) -> None:
        self._doubt, self._keys, self._endings = doubt, KeysInUse(calling), Endings(time.monotonic)
        self._api, self._index, self._secrets = api, index, Secrets(api, may_write)
        self._definitions = Definitions(api, time.monotonic, readable=clusterwide)
        self._id, self._digest_key = cluster_id, digest_key
        index.digest_key = digest_key
        self._may_write, self._tell, self._wake = may_write, tell, wake

    @property
    def id(self) -> str:
        """The cluster's identity in owner markers."""
        return self._id

    @property
    def digest_key(self) -> bytes:
        """The key of the digests in status."""
        return self._digest_key

    def find(self, namespace: str, named: Named) -> Referent | None:
        """What is known of a resource that somebody points at."""
        return self._index.referent(namespace, named)

    def points_at(self, namespace: str, named: Named) -> Sequence[Named]:
        """The resources that a resource names."""
        return self._index.points_at(namespace, named)

    def dependants(self, kind: Kind[Any], resource: Resource) -> Sequence[str]:
        """Living resources that point here: by name in this namespace, or by the remote id from anywhere."""
        meta = resource["metadata"]
        key = (kind.name, meta["namespace"], meta["name"])
        found = self._index.dependants(key, (resource.get("status") or {}).get("id")) - {key}
        self._doubt({kind for kind, _, _ in found})
        return sorted(f"{k}/{n}" if ns == key[1] else f"{k}/{n} in {ns}" for k, ns, n in found)

    def lives(self, uid: str) -> bool:
        """Whether a managed resource with that uid is in the cluster, as far as it is watched."""
        return self._index.lives(uid)

    def holders(self, kind: Kind[Any], id_: str) -> Iterable[Holder]:
        """Resources of the kind that have this remote object or adopt it."""
        found = list(self._index.holders(kind.name, id_))
        if len(found) > 1:
            self._doubt([kind.name])
        return found

    async def values(self, namespace: str, keys: Mapping[SecretKeyRef, str]) -> Mapping[SecretKeyRef, str]:
        """Secret values that a spec reads."""
        return await self._secrets.values(namespace, keys) if keys else {}

    async def status_of(self, namespace: str, named: Named) -> Mapping[str, Any]:
        """The status of another resource, read live."""
        try:
            found = await self._api.get(path(KINDS[named[0]], namespace, named[1]))
        except errors.NotFound:
            return {}
        return found.get("status") or {}

    async def published(self, kind: Kind[Any], resource: Resource, secret: str) -> Published | None:
        """The output Secret as it is, or None."""
        found = await self._secrets.published(kind, resource, secret)
        if found is not None and found.ours:
            self._keys.note(found.tokens)
        return found

    def in_use(self) -> frozenset[str]:
        """Ids of keys by which a connection of this process calls the service."""
        return self._keys.ids()

    async def claim(self, kind: Kind[Any], resource: Resource, nonce: str) -> Resource:
        """Finalizer and claim in one write; the resource afterwards.

        Raises:
            Waiting: the namespace is known to be on its way out.
        """
        meta = resource["metadata"]
        self._endings.check(meta["namespace"])
        finalizers = [*(meta.get("finalizers") or ())]
        if state.FINALIZER not in finalizers:
            finalizers.append(state.FINALIZER)
        annotations = state.claim(resource, nonce)
        return await self._patch_metadata(kind, resource, {"finalizers": finalizers, "annotations": annotations})

    async def publish(
        self,
        kind: Kind[Any],
        resource: Resource,
        secret: str,
        id_: str,
        data: Mapping[str, str],
        seen: Published | None,
    ) -> Published:
        """Create or replace the output Secret, unless it is another than was seen; what it is afterwards.

        Raises:
            Waiting: the namespace is being deleted.
        """
        try:
            return await self._secrets.publish(kind, resource, secret, id_, data, seen)
        except errors.Forbidden as error:
            self._endings.note(resource["metadata"]["namespace"], error)
            raise

    async def disown(self, kind: Kind[Any], resource: Resource, secret: str) -> None:
        """Take the owner reference off the output Secret."""
        del kind
        await self._secrets.disown(resource, secret)

    async def removal(self, kind: Kind[Any]) -> str | None:
        """When the removal of the kind's CRD was asked for, by a live read; None while nobody asked."""
        return await self._definitions.removal(kind)

    async def take_over(self, kind: Kind[Any], resource: Resource, secret: str, seen: Published | None) -> Published:
        """Put our owner reference on the Secret of a resource of this kind and name that is gone; what it is then."""
        return await self._secrets.take_over(kind, resource, secret, seen)

    async def release(self, kind: Kind[Any], resource: Resource) -> None:
        """Take the finalizer off."""
        rest = [f for f in resource["metadata"].get("finalizers") or () if f != state.FINALIZER]
        await self._patch_metadata(kind, resource, {"finalizers": rest or None})

    async def write_status(self, kind: Kind[Any], resource: Resource, patch: Mapping[str, Any]) -> None:
        """Merge-patch the status. Where others wrote meanwhile, but not to the status, it is written all the same:
        an id must not be lost because somebody set a label.
        """
        meta, current, disturbed = resource["metadata"], resource, False
        at = path(kind, meta["namespace"], meta["name"])
        for _ in range(ATTEMPTS):
            self._may_write()
            version = current["metadata"]["resourceVersion"]
            body = {"metadata": {"resourceVersion": version}, "status": dict(patch)}
            try:
                self._seen(kind, await self._api.merge_patch(at, body, subresource="status"), again=disturbed)
            except errors.Conflict:
                current, disturbed = await self._live(at, meta["uid"]), True
                if (current.get("status") or {}) != (resource.get("status") or {}):
                    raise Restart from None
            except errors.NotFound:
                raise Restart from None
            else:
                return
        raise Restart

    def tell(self, resource: Resource, reason: str, message: str, *, warning: bool = False) -> None:
        """An event, later; never fails."""
        self._tell(resource, reason, message, warning)

    async def _patch_metadata(self, kind: Kind[Any], resource: Resource, metadata: JSON) -> Resource:
        meta = resource["metadata"]
        self._may_write()
        body = {"metadata": {"resourceVersion": meta["resourceVersion"], **metadata}}
        try:
            written = await self._api.merge_patch(path(kind, meta["namespace"], meta["name"]), body)
        except (errors.Conflict, errors.NotFound):
            raise Restart from None
        self._seen(kind, written, again=False)
        return written

    async def _live(self, at: str, uid: str) -> Resource:
        try:
            found = await self._api.get(at)
        except errors.NotFound:
            raise Restart from None
        if found["metadata"]["uid"] != uid:
            raise Restart
        return found

    def _seen(self, kind: Kind[Any], written: JSON, *, again: bool) -> None:
        meta = written["metadata"]
        key = (kind.name, meta["namespace"], meta["name"])
        wake = self._index.observe(kind, written, dirty=False).wake
        self._wake(wake | ({key} if again else frozenset()))
