"""Every setting of the operator in one frozen model. The texts are the command line's help and the operations page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Seconds = Annotated[float, Field(ge=0, le=86_400)]


class Settings(BaseModel):
    """How the operator runs."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True)

    kubeconfig: Path | None = None
    """Kubeconfig of the cluster; without it the pod's service account, then KUBECONFIG and ~/.kube/config."""
    namespaces: tuple[str, ...] = ()
    """Namespaces to watch; none means the whole cluster."""
    api_url: str | None = None
    """Base URL of the management API, of the default connection; it is left out where a ClusterConnection named
    default is made instead."""
    api_key_file: Path | None = None
    """File that holds the API key of the default connection. A changed file is used at once."""
    api_requests_per_minute: Annotated[int | None, Field(ge=6, le=100_000)] = None
    """Most calls of the default connection in any minute; without it, only a 429 of the service slows calls down."""
    api_ca_file: Path | None = None
    """File with certificates in PEM that the service of the default connection is verified with."""
    api_profile: str = "neutral"
    """Wire names of the service: neutral, ngrok, or a file."""
    operator_namespace: str = "default"
    """Namespace of the operator's own Lease and of the Secret with its digest key."""
    cluster_id: Annotated[str | None, Field(pattern=r"^[A-Za-z0-9._:-]{1,64}$")] = None
    """Identity of the cluster in owner markers (letters, digits, . _ : -); the uid of kube-system when left out."""
    identity: str | None = None
    """Name of this replica in the Lease; the host name and the process id when left out."""
    health_listen: str | None = None
    """HOST:PORT that serves /healthz, /readyz and /metrics; nothing is served when left out."""
    log_format: Literal["plain", "json"] = "plain"
    """How log lines are written."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """What is logged."""
    resync_seconds: Annotated[float, Field(gt=0, le=86_400)] = 600.0
    """How often each collection is listed to find changes made elsewhere, in seconds."""
    mirror_sessions: bool = False
    """Mirror online tunnel sessions as TunnelSession resources in the operator's namespace."""
    sessions_interval_seconds: Annotated[float, Field(gt=0, le=86_400)] = 60.0
    """How often tunnel sessions are listed to mirror them, in seconds."""
    grace_seconds: Seconds = 30.0
    """How long after an interrupted creation its object is looked for, in seconds.
    Longer than a creation may take, and than a list of the service may lag."""
    call_seconds: Annotated[float, Field(gt=0, le=600)] = 12.0
    """The longest that one call of the management API may take, in seconds.
    Shorter than the Lease, because a call is only begun while the Lease outlasts it."""
    concurrency: Annotated[int, Field(ge=1, le=256)] = 16
    """Calls of the management API at one time."""
    workers: Annotated[int, Field(ge=1, le=256)] = 24
    """Resources worked on at one time."""
    backoff_seconds: Annotated[float, Field(gt=0, le=600)] = 1.0
    """First pause after a failure, in seconds; it doubles up to backoff_limit_seconds, with full jitter."""
    backoff_limit_seconds: Annotated[float, Field(gt=0, le=86_400)] = 300.0
    """Longest pause after a failure, in seconds."""
    lease_seconds: Annotated[float, Field(gt=0, le=600)] = 20.0
    """How long a silent leader is waited for before another replica takes over, in seconds."""
    renew_seconds: Annotated[float, Field(gt=0, le=600)] = 15.0
    """How long a leader tries to renew its Lease before it stops acting, in seconds."""
    retry_seconds: Annotated[float, Field(gt=0, le=600)] = 2.0
    """How often the Lease is looked at, in seconds."""

    @model_validator(mode="after")
    def _key_beside_address(self) -> Self:
        if (self.api_url is None) != (self.api_key_file is None):
            raise ValueError("--api-url and --api-key-file come together")
        return self

    @model_validator(mode="after")
    def _lease_outlasts_a_call(self) -> Self:
        """Otherwise the operator would run and never act. A fifteenth of the Lease is kept for clocks that differ."""
        if not self.lease_seconds > self.renew_seconds > self.retry_seconds > 0:
            raise ValueError("--lease should exceed --lease-renew, and that --lease-retry, and that 0")
        if self.call_seconds >= self.lease_seconds * 14 / 15 - self.retry_seconds:
            raise ValueError(
                "--call-timeout should be shorter than --lease less --lease-retry, by a fifteenth of --lease"
            )
        return self
