"""API keys and tunnel credentials. Source: API document, APIKey, Credential."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from edge_operator.api.wire import Described, Entity, Secret


def unrestricted(acl: list[str]) -> list[str]:
    """The lone `*` says the same as no rule at all. Source: API document, ACL rules, 5."""
    return [] if acl == ["*"] else acl


class APIKey(Entity):
    """A key that calls this API. `token` is present only in the answer to its creation."""

    token: Secret | None = Field(default=None, repr=False)
    """The bearer token that calls the management API; it cannot be read again."""
    owner_id: str | None = None
    """User or bot that owns the key."""


class APIKeyCreate(Described):
    """`owner_id` may name another owner only where the caller is an admin."""

    owner_id: str | None = None


class APIKeyUpdate(Described):
    """What can change of a key."""


class Credential(Entity):
    """A tunnel authtoken credential. `token` is present only in the answer to its creation."""

    token: Secret | None = Field(default=None, repr=False)
    """The authtoken that agents sign in with; it cannot be read again."""
    acl: Annotated[list[str], AfterValidator(unrestricted)] = []
    owner_id: str | None = None
    """User or bot that owns the credential."""


class CredentialCreate(Described):
    """`acl` rules such as `bind:*.example.com`; none means no restriction."""

    acl: list[str] | None = None
    owner_id: str | None = None


class CredentialUpdate(Described):
    """What can change of a credential."""

    acl: list[str] | None = None
