"""One TunnelSessionCommand as the cluster holds it: reading its spec, writing its status, removing it.

Every write carries the resourceVersion that the decision was made on. A label that somebody set meanwhile does not
matter, another status does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from pydantic import ValidationError

from edge_operator.engine import conditions
from edge_operator.engine.commands import Order
from edge_operator.engine.operations import Restart, Stalled, shown
from edge_operator.engine.reasons import Stalls
from edge_operator.kinds import COMPANIONS
from edge_operator.kube import errors
from edge_operator.kube.client import JSON
from edge_operator.kube.cluster import path
from edge_operator.kube.index import Key
from edge_operator.ports import Resource

KIND = COMPANIONS["TunnelSessionCommand"]
ATTEMPTS = 5


class Objects(Protocol):
    """What is needed of the Kubernetes API."""

    async def get(self, path: str) -> JSON:
        """The object; raises NotFound."""

    async def merge_patch(self, path: str, body: JSON, *, subresource: str = "") -> JSON:
        """The object after a merge patch; raises Conflict."""

    async def delete(self, path: str, *, uid: str = "", resource_version: str = "") -> JSON:
        """What the API server says of a deletion; raises Conflict and NotFound."""


class Orders:
    """The commands of a cluster. `may_write` raises NotLeading."""

    def __init__(self, api: Objects, may_write: Callable[[], None]) -> None:
        self._api, self._may_write = api, may_write

    async def read(self, key: Key) -> Resource | None:
        """The resource as it is now, or None."""
        try:
            return await self._api.get(_at(key))
        except errors.NotFound:
            return None

    async def write(
        self, key: Key, resource: Resource, status: Mapping[str, Any], *, unless_deleted: bool = False
    ) -> Resource:
        """Write what differs in the status; the resource afterwards.

        Raises:
            Restart: the status is another by now, or the resource is gone or, if asked, being deleted.
        """
        before = resource.get("status") or {}
        patch = conditions.difference(before, status)
        if not patch:
            return resource
        for _ in range(ATTEMPTS):
            meta = resource["metadata"]
            if unless_deleted and meta.get("deletionTimestamp"):
                break
            body = {"metadata": {"resourceVersion": meta["resourceVersion"]}, "status": patch}
            self._may_write()
            try:
                return await self._api.merge_patch(_at(key), body, subresource="status")
            except errors.Conflict:
                live = await self.read(key)
            except errors.NotFound:
                break
            if live is None or live["metadata"]["uid"] != meta["uid"] or (live.get("status") or {}) != before:
                break
            resource = live
        raise Restart

    async def remove(self, key: Key, resource: Resource) -> None:
        """Delete it, if it is still as it was.

        Raises:
            Restart: it is not.
        """
        meta = resource["metadata"]
        self._may_write()
        try:
            await self._api.delete(_at(key), uid=meta["uid"], resource_version=meta["resourceVersion"])
        except (errors.Conflict, errors.NotFound):
            raise Restart from None


def order(resource: Resource) -> Order:
    """What a user wants.

    Raises:
        Stalled: the spec is not valid; an older CRD may have let it in.
    """
    try:
        spec = KIND.spec.model_validate(resource["spec"])
    except ValidationError as error:
        found = (f"spec.{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_input=False))
        raise Stalled(Stalls.INVALID_SPEC, shown("; ".join(found), 900)) from None
    return Order(spec.command, spec.restart_after_update, spec.ttl_seconds_after_finished)


def _at(key: Key) -> str:
    return path(KIND, key[1], key[2])
