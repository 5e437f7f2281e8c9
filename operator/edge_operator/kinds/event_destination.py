"""EventDestination is a place where events are delivered, once an event subscription names it."""

from __future__ import annotations

from typing import Annotated, Literal

from annotated_types import MaxLen

from edge_operator.api import catalog
from edge_operator.declare import Column, Kind, OneOf, Part, SecretInput
from edge_operator.parts import Text
from edge_operator.policies import Described


class Role(Part):
    """A role that the service assumes."""

    role_arn: Text
    """ARN of the role."""


class Creds(Part):
    """Long-term access keys."""

    cloud_access_key_id: SecretInput
    """The access key's id."""
    cloud_secret_access_key: SecretInput
    """The secret access key."""


class CloudAuth(OneOf):
    """How the service signs in to the cloud: exactly one of role or creds."""

    role: Role | None = None
    """A role that the service assumes."""
    creds: Creds | None = None
    """Long-term access keys, read from a Secret."""


class BatchStream(Part):
    """A batch delivery stream."""

    auth: CloudAuth
    """How the service signs in."""
    delivery_stream_arn: Text
    """ARN of the delivery stream."""


class DataStream(Part):
    """A data stream."""

    auth: CloudAuth
    """How the service signs in."""
    stream_arn: Text
    """ARN of the stream."""


class LogGroup(Part):
    """A log group."""

    auth: CloudAuth
    """How the service signs in."""
    log_group_arn: Text
    """ARN of the log group."""


class Monitoring(Part):
    """A monitoring service."""

    api_key: SecretInput
    """API key of the monitoring service."""
    tags: Annotated[str, MaxLen(2048)] | None = None
    """Tags that events get, separated by commas."""
    service: Annotated[str, MaxLen(256)] | None = None
    """Service name that events get."""
    site: Annotated[str, MaxLen(256)] | None = None
    """Site of the monitoring service."""


class Target(OneOf):
    """Where events go: exactly one of the four."""

    batch_stream: BatchStream | None = None
    """A batch delivery stream."""
    data_stream: DataStream | None = None
    """A data stream."""
    log_group: LogGroup | None = None
    """A log group."""
    monitoring: Monitoring | None = None
    """A monitoring service."""


class Spec(Described):
    """A place where events are delivered."""

    format: Literal["json"] = "json"
    """How events are written; json is the only format."""
    target: Target
    """Where and how events are sent."""


KIND = Kind(
    name="EventDestination",
    spec=Spec,
    api=catalog.event_destinations,
    short=("evd",),
    columns=(Column("Description", ".spec.description"),),
    example="""
    description: events to the monitoring service
    target:
      monitoring:
        apiKey: {secretKeyRef: {name: example-monitoring, key: api-key}}
        tags: env:production
        service: edge
        site: eu
    """,
    needs="""
    apiVersion: v1
    kind: Secret
    metadata: {name: example-monitoring}
    stringData:
      api-key: monitoring-api-key
    """,
)
