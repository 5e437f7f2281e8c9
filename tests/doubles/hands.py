"""What a user does to the cluster and sees of it, in the words of kubectl."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from doubles.apiserver import ApiServer, Object, copied
from doubles.cluster import points_at
from edge_operator.derive import samples
from edge_operator.kinds import KINDS

NAMESPACE = "default"


class Hands:
    """The hands of a user on an API server."""

    api: ApiServer

    # What a user does ---------------------------------------------------------------------------

    def apply(self, kind: str, name: str, spec: Mapping[str, Any] | None = None, **annotations: str | None) -> Object:
        """Create or replace a resource's spec; annotations by their name under our group, None takes one away."""
        changes: dict[str, Any] = {} if spec is None else {"spec": spec}
        if annotations:
            named = {f"edge-operator.dev/{k.replace('_', '-')}": v for k, v in annotations.items()}
            changes["metadata"] = {"annotations": named}
        return self.api.apply((kind, NAMESPACE, name), changes)

    def edit(self, kind: str, name: str = samples.NAME, /, **members: Any) -> Object:
        """Set members of a spec by their names in Kubernetes; None removes one."""
        spec = {**self.get(kind, name)["spec"], **members}
        return self.apply(kind, name, {k: v for k, v in spec.items() if v is not None})

    def annotate(self, kind: str, name: str = samples.NAME, /, **annotations: str | None) -> Object:
        return self.apply(kind, name, None, **annotations)

    def secret(self, name: str, data: Mapping[str, str]) -> Object:
        return self.api.apply(("Secret", NAMESPACE, name), {"type": "Opaque", "data": dict(data)})

    def sample(self, kind: str, name: str = samples.NAME, **members: Any) -> Object:
        """A kind's example with everything that it needs, as `kubectl apply` of the samples would make it."""
        *needs, manifest = copied(_manifests(kind))
        for need in needs:
            if need["kind"] == "Secret":
                self.secret(need["metadata"]["name"], need["stringData"])
            else:
                self.apply(need["kind"], need["metadata"]["name"], need["spec"])
        for needed, its_name in points_at(manifest):
            if self.api.get((needed, NAMESPACE, its_name)) is None:
                self.sample(needed, its_name)
        spec = {k: v for k, v in {**manifest["spec"], **members}.items() if v is not None}
        return self.apply(kind, name, spec)

    def delete(self, kind: str, name: str = samples.NAME) -> None:
        self.api.delete((kind, NAMESPACE, name))

    # What a user sees ---------------------------------------------------------------------------

    def get(self, kind: str, name: str = samples.NAME) -> Object:
        found = self.api.get((kind, NAMESPACE, name))
        assert found is not None, f"{kind}/{name} is not there"
        return found

    def exists(self, kind: str, name: str = samples.NAME) -> bool:
        return self.api.get((kind, NAMESPACE, name)) is not None

    def status(self, kind: str, name: str = samples.NAME) -> Object:
        status: Object = self.get(kind, name).get("status") or {}
        return status

    def id(self, kind: str, name: str = samples.NAME) -> str:
        return str(self.status(kind, name)["id"])

    def condition(self, kind: str, name: str = samples.NAME, type_: str = "Ready") -> Object | None:
        return next((c for c in self.status(kind, name).get("conditions") or () if c["type"] == type_), None)

    def reason(self, kind: str, name: str = samples.NAME) -> str:
        """Reason of Ready, "" before there is one."""
        return str((self.condition(kind, name) or {}).get("reason", ""))

    def message(self, kind: str, name: str = samples.NAME) -> str:
        return str((self.condition(kind, name) or {}).get("message", ""))

    def ready(self, kind: str, name: str = samples.NAME) -> bool:
        """Ready for the spec as it is now."""
        now = self.get(kind, name)["metadata"]["generation"]
        found = self.condition(kind, name) or {}
        return found.get("status") == "True" and self.status(kind, name)["observedGeneration"] == now

    def published(self, name: str) -> Object | None:
        return self.api.get(("Secret", NAMESPACE, name))


@functools.cache
def _manifests(kind: str) -> list[Object]:
    """A kind's example and what it needs; reading YAML costs more than a whole scenario."""
    return samples.manifests(KINDS[kind])
