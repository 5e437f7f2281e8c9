"""What the resource of a connection says: its spec as a model, whom it admits, which Secrets it reads."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from edge_operator.connections import Spec
from edge_operator.engine import operations, references, state
from edge_operator.engine.operations import Shut, Stalled
from edge_operator.engine.reasons import Stalls
from edge_operator.engine.references import ConnectionKey
from edge_operator.kinds import COMPANIONS
from edge_operator.ports import Resource


def shown(key: ConnectionKey) -> str:
    """The connection in words: `Connection 'main'`."""
    return f"{key[0]} {key[2]!r}"


def asked(body: Resource) -> tuple[Any, ...]:
    """What of a connection is others' to say: a change of it is worth a look."""
    meta = body["metadata"]
    return meta.get("generation"), meta.get("annotations"), meta.get("deletionTimestamp"), meta.get("finalizers")


def leads(body: Resource) -> tuple[Any, ...]:
    """What decides which account a connection leads to, the key itself aside."""
    spec = body.get("spec") or {}
    return body["metadata"]["uid"], spec.get("url"), spec.get("apiKey")


def was_wiped(before: Resource | None, body: Resource) -> bool:
    """Whether somebody took the status away."""
    said = (before or {}).get("status") or {}
    return "conditions" in said and "conditions" not in (body.get("status") or {})


def key_secrets(body: Resource) -> frozenset[str]:
    """Names of the Secrets that a connection has its key from: now, and when its status was written."""
    ref = ((body.get("spec") or {}).get("apiKey") or {}).get("secretKeyRef") or {}
    return frozenset(filter(None, (ref.get("name"), (body.get("status") or {}).get("apiKeySecret"))))


def absent(key: ConnectionKey, *, clusterwide: bool) -> str:
    """What to say of a connection that there is not."""
    if key[0] == "ClusterConnection" and not clusterwide:
        text = "this operator watches chosen namespaces and uses no ClusterConnection"
        return f"spec.connectionRef: {text}; name a Connection of this namespace"
    if key == references.DEFAULT_CONNECTION:
        text = "name a connection in spec.connectionRef, or make a ClusterConnection 'default'"
        return f"there is no default connection: {text}"
    where = " in this namespace" if key[1] else ""
    return f"spec.connectionRef: there is no {shown(key)}{where}"


def reason(body: Resource) -> str:
    """The reason of the Ready condition; "Unknown" before there is one."""
    said = (body.get("status") or {}).get("conditions") or ()
    return next((str(c["reason"]) for c in said if c["type"] == "Ready"), "Unknown")


def wished(body: Resource, status: dict[str, Any]) -> bool:
    """Whether an annotation asks for a look, which is then noted."""
    asked = state.requested(body["metadata"])
    news = asked is not None and asked != status.get("lastHandledReconcileAt")
    if news:
        status["lastHandledReconcileAt"] = asked
    return news


def parsed(body: Resource) -> Spec:
    """The spec as a model.

    Raises:
        Stalled: it is none.
    """
    try:
        spec: Spec = COMPANIONS[body["kind"]].spec.model_validate(body.get("spec") or {})
    except ValidationError as error:
        found = error.errors(include_input=False, include_url=False)
        text = "; ".join(f"spec.{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in found)
        raise Stalled(Stalls.INVALID_SPEC, operations.shown(text, 900)) from None
    return spec


def reads(body: Resource) -> frozenset[str]:
    """Names of the Secrets that a connection reads."""
    try:
        spec = parsed(body)
    except Stalled:
        return frozenset()
    return frozenset(ref.name for ref in references.secret_keys(spec))


def admits(key: ConnectionKey, body: Resource, namespace: str) -> Shut | None:
    """Why resources of a namespace may not go through a connection, or None."""
    allowed = (body.get("spec") or {}).get("allowedNamespaces")
    if key[0] != "ClusterConnection" or allowed is None or namespace in allowed:
        return None
    text = f"spec.connectionRef: {shown(key)} does not admit namespace {namespace}; see its allowedNamespaces"
    return Shut(Stalls.REFERENCE_NOT_PERMITTED, text)
