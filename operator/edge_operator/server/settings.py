"""Every setting of the reference API."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class ServerSettings(BaseModel):
    """How the reference API runs. Frozen; the fields' texts are the command line's help."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True)

    host: str = "127.0.0.1"
    """Address to listen on."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8080
    """Port to listen on; 0 lets the system pick one, and the line printed when ready names it."""
    database: Path | None = None
    """SQLite file, made when it does not exist. Left out, everything is in memory and forgotten at the end."""
    seed_api_key: Annotated[str | None, Field(min_length=1, max_length=256, repr=False)] = None
    """Token of the admin's key, which is made at start unless it exists. Only its hash is stored."""
    profile: str = "neutral"
    """Wire-name profile: `neutral`, `ngrok` or a file."""
    page_size: Annotated[int, Field(ge=1, le=100)] = 100
    """At most so many items in a page of a list, whatever `limit` says."""
    rate_limit: Annotated[int | None, Field(ge=1)] = None
    """Requests that the account may make in any 60 seconds; no limit where it is left out."""
    retry_after: bool = True
    """Whether an answer 429 says, in seconds, when to come back."""
    latency_seconds: Annotated[float, Field(ge=0, le=60)] = 0.0
    """How long each answer is held back."""
    echo_secrets: bool = True
    """Whether client secrets, webhook secrets, cloud keys and monitoring keys are returned as stored, or as null."""
    unauthenticated_status: Literal[401, 403] = 401
    """Status for a missing, unknown or revoked key."""
    registered_ids: frozenset[str] | None = None
    """Ids with the prefixes `bkdhr_`, `bkdtg_`, `ipp_`, `ca_` and `usr_` that may be referred to; left out, all may."""
    control: bool = False
    """Whether `/_control` answers: faults, request log and simulated agents, for tests. It needs no key."""
    request_log: Path | None = None
    """File that gets one JSON line for each request: number, method, path, status and the caller's key id."""
