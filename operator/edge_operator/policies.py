"""What every spec has: how the operator treats the remote object, and the two fields that every resource takes.

Source: API document, Conventions, 5.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from annotated_types import MaxLen
from pydantic import Field

from edge_operator.api.wire import DESCRIPTION_BYTES, MaxBytes
from edge_operator.declare import Duration, Immutable, Local, ObjectName, Part, RemoteID, Rule

USER_METADATA_BYTES = 3840
"""The document's 4,096 bytes less the owner marker, which has at most 256."""
RESERVED_MEMBER = "edge-operator.dev/owner"
"""The member of a JSON metadata, or the line of a plain one, that names who made the object."""


class ConnectionRef(Part):
    """A connection: one of the same namespace, or one of the cluster that this namespace may use."""

    kind: Literal["Connection", "ClusterConnection"] = "Connection"
    """Connection of the same namespace, or ClusterConnection."""
    name: ObjectName
    """Name of the connection."""


class Policies(Part):
    """How the operator treats the remote object."""

    connection_ref: Annotated[ConnectionRef | None, Local()] = None
    """Connection whose account holds the remote object; the default one when left out. Fixed once creation began."""
    external_id: Annotated[RemoteID | None, Local(), Immutable()] = None
    """Adopt exactly this remote object instead of creating one; needs an explicit deletionPolicy."""
    deletion_policy: Annotated[Literal["Delete", "Retain"] | None, Local()] = None
    """What becomes of the remote object when this resource is deleted: Delete (the default) or Retain."""
    management_policy: Annotated[Literal["Manage", "Observe"], Local()] = "Manage"
    """Manage makes the remote object match; Observe reports differences, writes nothing, and deletes nothing."""
    on_remote_missing: Annotated[Literal["Recreate", "Stall"] | None, Local()] = None
    """What to do when the remote object vanished: Recreate or Stall; the default depends on the kind."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!has(self.externalID) || has(self.deletionPolicy)",
            "externalID needs an explicit deletionPolicy: Delete or Retain",
            lambda s: s.external_id is None or s.deletion_policy is not None,
        ),
        Rule(
            "!has(self.managementPolicy) || self.managementPolicy != 'Observe' || has(self.externalID)",
            "managementPolicy: Observe needs the externalID of the object to observe",
            lambda s: s.management_policy != "Observe" or s.external_id is not None,
        ),
    )


class Described(Policies):
    """Fields that every resource of the service has. Absent means empty, so removal is a change like any other."""

    description: Annotated[str, MaxBytes(DESCRIPTION_BYTES)] = ""
    """Human-readable text, at most 255 bytes."""
    metadata: Annotated[str, MaxBytes(USER_METADATA_BYTES)] = ""
    """Arbitrary data of your own, at most 3,840 bytes; the operator adds a marker that names the owner."""

    rules: ClassVar[tuple[Rule, ...]] = (
        *Policies.rules,
        Rule(
            f"!has(self.metadata) || !self.metadata.contains('{RESERVED_MEMBER}')",
            f"metadata: {RESERVED_MEMBER} is reserved for the operator; leave it out",
            lambda s: RESERVED_MEMBER not in s.metadata,
        ),
    )


class SecretTemplate(Part):
    """Labels and annotations that the Secret gets."""

    labels: Annotated[dict[str, Annotated[str, MaxLen(63)]] | None, MaxLen(64)] = None
    """Labels of the Secret."""
    annotations: Annotated[dict[str, Annotated[str, MaxLen(4096)]] | None, MaxLen(64)] = None
    """Annotations of the Secret."""


class Publishing(Described):
    """What kinds that write a Secret have besides."""

    secret_name: Annotated[ObjectName | None, Local()] = None
    """Name of the Secret that is written; the default is <name>-<kind in lower case>."""
    secret_template: Annotated[SecretTemplate | None, Local()] = None
    """Labels and annotations that the Secret gets."""


class Rotation(Part):
    """When a token is replaced by a new one."""

    interval: Duration
    """How old a token gets before a new one takes its place, for example 720h."""
    overlap: Duration = Field(default="1h", validate_default=True)
    """How long the previous token stays good beside the new one."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!has(self.overlap) || duration(self.overlap) < duration(self.interval)",
            "overlap must be shorter than interval",
            lambda r: r.overlap < r.interval,
        ),
    )


class Rotating(Publishing):
    """What kinds that hold a token have besides."""

    rotation: Annotated[Rotation | None, Local()] = None
    """Replaces the token regularly; without it, only the annotation rotate-requested-at does."""
