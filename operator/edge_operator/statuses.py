"""What every status has. What else a status holds follows from the kind, or stands beside a companion's spec.

Source: Kubernetes API conventions, Typical status properties; kstatus.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import WithJsonSchema

from edge_operator.declare import Part

Time = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
Generation = Annotated[int, WithJsonSchema({"type": "integer", "format": "int64"})]


@dataclass(frozen=True)
class MapBy:
    """A list whose entries are known by one member, so that two writers can own one entry each."""

    key: str

    def __get_pydantic_json_schema__(self, source: Any, handler: Any) -> Any:
        marks = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [self.key]}
        return {**handler(source), **marks}


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


class Conditioned(Part):
    """A status that says how the resource stands."""

    observed_generation: Generation = -1
    """Generation of the spec that the status speaks of; -1 until the operator has seen the resource."""
    conditions: Annotated[list[Condition] | None, MapBy("type")] = None
    """How the resource stands: Ready always, Reconciling or Stalled while true."""
