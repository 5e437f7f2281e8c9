"""What a status holds: the operator's own members, then what the service says that the user did not.

Source: Kubernetes API conventions, Typical status properties; kstatus.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import TypeAdapter, WithJsonSchema

from edge_operator.declare import Kind, Part
from edge_operator.derive.structural import Schema, structural
from edge_operator.engine import reported

Time = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
Generation = Annotated[int, WithJsonSchema({"type": "integer", "format": "int64"})]


def _map_by(key: str) -> dict[str, Any]:
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}


class Condition(Part):
    """How one aspect of the resource stands."""

    type: str
    """What is judged: Ready, Reconciling, Stalled, DriftDetected or Paused."""
    status: Literal["True", "False", "Unknown"]
    """Whether it is so."""
    observed_generation: Generation | None = None
    """Generation of the spec that the condition speaks of."""
    last_transition_time: Time
    """When the status of the condition last changed."""
    reason: str
    """Why, in one word of a closed list."""
    message: str
    """Why, for people: where, what was found, what is expected."""


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


class Common(Part):
    """What every status has."""

    observed_generation: Generation = -1
    """Generation of the spec that the status speaks of; -1 until the operator has seen the resource."""
    conditions: list[Condition] | None = None
    """How the resource stands: Ready always, Reconciling or Stalled while true."""
    nonce: str | None = None
    """Nonce of the claim that made the remote object; with it an interrupted creation is recognised."""
    applied: dict[str, str] | None = None
    """Short keyed digests of what was last sent, by field; no value can be read from them."""
    previous: list[Predecessor] | None = None
    """Remote objects that newer ones replaced and that are still to be deleted."""
    path: dict[str, str] | None = None
    """Ids of the parents in the remote address, for example of the edge that a route belongs to."""
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
    common["conditions"].update(_map_by("type"))
    common["previous"].update(_map_by("id"))
    return {
        "type": "object",
        "description": "What the operator and the service say; written by the operator alone.",
        "default": {"observedGeneration": -1},
        "properties": {**common, **_reported(reported.fields(kind))},
    }


def _reported(tree: reported.Tree) -> Schema:
    return {member.name: _member(member) for member in tree}


def _member(member: reported.Reported) -> Schema:
    if member.inside:
        schema: Schema = {"type": "object", "properties": _reported(member.inside)}
    else:
        schema = structural(TypeAdapter(member.type).json_schema())
    return {**schema, "description": member.description}
