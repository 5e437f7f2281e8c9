"""Event destinations. Source: API document, EventDestination."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from edge_operator.api.wire import Body, Described, Entity, Secret, Wire


class AWSRole(Wire):
    role_arn: str = ""


class AWSCreds(Wire):
    cloud_access_key_id: Secret | None = Field(default=None, repr=False)
    cloud_secret_access_key: Secret | None = Field(default=None, repr=False)


class AWSAuth(Wire):
    """Exactly one of the two."""

    role: AWSRole | None = None
    creds: AWSCreds | None = None


class BatchStream(Wire):
    auth: AWSAuth = AWSAuth()
    delivery_stream_arn: str = ""


class DataStream(Wire):
    auth: AWSAuth = AWSAuth()
    stream_arn: str = ""


class LogGroup(Wire):
    auth: AWSAuth = AWSAuth()
    log_group_arn: str = ""


class Monitoring(Wire):
    api_key: Secret | None = Field(default=None, repr=False)
    tags: str | None = None
    service: str | None = None
    site: str | None = None


class EventTarget(Wire):
    """Exactly one of the four."""

    batch_stream: BatchStream | None = None
    data_stream: DataStream | None = None
    log_group: LogGroup | None = None
    monitoring: Monitoring | None = None


class EventDestination(Entity):
    format: str = "json"
    target: EventTarget = EventTarget()


class AWSRoleMutate(Body):
    role_arn: str | None = None


class AWSCredsMutate(Body):
    cloud_access_key_id: Secret | None = Field(default=None, repr=False)
    cloud_secret_access_key: Secret | None = Field(default=None, repr=False)


class AWSAuthMutate(Body):
    role: AWSRoleMutate | None = None
    creds: AWSCredsMutate | None = None


class BatchStreamMutate(Body):
    auth: AWSAuthMutate | None = None
    delivery_stream_arn: str | None = None


class DataStreamMutate(Body):
    auth: AWSAuthMutate | None = None
    stream_arn: str | None = None


class LogGroupMutate(Body):
    auth: AWSAuthMutate | None = None
    log_group_arn: str | None = None


class MonitoringMutate(Body):
    api_key: Secret | None = Field(default=None, repr=False)
    tags: str | None = None
    service: str | None = None
    site: str | None = None


class EventTargetMutate(Body):
    batch_stream: BatchStreamMutate | None = None
    data_stream: DataStreamMutate | None = None
    log_group: LogGroupMutate | None = None
    monitoring: MonitoringMutate | None = None


class EventDestinationCreate(Described):
    format: Literal["json"] | None = None
    target: EventTargetMutate | None = None


class EventDestinationUpdate(EventDestinationCreate):
    """Assumed: a target that is left out stays."""
