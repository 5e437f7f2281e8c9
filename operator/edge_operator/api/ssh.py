"""SSH certificate authorities, user and host certificates.

Source: API document, SSHCertificateAuthority and following.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

from edge_operator.api.wire import Described, Entity, Timestamp


class SSHCertificateAuthority(Entity):
    """Signs certificates; its private key never leaves the service."""

    public_key: str = ""
    """Public key of the authority, for `known_hosts` (`@cert-authority`) or `TrustedUserCAKeys`."""
    key_type: str = ""
    """Type of the authority's private key: rsa, ecdsa or ed25519."""


def _integer(value: object) -> object:
    """Refuses what equals an integer and is none: false and 2048.0."""
    if type(value) not in (int, type(None)):
        raise PydanticCustomError("int_type", "Input should be a valid integer")
    return value


class SSHCertificateAuthorityCreate(Described):
    """`elliptic_curve` is for ecdsa, `key_size` (2048 or 4096) for rsa; "" and 0 mean "not given".

    Assumed: `p256` (default), `p384`, `p521`; key_size default 2048; private_key_type default ed25519.
    """

    private_key_type: Literal["rsa", "ecdsa", "ed25519"] | None = None
    elliptic_curve: Literal["", "p256", "p384", "p521"] | None = None
    key_size: Annotated[Literal[0, 2048, 4096] | None, BeforeValidator(_integer)] = None


class SSHCertificateAuthorityUpdate(Described):
    """What can change of an authority."""


class SSHHostCertificate(Entity):
    """A signed certificate for a host key, in OpenSSH authorized-keys format."""

    public_key: str = ""
    """The public key that the certificate signs, in OpenSSH authorized-keys format."""
    key_type: str = ""
    """Type of the key that the certificate signs: rsa, ecdsa or ed25519."""
    ssh_certificate_authority_id: str = ""
    principals: list[str] = []
    valid_after: Timestamp | None = None
    """When the certificate becomes valid, in RFC 3339."""
    valid_until: Timestamp | None = None
    """When the certificate stops being valid, in RFC 3339."""
    certificate: str = ""
    """The signed certificate in OpenSSH authorized-keys format."""


class SSHHostCertificateCreate(Described):
    """Times are RFC 3339; `valid_until` defaults to one year after creation."""

    ssh_certificate_authority_id: str | None = None
    public_key: str | None = None
    principals: list[str] | None = None
    valid_after: Timestamp | None = None
    valid_until: Timestamp | None = None


class SSHHostCertificateUpdate(Described):
    """What can change of a host certificate."""


class SSHUserCertificate(SSHHostCertificate):
    """A signed certificate for a user's key."""

    critical_options: dict[str, str] = {}
    extensions: dict[str, str] = {}


class SSHUserCertificateCreate(SSHHostCertificateCreate):
    """`valid_until` defaults to 24 hours after creation, `extensions` to permit-pty and permit-user-rc."""

    critical_options: dict[str, str] | None = None
    extensions: dict[str, str] | None = None


class SSHUserCertificateUpdate(Described):
    """Assumed: an update of this name exists; it changes description and metadata."""
