"""Edge and route modules, as returned and (with `Mutate`) as sent where the two differ.

Source: API document, Module shapes as returned, Module shapes as sent, HTTPS route module fields.
"""

from __future__ import annotations

from typing import Annotated, Literal

from annotated_types import Ge, Le
from pydantic import Field

from edge_operator.api.wire import Body, Ref, Secret, SentAs, Uint32, Wire


class EndpointBackend(Wire):
    enabled: bool = True
    backend: Annotated[Ref, SentAs("backend_id")]


class EndpointBackendMutate(Body):
    enabled: bool | None = None
    backend_id: str | None = None


class EndpointIPPolicy(Wire):
    enabled: bool = True
    ip_policies: Annotated[list[Ref], SentAs("ip_policy_ids")] = []


class EndpointIPPolicyMutate(Body):
    enabled: bool | None = None
    ip_policy_ids: list[str] | None = None


class EndpointMutualTLS(Wire):
    enabled: bool = True
    certificate_authorities: Annotated[list[Ref], SentAs("certificate_authority_ids")] = []


class EndpointMutualTLSMutate(Body):
    enabled: bool | None = None
    certificate_authority_ids: list[str] | None = None


class EndpointTLSTermination(Wire):
    enabled: bool = True
    terminate_at: str | None = None
    min_version: str | None = None


class EndpointTLSTerminationMutate(Body):
    """Assumed: `min_version` is `1.2` or `1.3`; None lets the service pick."""

    enabled: bool | None = None
    terminate_at: Literal["edge", "upstream"] | None = None
    min_version: Literal["1.2", "1.3"] | None = None


class EndpointCircuitBreaker(Wire):
    enabled: bool = True
    tripped_duration: int | None = None
    rolling_window: int | None = None
    num_buckets: int | None = None
    volume_threshold: int | None = None
    error_threshold_percentage: float | None = None


class EndpointCircuitBreakerMutate(Body):
    """Durations in seconds; `error_threshold_percentage` is a fraction between 0 and 1."""

    enabled: bool | None = None
    tripped_duration: Uint32 | None = None
    rolling_window: Uint32 | None = None
    num_buckets: Annotated[Uint32, Le(128)] | None = None
    volume_threshold: Uint32 | None = None
    error_threshold_percentage: Annotated[float, Ge(0), Le(1)] | None = None


class EndpointHeaders(Wire):
    """Request headers and response headers have one shape."""

    enabled: bool = True
    add: dict[str, str] = {}
    remove: list[str] = []


class EndpointHeadersMutate(Body):
    enabled: bool | None = None
    add: dict[str, str] | None = None
    remove: list[str] | None = None


class EndpointSwitch(Wire):
    """Compression and the websocket-to-TCP converter have `enabled` alone."""

    enabled: bool = True


class EndpointSwitchMutate(Body):
    enabled: bool | None = None


class EndpointWebhookValidation(Wire):
    enabled: bool = True
    provider: str = ""
    secret: Secret | None = Field(default=None, repr=False)


class EndpointWebhookValidationMutate(Body):
    enabled: bool | None = None
    provider: str | None = None
    secret: Secret | None = Field(default=None, repr=False)


class Session(Wire):
    """What OIDC, SAML and OAuth share. Times are in seconds."""

    enabled: bool = True
    options_passthrough: bool = False
    cookie_prefix: str | None = None
    inactivity_timeout: int | None = None
    maximum_duration: int | None = None


class SessionMutate(Body):
    enabled: bool | None = None
    options_passthrough: bool | None = None
    cookie_prefix: str | None = None
    inactivity_timeout: Uint32 | None = None
    maximum_duration: Uint32 | None = None


class EndpointOIDC(Session):
    issuer: str = ""
    client_id: str = ""
    client_secret: Secret | None = Field(default=None, repr=False)
    scopes: list[str] = []


class EndpointOIDCMutate(SessionMutate):
    issuer: str | None = None
    client_id: str | None = None
    client_secret: Secret | None = Field(default=None, repr=False)
    scopes: list[str] | None = None


class EndpointSAML(Session):
    idp_metadata: str = ""
    force_authn: bool = False
    allow_idp_initiated: bool = False
    authorized_groups: list[str] = []
    nameid_format: str = ""
    idp_metadata_url: str | None = None
    """Address of the identity provider's metadata."""
    entity_id: str | None = None
    """Entity id of the service provider, for the identity provider; a URL equal to the metadata URL."""
    assertion_consumer_service_url: str | None = None
    """Where the identity provider sends its assertions."""
    single_logout_url: str | None = None
    """Where the identity provider sends logout requests."""
    request_signing_certificate_pem: str | None = None
    """PEM certificate whose key signs SAML requests."""
    metadata_url: str | None = None
    """Public address of the service provider's metadata."""


class EndpointSAMLMutate(SessionMutate):
    idp_metadata: str | None = None
    force_authn: bool | None = None
    allow_idp_initiated: bool | None = None
    authorized_groups: list[str] | None = None
    nameid_format: str | None = None


class OAuthApp(Wire):
    """One identity provider's settings."""

    client_id: str | None = None
    client_secret: Secret | None = Field(default=None, repr=False)
    scopes: list[str] = []
    email_addresses: list[str] = []
    email_domains: list[str] = []


class CodeHostApp(OAuthApp):
    """`teams` have the form `<org>/<team>`."""

    teams: list[str] = []
    organizations: list[str] = []


class EndpointOAuthProvider(Wire):
    """One member is set, named after the provider."""

    code_host_a: CodeHostApp | None = None
    social_network: OAuthApp | None = None
    os_vendor: OAuthApp | None = None
    search_vendor: OAuthApp | None = None
    professional_network: OAuthApp | None = None
    code_host_b: OAuthApp | None = None
    streaming_vendor: OAuthApp | None = None
    retail_vendor: OAuthApp | None = None


class EndpointOAuth(Session):
    provider: EndpointOAuthProvider | None = None
    auth_check_interval: int | None = None


class OAuthAppMutate(Body):
    client_id: str | None = None
    client_secret: Secret | None = Field(default=None, repr=False)
    scopes: list[str] | None = None
    email_addresses: list[str] | None = None
    email_domains: list[str] | None = None


class CodeHostAppMutate(OAuthAppMutate):
    teams: list[str] | None = None
    organizations: list[str] | None = None


class EndpointOAuthProviderMutate(Body):
    code_host_a: CodeHostAppMutate | None = None
    social_network: OAuthAppMutate | None = None
    os_vendor: OAuthAppMutate | None = None
    search_vendor: OAuthAppMutate | None = None
    professional_network: OAuthAppMutate | None = None
    code_host_b: OAuthAppMutate | None = None
    streaming_vendor: OAuthAppMutate | None = None
    retail_vendor: OAuthAppMutate | None = None


class EndpointOAuthMutate(SessionMutate):
    provider: EndpointOAuthProviderMutate | None = None
    auth_check_interval: Uint32 | None = None
