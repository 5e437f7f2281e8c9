"""What a running operator may do in a cluster, and what people may do with its resources: RBAC rules.

The least that works. `watched` is needed in every namespace with resources, `identity` and `definitions` once in the
cluster, `own` in the operator's own namespace.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from edge_operator import connections
from edge_operator.declare import GROUP, Companion, CustomResource, Kind

LEASE = "edge-operator"
"""Name of the Lease that says which replica acts."""
DIGEST_SECRET = "edge-operator-digest-key"  # noqa: S105 - a name
"""Name of the Secret with the key of the digests in every status."""

Rules = list[dict[str, Any]]

_READ = ("get", "list", "watch")
_WRITE = ("create", "delete", "deletecollection", "patch", "update")


def _rule(group: str, resources: Iterable[str], verbs: Iterable[str], names: Iterable[str] = ()) -> dict[str, Any]:
    rule: dict[str, Any] = {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}
    return {**rule, "resourceNames": list(names)} if names else rule


def watched(kinds: Iterable[CustomResource[Any]]) -> Rules:
    """In each namespace with resources."""
    return [
        *_declared(kind for kind in kinds if kind.namespaced and not _is_mirror(kind)),
        _rule("", ["secrets"], (*_READ, "create", "patch")),  # inputs are read, outputs written, changes noticed
        _rule("", ["events"], ("create", "patch")),
    ]


def cluster(kinds: Iterable[CustomResource[Any]]) -> Rules:
    """Once in the cluster, where all of it is watched: what belongs to no namespace."""
    return _declared(kind for kind in kinds if not kind.namespaced)


def _declared(kinds: Iterable[CustomResource[Any]]) -> Rules:
    lasting = {kind.plural: "ttl_seconds_after_finished" not in kind.spec.model_fields for kind in kinds}
    if not lasting:
        return []
    return [
        _rule(GROUP, sorted(p for p, lasts in lasting.items() if lasts), (*_READ, "patch")),  # finalizer and claim
        *(_rule(GROUP, [p], (*_READ, "delete")) for p, lasts in lasting.items() if not lasts),  # when its time is over
        _rule(GROUP, [f"{plural}/status" for plural in sorted(lasting)], ("patch",)),
    ]


def _is_mirror(kind: CustomResource[Any]) -> bool:
    return isinstance(kind, Companion) and kind.mirror


def _mirrored(kinds: Iterable[CustomResource[Any]]) -> Rules:
    plurals = sorted(kind.plural for kind in kinds if _is_mirror(kind))
    if not plurals:
        return []
    return [
        _rule(GROUP, plurals, ("get", "list", "create", "delete")),
        _rule(GROUP, [f"{plural}/status" for plural in plurals], ("patch",)),
    ]


def identity() -> Rules:
    """Once, unless the cluster's id is given: the uid of kube-system is the id."""
    return [_rule("", ["namespaces"], ("get",), ["kube-system"])]


def definitions(kinds: Iterable[CustomResource[Any]]) -> Rules:
    """Once: whether a resource is deleted because its CRD is. Without it discovery is asked, which may be late."""
    names = sorted(kind.crd for kind in kinds if isinstance(kind, Kind))
    return [_rule("apiextensions.k8s.io", ["customresourcedefinitions"], ("get",), names)]


def own(kinds: Iterable[CustomResource[Any]]) -> Rules:
    """In the operator's own namespace: leadership, the key of the digests, and what it mirrors there."""
    return [
        *_mirrored(kinds),
        _rule("coordination.k8s.io", ["leases"], ("create",)),  # a name cannot be asked for before it exists
        _rule("coordination.k8s.io", ["leases"], ("get", "update"), [LEASE]),
        _rule("", ["secrets"], ("create",)),
        _rule("", ["secrets"], ("get", "patch"), [DIGEST_SECRET]),  # patch: the account that the flags led to
    ]


def drain(kinds: Iterable[CustomResource[Any]]) -> Rules:
    """For the Job that deletes every resource before an uninstall, and for nobody else."""
    drained = sorted(kind.plural for kind in kinds if isinstance(kind, Kind) or issubclass(kind.spec, connections.Spec))
    return [_rule(GROUP, drained, ("get", "list", "delete"))]


def view(kinds: Iterable[CustomResource[Any]]) -> Rules:
    """For people who look."""
    return [_rule(GROUP, sorted(kind.plural for kind in kinds), _READ)]


def edit(kinds: Iterable[CustomResource[Any]]) -> Rules:
    """For people who work with the resources; a status is the operator's alone."""
    plurals = sorted(kind.plural for kind in kinds if not _is_mirror(kind))
    return [_rule(GROUP, plurals, (*_READ, *_WRITE))]
