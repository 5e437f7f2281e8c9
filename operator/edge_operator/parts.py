"""Sub-objects that several kinds share. Source: API document, Module shapes as sent; HTTPS route module fields."""

from __future__ import annotations

from typing import Annotated, Literal

from annotated_types import Ge, Le, MaxLen, MinLen

from edge_operator.api.wire import SentAs, Uint32
from edge_operator.declare import (
    AnyRef,
    CaseInsensitive,
    Format,
    OneOf,
    Part,
    Reference,
    RemoteRef,
    Rule,
    SecretInput,
    TextInput,
    Unordered,
)

Text = Annotated[str, MinLen(1), MaxLen(2048)]
Texts = Annotated[list[Text], MaxLen(256)]

AnyBackend = Annotated[
    AnyRef, Reference("WeightedBackend", "FailoverBackend", ids=("bkdwd_", "bkdfo_", "bkdhr_", "bkdtg_"))
]


class Switch(Part):
    """A module with nothing but a switch."""

    enabled: bool = True
    """False switches the module off and keeps its settings."""


class Backend(Switch):
    """Where the traffic goes."""

    ref: Annotated[AnyBackend, SentAs("backend_id")]
    """The backend: a WeightedBackend or FailoverBackend by kind and name, or any backend by id."""


class IPRestriction(Switch):
    """Which addresses may connect."""

    ip_policies: Annotated[
        list[Annotated[RemoteRef, Reference(ids=("ipp_",))]],
        MinLen(1),
        MaxLen(64),
        SentAs("ip_policy_ids"),
        Unordered(),
    ]
    """IP policies that decide, by id."""


class MutualTLS(Switch):
    """Clients must show a certificate."""

    certificate_authorities: Annotated[
        list[Annotated[RemoteRef, Reference(ids=("ca_",))]],
        MinLen(1),
        MaxLen(64),
        SentAs("certificate_authority_ids"),
        Unordered(),
    ]
    """Certificate authorities that sign accepted client certificates, by id."""


class TLSTermination(Switch):
    """Where TLS ends."""

    rules = (
        Rule(
            "self.terminateAt == 'edge' || !has(self.minVersion)",
            "minVersion needs terminateAt: edge; with upstream the service does not take part in the handshake",
            lambda t: t.terminate_at == "edge" or t.min_version is None,
        ),
    )

    terminate_at: Literal["edge", "upstream"]
    """edge: the service terminates TLS. upstream: TLS passes through to the agent or application."""
    min_version: Literal["1.2", "1.3"] | None = None
    """Lowest TLS version that is accepted; the service picks a safe one when this is left out. Assumed: 1.2 or 1.3."""


class CircuitBreaker(Switch):
    """Rejects requests when the upstream fails too often."""

    tripped_duration: Uint32 | None = None
    """Seconds to wait after the circuit trips before upstream health is evaluated again."""
    rolling_window: Uint32 | None = None
    """Seconds of the statistical rolling window."""
    num_buckets: Annotated[int, Ge(0), Le(128)] | None = None
    """Number of buckets that metrics are held in, at most 128."""
    volume_threshold: Uint32 | None = None
    """Requests in a rolling window that will trip the circuit."""
    error_threshold_percentage: Annotated[float, Ge(0), Le(1)] | None = None
    """Fraction of failed requests between 0 and 1.0 (not 0 to 100)."""


HeaderName = Annotated[str, MinLen(1), MaxLen(256)]


class Headers(Switch):
    """Headers that are added and removed."""

    add: Annotated[dict[HeaderName, Annotated[str, MaxLen(4096)]] | None, MaxLen(128), CaseInsensitive()] = None
    """Headers to add, by name. Names compare without case."""
    remove: Annotated[list[HeaderName] | None, MaxLen(128), Unordered(), CaseInsensitive()] = None
    """Names of headers to remove. Names compare without case."""


class WebhookVerification(Switch):
    """Checks that requests are signed by a webhook provider."""

    rules = (
        Rule(
            "self.provider.lowerAscii() == 'aws_sns' || has(self.secret)",
            "secret is needed for every provider but aws_sns",
            lambda w: w.provider.lower() == "aws_sns" or w.secret is not None,
        ),
    )

    provider: Annotated[str, MinLen(1), MaxLen(64), CaseInsensitive()]
    """The webhook provider that sends to the endpoint."""
    secret: SecretInput | None = None
    """Validates requests from the provider; needed for every provider but one (aws_sns)."""


