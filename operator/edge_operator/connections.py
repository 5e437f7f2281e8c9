"""What a connection to an account says, in one namespace or for the cluster, and what its status says.

Source: External Secrets' stores and cert-manager's issuers, for the shape.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from annotated_types import Ge, Le, MaxLen
from pydantic import Field

from edge_operator.declare import Column, Duration, Format, Part, Rule, SecretInput, TextInput, Unordered
from edge_operator.statuses import Conditioned

_URL = Format(
    "https?://[]A-Za-z0-9.:[_-]+(/[A-Za-z0-9._~%!$&()*+,;=:@/-]*)?",
    "should be an address such as https://api.example.com, without user, query and fragment",
)


class Spec(Part):
    """Where an account is, with which key, and how hard it may be asked."""

    url: Annotated[str, MaxLen(2048), _URL]
    """Base URL of the management API, a path prefix included: https://api.example.com."""
    api_key: SecretInput
    """The key. A changed Secret is used at once."""
    profile: Literal["neutral", "ngrok"] | None = None
    """Wire names of the service that ship with the operator: neutral (the default) or ngrok."""
    custom_profile: TextInput | None = None
    """Wire names of your own, as the YAML of a profile, instead of one that ships."""
    ca_bundle: TextInput | None = None
    """Certificates in PEM that the service's own is verified with; those of the system when left out."""
    requests_per_minute: Annotated[int | None, Ge(6), Le(100_000)] = None
    """Most calls in any minute. Without it, only a 429 of the service slows calls down."""
    concurrency: Annotated[int, Ge(1), Le(256)] = 16
    """Calls at one time."""
    timeout: Duration | None = None
    """The longest that one call may take, for example 10s; the operator's --call-timeout when left out, and at most."""
    owner_marker: bool = Field(default=True)
    """Whether remote objects name their owner in metadata. Without, an interrupted creation needs a person to end."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!has(self.profile) || !has(self.customProfile)",
            "set profile or customProfile, not both",
            lambda s: s.profile is None or s.custom_profile is None,
        ),
        Rule(
            "!has(self.timeout) || duration(self.timeout) >= duration('1s')",
            "timeout must be at least 1s",
            lambda s: s.timeout is None or s.timeout.total_seconds() >= 1,
        ),
    )


class Status(Conditioned):
    """How the connection stands."""

    account: str | None = None
    """Keyed digest of address and key that were last seen to work with what was made through the connection."""
    last_error: str | None = None
    """What went wrong last, kept after it is over."""
    unsupported_operations: Annotated[list[str] | None, Unordered()] = None
    """Assumed operations that the service refused since the spec changed: "PUT /edges/https/{id}/tls_termination"."""
    api_key_secret: str | None = None
    """Name of the Secret that is kept from going while resources need the connection."""
    last_handled_reconcile_at: str | None = None
    """Value of the annotation reconcile-requested-at that was last acted on."""


COLUMNS = (Column("URL", ".spec.url"),)


def example(secret: str) -> str:
    """A spec in YAML that reads its key from this Secret."""
    return f"""
    url: https://api.example.com
    apiKey: {{secretKeyRef: {{name: {secret}, key: api-key}}}}
    requestsPerMinute: 120
    """


def needs(secret: str) -> str:
    """The Secret, in YAML."""
    return f"""
    apiVersion: v1
    kind: Secret
    metadata:
      name: {secret}
    stringData:
      api-key: write the key of the account here
    """
