"""HTTPSRoute matches requests on an HTTPS edge and runs them through its modules."""

from __future__ import annotations

from typing import Annotated, Literal

from annotated_types import MaxLen, MinLen

from edge_operator import parts
from edge_operator.api import catalog
from edge_operator.declare import (
    Column,
    Format,
    Guard,
    Immutable,
    InPath,
    Kind,
    ObjectRef,
    Reference,
    Sub,
)
from edge_operator.policies import Described


class Spec(Described):
    """A route of an HTTPS edge. Each module is removed from the route when it is removed here."""

    edge: Annotated[ObjectRef, Reference("HTTPSEdge", ids=("edghts_",)), InPath("edge_id"), Immutable()]
    """The HTTPSEdge that the route belongs to; cannot be changed."""
    match_type: Literal["exact_path", "path_prefix"]
    """How match is compared."""
    match: Annotated[
        str, MinLen(1), MaxLen(2048), Format("([^/?#: ]+)?(/[^?# ]*)?", "should be /path, host or host/path")
    ]
    """Which requests the route takes, of the forms /path, host, or host/path."""
    backend: Sub[parts.Backend] = None
    """Where requests go."""
    ip_restriction: Guard[parts.IPRestriction] = None
    """Which addresses may send requests."""
    circuit_breaker: Sub[parts.CircuitBreaker] = None
    """Rejects requests when the upstream fails too often."""
    compression: Sub[parts.Switch] = None
    """Compresses responses."""
    request_headers: Sub[parts.Headers] = None
    """Headers added to and removed from the request before it goes upstream."""
    response_headers: Sub[parts.Headers] = None
    """Headers added to and removed from the response to the client."""
    webhook_verification: Guard[parts.WebhookVerification] = None
    """Checks that requests are signed by a webhook provider."""
    oauth: Guard[parts.OAuth] = None
    """Sign-in with an OAuth provider."""
    saml: Guard[parts.SAML] = None
    """Sign-in with a SAML identity provider."""
    oidc: Guard[parts.OIDC] = None
    """Sign-in with an OpenID provider."""
    websocket_tcp_converter: Sub[parts.Switch] = None
    """Turns websocket connections into TCP connections."""


KIND = Kind(
    name="HTTPSRoute",
    spec=Spec,
    api=catalog.https_routes,
    short=("hsr",),
    columns=(Column("Edge", ".spec.edge.name"), Column("Match", ".spec.match")),
    example="""
    edge: {name: example}
    matchType: path_prefix
    match: /api
    backend:
      ref: {kind: WeightedBackend, name: example}
    ipRestriction:
      ipPolicies: [{id: ipp_2yrt9bq0U3H2dBBOxrYmAkFMnvJ}]
    circuitBreaker:
      {trippedDuration: 10, rollingWindow: 60, numBuckets: 10, volumeThreshold: 20, errorThresholdPercentage: 0.25}
    compression: {}
    requestHeaders: {add: {x-env: production}, remove: [x-debug]}
    responseHeaders: {add: {x-frame-options: DENY}, remove: [server]}
    webhookVerification:
      provider: github
      secret: {secretKeyRef: {name: example-route, key: webhook}}
    oauth:
      provider:
        codeHostA:
          clientID: shop
          clientSecret: {secretKeyRef: {name: example-route, key: oauth}}
          scopes: [read]
          organizations: [example]
      maximumDuration: 86400
      authCheckInterval: 3600
    saml:
      idpMetadata: {secretKeyRef: {name: example-route, key: idp}}
      forceAuthn: true
      authorizedGroups: [admins]
    oidc:
      issuer: https://login.example.com
      clientID: shop
      clientSecret: {secretKeyRef: {name: example-route, key: oidc}}
      scopes: [profile]
      inactivityTimeout: 600
    websocketTCPConverter: {enabled: false}
    """,
    needs="""
    apiVersion: v1
    kind: Secret
    metadata: {name: example-route}
    stringData:
      webhook: webhook-signing-secret
      oauth: oauth-client-secret
      oidc: oidc-client-secret
      idp: <EntityDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata" entityID="https://idp.example.com/metadata"/>
    """,
)