class Session(Switch):
    """What OAuth, SAML and OIDC share."""

    options_passthrough: bool | None = None
    """When true, authentication is not enforced on HTTP OPTIONS requests (needed for CORS)."""
    cookie_prefix: Annotated[str, MaxLen(128)] | None = None
    """Prefix of the session cookie; the service has a default of its own."""
    inactivity_timeout: Uint32 | None = None
    """Seconds of inactivity after which the session ends and the user must authenticate again."""
    maximum_duration: Uint32 | None = None
    """Longest duration of an authenticated session in seconds."""


class OIDC(Session):
    """Sign-in with an OpenID provider."""

    issuer: Text
    """Base URL of the OpenID provider, used for discovery."""
    client_id: Text
    """Client ID and audience."""
    client_secret: SecretInput
    """Client secret."""
    scopes: Texts | None = None
    """Scopes to ask for."""


class SAML(Session):
    """Sign-in with a SAML identity provider."""

    idp_metadata: TextInput
    """The full XML EntityDescriptor of the identity provider."""
    force_authn: bool | None = None
    """When true, the identity provider must prompt for credentials even if the user has a session there."""
    allow_idp_initiated: bool | None = None
    """When true, the identity provider may start a login; it should set RelayState to the target URL."""
    authorized_groups: Annotated[Texts | None, Unordered()] = None
    """When set, only members of one of these groups may access the endpoint."""
    nameid_format: Literal[
        "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent",
        "urn:oasis:names:tc:SAML:2.0:nameid-format:transient",
        "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress",
        "urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified",
    ] = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"
    """Name identifier format that is expected from the identity provider. Assumed: these four."""


class OAuthApp(Part):
    """One OAuth provider: who may enter, and optionally an application of your own."""

    rules = (
        Rule(
            "has(self.clientID) == has(self.clientSecret)",
            "clientID and clientSecret come together; leave out both to use the service's own application",
            lambda a: (a.client_id is None) == (a.client_secret is None),
        ),
        Rule(
            "!has(self.scopes) || has(self.clientID)",
            "scopes need an application of your own: set clientID and clientSecret",
            lambda a: a.scopes is None or a.client_id is not None,
        ),
    )

    client_id: Text | None = None
    """Client ID of your own OAuth application; the service's managed one is used when this is left out."""
    client_secret: SecretInput | None = None
    """Client secret of your own OAuth application."""
    scopes: Texts | None = None
    """Provider-specific scopes; only with clientID and clientSecret."""
    email_addresses: Annotated[Texts | None, Unordered()] = None
    """Email addresses of authenticated users that are allowed access."""
    email_domains: Annotated[Texts | None, Unordered()] = None
    """Email domains of authenticated users that are allowed access."""


class CodeHostApp(OAuthApp):
    """A code host, which also knows teams and organizations."""

    teams: Annotated[Texts | None, Unordered()] = None
    """Team slugs of the form <org>/<team>; membership in any grants access."""
    organizations: Annotated[Texts | None, Unordered()] = None
    """Organization slugs; membership in any grants access."""


class OAuthProvider(OneOf):
    """The identity provider, by its neutral name."""

    code_host_a: CodeHostApp | None = None
    """A code host with teams and organizations."""
    social_network: OAuthApp | None = None
    """A social network."""
    os_vendor: OAuthApp | None = None
    """An operating-system vendor."""
    search_vendor: OAuthApp | None = None
    """A search vendor."""
    professional_network: OAuthApp | None = None
    """A professional network."""
    code_host_b: OAuthApp | None = None
    """Another code host."""
    streaming_vendor: OAuthApp | None = None
    """A streaming vendor."""
    retail_vendor: OAuthApp | None = None
    """A retail vendor."""


class OAuth(Session):
    """Sign-in with an OAuth provider."""

    provider: OAuthProvider
    """The identity provider and who may enter."""
    auth_check_interval: Uint32 | None = None
    """Seconds after which user state is refreshed from the identity provider and authorization checked again."""


_HOST = r"([^]:/\[ ]+|\[[0-9A-Fa-f:.]+\])"
_PORT = "([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
Hostport = Annotated[
    str, MinLen(3), MaxLen(260), Format(f"{_HOST}:{_PORT}", "should be host:port, such as app.example.com:443")
]
Hostports = Annotated[list[Hostport], MinLen(1), MaxLen(64), Unordered()]
