"""CustomResourceDefinitions from kinds."""

from __future__ import annotations

from typing import Any

from edge_operator.declare import GROUP, VERSION, Companion, CustomResource, Keyed, Kind, to_camel
from edge_operator.derive.status import declared, status
from edge_operator.derive.structural import FIXED, Schema, add_prefixes, add_rule, ordered, structural

CATEGORY = "edge"
_SAME_CONNECTION = (
    "!has(oldSelf.status) || !has(oldSelf.status.id) || has(self.spec.connectionRef) == has(oldSelf.spec.connectionRef)"
    " && (!has(self.spec.connectionRef) || self.spec.connectionRef == oldSelf.spec.connectionRef)"
)
"""Once there is a remote object, it is in that connection's account."""
_SECRET_NAME = 253
"""Longest name of a Secret. Source: Kubernetes, Object names and ids."""


def crd(kind: CustomResource[Any]) -> dict[str, Any]:
    """The manifest of the kind's CustomResourceDefinition."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.crd, "labels": {"app.kubernetes.io/part-of": "edge-operator"}},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.name.lower(),
                "shortNames": list(kind.short),
                "categories": [CATEGORY],
            },
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "additionalPrinterColumns": columns(kind),
                    **({"selectableFields": [{"jsonPath": ".status.id"}]} if _has_id(kind) else {}),
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": ordered(schema(kind))},
                }
            ],
        },
    }


def schema(kind: CustomResource[Any]) -> Schema:
    """What the API server checks a whole resource by."""
    found: Schema = {
        "type": "object",
        "description": description(kind),
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": f"Group and version: {GROUP}/{VERSION}."},
            "kind": {"type": "string", "description": f"Kind of the resource: {kind.name}."},
            "metadata": {"type": "object"},
            "spec": spec(kind),
            "status": _status(kind),
        },
    }
    if isinstance(kind, Kind):
        add_rule(found, _SAME_CONNECTION, f"spec.connectionRef {FIXED}")
    if isinstance(kind, Kind) and kind.outputs:
        room = _SECRET_NAME - len(f"-{kind.name.lower()}")
        add_rule(
            found,
            f"has(self.spec.secretName) || self.metadata.name.size() <= {room}",
            f"the name is too long to name a Secret after it: set spec.secretName, or use at most {room} characters",
        )
    return found


def _has_id(kind: CustomResource[Any]) -> bool:
    return isinstance(kind, Kind) or (isinstance(kind, Companion) and "id" in kind.status.model_fields)


def _status(kind: CustomResource[Any]) -> Schema:
    match kind:
        case Kind():
            return status(kind)
        case Companion():
            return declared(kind)
        case _:
            raise TypeError(f"{kind.name} is neither a Kind nor a Companion")


def spec(kind: CustomResource[Any]) -> Schema:
    """The schema of what a user writes."""
    found = structural(kind.spec.model_json_schema(by_alias=True))
    found["description"] = kind.spec.__doc__ or ""
    members = found["properties"]
    if isinstance(kind, Kind):
        add_prefixes(members["externalID"], [kind.api.prefix])
        members["onRemoteMissing"]["description"] += f" Default of {kind.name}: {kind.on_remote_missing}."
    for name, shape in kind.spec.model_fields.items():
        if keyed := next((mark for mark in shape.metadata if isinstance(mark, Keyed)), None):
            key = to_camel(keyed.by)
            add_rule(
                members[to_camel(name)],
                f"self.all(a, self.exists_one(b, b.{key} == a.{key}))",
                f"each {key} may stand here once; add up the entries that name the same {key}",
            )
    return found


def columns(kind: CustomResource[Any]) -> list[dict[str, Any]]:
    """What `kubectl get` prints after the name; with `-o wide` also the message."""
    ready = ".status.conditions[?(@.type=='Ready')]"
    fixed = []
    if not isinstance(kind, Companion) or not kind.mirror:
        fixed += [("Ready", f"{ready}.status", "string"), ("Reason", f"{ready}.reason", "string")]
    if isinstance(kind, Kind):
        fixed += [("ID", ".status.id", "string")]
    own = [(column.name, column.path, column.type) for column in kind.columns]
    age = [("Age", ".metadata.creationTimestamp", "date")]
    found: list[dict[str, Any]] = [
        {"name": name, "type": type_, "jsonPath": path} for name, path, type_ in [*fixed, *own, *age]
    ]
    if ("Ready", f"{ready}.status", "string") in fixed:  # what it waits for, by name; too long for a narrow table
        found.insert(-1, {"name": "Message", "type": "string", "priority": 1, "jsonPath": f"{ready}.message"})
    return found


def description(kind: CustomResource[Any]) -> str:
    """The first sentence of the kind's module: what the kind is."""
    import sys  # only here, to find the module a spec was written in

    text = sys.modules[kind.spec.__module__].__doc__ or ""
    return " ".join(text.split("\n\n")[0].split())
