"""TLS certificates. Source: API document, TLSCertificate."""

from __future__ import annotations

from pydantic import Field

from edge_operator.api.wire import Described, Entity, Secret, Timestamp, Wire


class TLSCertificateSANs(Wire):
    """Subject alternative names of the leaf."""

    dns_names: list[str] = []
    """Names of hosts, wildcards included."""
    ips: list[str] = []
    """Addresses."""


class TLSCertificate(Entity):
    """An uploaded chain, leaf first, and what the leaf says."""

    certificate_pem: str = ""
    """The chain of PEM certificates, leaf first."""
    subject_common_name: str = ""
    """Common name of the leaf."""
    subject_alternative_names: TLSCertificateSANs = TLSCertificateSANs()
    """Subject alternative names of the leaf."""
    issued_at: Timestamp | None = None
    """When the service issued the certificate, in RFC 3339; absent for an uploaded one."""
    not_before: Timestamp | None = None
    """Start of validity, in RFC 3339."""
    not_after: Timestamp | None = None
    """End of validity, in RFC 3339."""
    key_usages: list[str] = []
    """What the private key may be used for."""
    extended_key_usages: list[str] = []
    """What else the private key may be used for."""
    private_key_type: str = ""
    """Type of the private key: rsa, ecdsa or ed25519."""
    issuer_common_name: str = ""
    """Common name of the leaf's issuer."""
    serial_number: str = ""
    """Serial number of the leaf."""
    subject_organization: str = ""
    """Organization of the leaf's subject."""
    subject_organizational_unit: str = ""
    """Organizational unit of the leaf's subject."""
    subject_locality: str = ""
    """Locality of the leaf's subject."""
    subject_province: str = ""
    """Province of the leaf's subject."""
    subject_country: str = ""
    """Country of the leaf's subject."""


class TLSCertificateCreate(Described):
    """Chain and key as PEM text."""

    certificate_pem: str | None = None
    private_key_pem: Secret | None = Field(default=None, repr=False)


class TLSCertificateUpdate(Described):
    """Assumed: description and metadata can change."""
