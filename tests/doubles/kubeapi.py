"""The Kubernetes API by paths, over the API server in memory: what `kube.client.KubeAPI` offers, and disturbed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from doubles.apiserver import ApiServer, Conflict, Gone, Key, Object
from doubles.effects import Effects, Fate, Unreachable
from edge_operator.kinds import DECLARED
from edge_operator.kube import errors
from edge_operator.kube.client import Listing

_BY_PLURAL = {kind.plural: kind.name for kind in DECLARED.values()}


class KubeDouble:
    """Custom resources alone. Every write is an effect: "cluster status TunnelSessionCommand/example"."""

    def __init__(self, api: ApiServer, effects: Effects) -> None:
        self._api, self._effects = api, effects
        self.reads = 0
        self.writes: list[str] = []

    async def get(self, path: str) -> Object:
        self.reads += 1
        found = self._api.get(_key(path))
        if found is None:
            raise errors.NotFound(path)
        return found

    async def list(self, path: str) -> Listing:
        self.reads += 1
        kind, namespace, _ = _key(path)
        return Listing([o for o in self._api.of(kind) if o["metadata"]["namespace"] == namespace], "1")

    async def create(self, path: str, body: Mapping[str, Any]) -> Object:
        kind, namespace, _ = _key(path)
        key = (kind, namespace, body["metadata"]["name"])
        fate = self._begin("create", key)
        if self._api.get(key) is not None:
            raise errors.AlreadyExists(path)
        made = self._api.apply(key, {n: body[n] for n in ("metadata", "spec")}, by="operator")
        self._end(fate, "create", key)
        return made

    async def merge_patch(self, path: str, body: Mapping[str, Any], *, subresource: str = "") -> Object:
        assert subresource == "status", "nothing else is patched"
        key = _key(path)
        fate = self._begin("status", key)
        try:
            version = body["metadata"]["resourceVersion"]
            written = self._api.patch_status(key, version, body["status"], "operator")
        except Conflict:
            raise errors.Conflict(path) from None
        except Gone:
            raise errors.NotFound(path) from None
        self._end(fate, "status", key)
        return written

    async def delete(self, path: str, *, uid: str = "", resource_version: str = "") -> Object:
        key = _key(path)
        fate = self._begin("delete", key)
        found = self._api.get(key)
        if found is None:
            raise errors.NotFound(path)
        meta = found["metadata"]
        if uid not in ("", meta["uid"]) or resource_version not in ("", meta["resourceVersion"]):
            raise errors.Conflict(path)
        self._api.delete(key, by="operator")
        self._end(fate, "delete", key)
        return found

    def _begin(self, what: str, key: Key) -> Fate | None:
        fate = self._effects.begin(f"cluster {what} {key[0]}/{key[2]}")
        if fate is Fate.CONFLICT and self._api.get(key) is not None:
            self._api.apply(key, {"metadata": {"labels": {"touched": f"at-{len(self._effects.log)}"}}})
        return fate

    def _end(self, fate: Fate | None, what: str, key: Key) -> None:
        self.writes.append(f"{what} {key[0]}/{key[2]}")
        try:
            self._effects.end(fate, what)
        except Unreachable:
            raise errors.Unreachable(what, sent=True) from None


def _key(path: str) -> Key:
    """Kind, namespace and name of /apis/group/version/namespaces/<namespace>/<plural>[/<name>]."""
    parts = path.split("/")
    return _BY_PLURAL[parts[6]], parts[5], parts[7] if len(parts) > 7 else ""
