"""What a status holds: the operator's own members, then what the service says that the user did not.

Source: Kubernetes API conventions, Typical status properties; kstatus.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import TypeAdapter

from edge_operator.declare import Companion, Kind, Part
from edge_operator.derive.structural import Schema, structural
from edge_operator.engine import reported
from edge_operator.statuses import Conditioned, MapBy


class Predecessor(Part):
    """A remote object that a newer one replaced and that is still to be deleted."""

    id: str
    """Id of the predecessor."""
    nonce: str | None = None
    """Nonce of the claim that made it."""
    delete_after: str | None = None
    """When it may be deleted, in RFC 3339."""
    path: dict[str, str] | None = None
    """Ids of the parents in its remote address."""


class Common(Conditioned):
    """What the status of every kind has."""

    nonce: str | None = None
    """Nonce of the claim that made the remote object; with it an interrupted creation is recognised."""
    applied: dict[str, str] | None = None
    """Short keyed digests of what was last sent, by field; no value can be read from them."""
    previous: Annotated[list[Predecessor] | None, MapBy("id")] = None
    """Remote objects that newer ones replaced and that are still to be deleted."""
    path: dict[str, str] | None = None
    """Ids of the parents in the remote address, for example of the edge that a route belongs to."""
    seal: str | None = None
    """Keyed digest of the objects recorded here, and the connection they were made through; an edit does not fit it."""
    last_handled_reconcile_at: str | None = None
    """Value of the annotation reconcile-requested-at that was last acted on."""


class Publishing(Common):
    """What a status of a kind with outputs has besides."""

    secret_name: str | None = None
    """Name of the Secret that holds the outputs."""
    last_handled_rotate_at: str | None = None
    """Value of the annotation rotate-requested-at that was last acted on."""


def status(kind: Kind[Any]) -> Schema:
    """The schema of this kind's status."""
    common = structural((Publishing if kind.outputs else Common).model_json_schema(by_alias=True))["properties"]
    return _whole({**common, **_reported(reported.fields(kind))})


def declared(companion: Companion[Any]) -> Schema:
    """The schema of a companion's status."""
    return _whole(structural(companion.status.model_json_schema(by_alias=True))["properties"])


def _whole(properties: Schema) -> Schema:
    unseen = {"default": {"observedGeneration": -1}} if "observedGeneration" in properties else {}
    text = "What the operator and the service say; written by the operator alone."
    return {"type": "object", "description": text, **unseen, "properties": properties}


def _reported(tree: reported.Tree) -> Schema:
    return {member.name: _member(member) for member in tree}


def _member(member: reported.Reported) -> Schema:
    if member.inside:
        schema: Schema = {"type": "object", "properties": _reported(member.inside)}
    else:
        schema = structural(TypeAdapter(member.type).json_schema())
    return {**schema, "description": member.description}
