"""Reads and writes of the cluster for connections: finalizers on them and on their Secrets, status, memory of flags.

Every write carries the resourceVersion that it was decided on; a conflict means to begin again from a live read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from edge_operator.declare import GROUP
from edge_operator.engine import standing, state
from edge_operator.engine.operations import Restart
from edge_operator.engine.references import ConnectionKey
from edge_operator.kinds import COMPANIONS
from edge_operator.kube import errors, paths
from edge_operator.kube.bootstrap import DIGEST_SECRET
from edge_operator.kube.client import JSON, KubeAPI
from edge_operator.kube.cluster import path
from edge_operator.kube.secrets import ATTEMPTS, Secrets
from edge_operator.ports import Resource

SECRET_FINALIZER = f"{GROUP}/connection"
"""On the Secret of a connection: without the key nothing could be deleted any more."""
ACCOUNT = f"{GROUP}/account"
"""Annotation of the operator's own Secret: the fingerprint of the account that the default connection led to last,
be it by a ClusterConnection or by the flags."""


class Anchors:
    """What connections hold on to in the cluster."""

    def __init__(self, api: KubeAPI, namespace: str, may_write: Callable[[], None]) -> None:
        self._api, self._namespace, self._may_write = api, namespace, may_write
        self.secrets = Secrets(api)

    async def live(self, key: ConnectionKey) -> Resource | None:
        """A connection as it is now, or None."""
        try:
            return await self._api.get(path(COMPANIONS[key[0]], key[1], key[2]))
        except errors.NotFound:
            return None

    async def hold(self, body: Resource) -> Resource:
        """The connection with our finalizer."""
        finalizers = body["metadata"].get("finalizers") or []
        if state.FINALIZER in finalizers:
            return body
        return await self._patch(_at(body), body, {"finalizers": [*finalizers, state.FINALIZER]})

    async def release(self, body: Resource) -> None:
        """Take our finalizer off a connection."""
        rest = [f for f in body["metadata"].get("finalizers") or () if f != state.FINALIZER]
        await self._patch(_at(body), body, {"finalizers": rest or None})

    async def write_status(self, body: Resource, patch: Mapping[str, Any]) -> Resource:
        """The connection after its status was merge-patched."""
        self._may_write()
        version = {"resourceVersion": body["metadata"]["resourceVersion"]}
        try:
            return await self._api.merge_patch(
                _at(body), {"metadata": version, "status": dict(patch)}, subresource="status"
            )
        except (errors.Conflict, errors.NotFound):
            raise Restart from None

    async def hold_secret(self, namespace: str, name: str) -> None:
        """Keep a Secret from going. One that is absent, or going already, is left."""
        await self._finalize(namespace, name, lambda held: [*dict.fromkeys((*held, SECRET_FINALIZER))])

    async def release_secret(self, namespace: str, name: str) -> None:
        """Let a Secret go again."""
        await self._finalize(namespace, name, lambda held: [f for f in held if f != SECRET_FINALIZER])

    async def remembered(self) -> tuple[str | None, str | None]:
        """Fingerprints of accounts that the flags may lead to: the last, and one that a person accepted."""
        found = await self._api.get(paths.secret(self._namespace, DIGEST_SECRET), metadata_only=True)
        annotations = found["metadata"].get("annotations") or {}
        return annotations.get(ACCOUNT), annotations.get(standing.ACCEPT)

    async def remember(self, fingerprint: str) -> None:
        """Remember the account that the default connection leads to."""
        self._may_write()
        body = {"metadata": {"annotations": {ACCOUNT: fingerprint}}}
        await self._api.merge_patch(paths.secret(self._namespace, DIGEST_SECRET), body)

    async def _finalize(self, namespace: str, name: str, wanted: Callable[[list[str]], list[str]]) -> None:
        at = paths.secret(namespace, name)
        for _ in range(ATTEMPTS):
            try:
                found = await self._api.get(at, metadata_only=True)
                held = found["metadata"].get("finalizers") or []
                after = wanted(held)
                going = bool(found["metadata"].get("deletionTimestamp"))
                if after == held or (going and len(after) > len(held)):
                    return
                await self._patch(at, found, {"finalizers": after or None})
            except Restart:
                continue
            except errors.NotFound:
                return
            return
        raise Restart

    async def _patch(self, at: str, body: Resource, metadata: JSON) -> Resource:
        self._may_write()
        version = {"resourceVersion": body["metadata"]["resourceVersion"]}
        try:
            return await self._api.merge_patch(at, {"metadata": {**version, **metadata}})
        except (errors.Conflict, errors.NotFound):
            raise Restart from None


def _at(body: Resource) -> str:
    meta = body["metadata"]
    return path(COMPANIONS[body["kind"]], meta.get("namespace", ""), meta["name"])
