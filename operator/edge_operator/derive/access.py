"""What a running operator may do in a cluster, and what people may do with its resources: RBAC rules.

The least that works. `watched` is needed in every namespace with resources, `cluster` besides where all namespaces are
watched, `own` in the operator's own namespace.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from edge_operator.declare import GROUP, Kind

LEASE = "edge-operator"
"""Name of the Lease that says which replica acts."""
DIGEST_SECRET = "edge-operator-digests"  # noqa: S105 - a name
"""Name of the Secret with the key of the digests in every status."""

Rules = list[dict[str, Any]]

_READ = ("get", "list", "watch")
_WRITE = ("create", "delete", "deletecollection", "patch", "update")


def _rule(group: str, resources: Iterable[str], verbs: Iterable[str], names: Iterable[str] = ()) -> dict[str, Any]:
    rule: dict[str, Any] = {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}
    return {**rule, "resourceNames": list(names)} if names else rule


def watched(kinds: Iterable[Kind[Any]]) -> Rules:
    """In each namespace with resources."""
    plurals = sorted(kind.plural for kind in kinds)
    return [
        _rule(GROUP, plurals, (*_READ, "patch")),  # patch: finalizer and claim
        _rule(GROUP, [f"{plural}/status" for plural in plurals], ("get", "patch")),
        _rule(GROUP, [f"{plural}/finalizers" for plural in plurals], ("update",)),  # owner references that block
        _rule("", ["secrets"], (*_READ, "create", "patch")),  # inputs; outputs
        _rule("", ["events"], ("create", "patch")),
        _rule("events.k8s.io", ["events"], ("create", "patch")),
        _rule("", ["namespaces"], ("get",)),  # whether it is being deleted
    ]


def cluster() -> Rules:
    """Besides, where all namespaces are watched."""
    return [
        _rule("", ["namespaces"], ("list", "watch")),
        _rule("apiextensions.k8s.io", ["customresourcedefinitions"], _READ),  # whether one is absent or being removed
    ]


def own() -> Rules:
    """In the operator's own namespace: leadership, and the key of the digests."""
    return [
        _rule("coordination.k8s.io", ["leases"], ("create",)),  # a name cannot be asked for before it exists
        _rule("coordination.k8s.io", ["leases"], ("get", "update", "patch"), [LEASE]),
        _rule("", ["secrets"], ("create",)),
        _rule("", ["secrets"], ("get",), [DIGEST_SECRET]),
    ]


def identity() -> Rules:
    """In kube-system, where chosen namespaces are watched and no id of the cluster is given: its uid is the id."""
    return [_rule("", ["namespaces"], ("get",), ["kube-system"])]


def view(kinds: Iterable[Kind[Any]]) -> Rules:
    """For people who look."""
    return [_rule(GROUP, sorted(kind.plural for kind in kinds), _READ)]


def edit(kinds: Iterable[Kind[Any]]) -> Rules:
    """For people who work with the resources; a status is the operator's alone."""
    return [_rule(GROUP, sorted(kind.plural for kind in kinds), (*_READ, *_WRITE))]
