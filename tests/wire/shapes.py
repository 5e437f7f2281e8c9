"""The fields of every object in the API document, by hand, as returned and as sent; and what an answer has by default.

Source: API document, Resources and their fields. Types: `str`, `bool`, `int`, `float`, `list` (of strings), `map`
(string to string), `weights` (string to integer), `time` (RFC 3339), `id`, `uri`, or the name of another shape, `[X]`
for a list of shape X. `?` means "or null".
"""

from __future__ import annotations

from typing import Final


def typed(row: str) -> dict[str, str]:
    """`enabled:bool secret` as `{"enabled": "bool", "secret": "str"}`."""
    return {name: kind or "str" for name, _, kind in (word.partition(":") for word in row.split())}


_EVERY: Final = "id:id uri:uri created_at:time description metadata"
_SESSION: Final = "enabled:bool options_passthrough:bool cookie_prefix inactivity_timeout:int? maximum_duration:int?"
_PROVIDERS: Final = """
    social_network:OAuthApp? os_vendor:OAuthApp? search_vendor:OAuthApp? professional_network:OAuthApp?
    code_host_b:OAuthApp? streaming_vendor:OAuthApp? retail_vendor:OAuthApp?
"""
_APP: Final = "client_id:str? client_secret:str? scopes:list email_addresses:list email_domains:list"
_ROUTE_MODULES: Final = """
    backend:EndpointBackend? ip_restriction:EndpointIPPolicy? circuit_breaker:EndpointCircuitBreaker?
    compression:EndpointCompression? request_headers:EndpointRequestHeaders?
    response_headers:EndpointResponseHeaders? webhook_verification:EndpointWebhookValidation? oauth:EndpointOAuth?
    saml:EndpointSAML? oidc:EndpointOIDC? websocket_tcp_converter:EndpointWebsocketTCPConverter?
"""

_ANSWERED: Final = {
    # Ref
    "Ref": "id uri:uri",
    # APIKey
    "APIKey": f"{_EVERY} token:str? owner_id",
    # Credential
    "Credential": f"{_EVERY} token:str? acl:list owner_id",
    # TunnelSession
    "TunnelSession": "id:id uri:uri agent_version credential:Ref ip metadata os region started_at:time transport",
    # AgentIngress
    "AgentIngress": f"{_EVERY} domain ns_targets:list region_domains:list",
    # SSHCertificateAuthority
    "SSHCertificateAuthority": f"{_EVERY} public_key key_type",
    # SSHUserCertificate
    "SSHUserCertificate": f"""{_EVERY} public_key key_type ssh_certificate_authority_id principals:list
        critical_options:map extensions:map valid_after:time valid_until:time certificate""",
    # SSHHostCertificate
    "SSHHostCertificate": f"""{_EVERY} public_key key_type ssh_certificate_authority_id principals:list
        valid_after:time valid_until:time certificate""",
    # TLSCertificate
    "TLSCertificate": f"""{_EVERY} certificate_pem subject_common_name subject_alternative_names:TLSCertificateSANs
        issued_at:time? not_before:time not_after:time key_usages:list extended_key_usages:list private_key_type
        issuer_common_name serial_number subject_organization subject_organizational_unit subject_locality
        subject_province subject_country""",
    "TLSCertificateSANs": "dns_names:list ips:list",
    # WeightedBackend, FailoverBackend
    "WeightedBackend": f"{_EVERY} backends:weights",
    "FailoverBackend": f"{_EVERY} backends:list",
    # TCPEdge, TLSEdge
    "TCPEdge": f"{_EVERY} hostports:list backend:EndpointBackend? ip_restriction:EndpointIPPolicy?",
    "TLSEdge": f"""{_EVERY} hostports:list backend:EndpointBackend? ip_restriction:EndpointIPPolicy?
        mutual_tls:EndpointMutualTLS? tls_termination:EndpointTLSTermination?""",
    # Assumed: HTTPS edge
    "HTTPSEdge": f"""{_EVERY} hostports:list mutual_tls:EndpointMutualTLS? tls_termination:EndpointTLSTermination?
        routes:[HTTPSRoute]""",
    # HTTPS edge route
    "HTTPSRoute": f"{_EVERY} edge_id match_type match {_ROUTE_MODULES}",
    # Module shapes as returned
    "EndpointBackend": "enabled:bool backend:Ref",
    "EndpointIPPolicy": "enabled:bool ip_policies:[Ref]",
    "EndpointMutualTLS": "enabled:bool certificate_authorities:[Ref]",
    "EndpointTLSTermination": "enabled:bool terminate_at min_version:str?",
    # HTTPS route module fields
    "EndpointCircuitBreaker": """enabled:bool tripped_duration:int? rolling_window:int? num_buckets:int?
        volume_threshold:int? error_threshold_percentage:float?""",
    "EndpointRequestHeaders": "enabled:bool add:map remove:list",
    "EndpointResponseHeaders": "enabled:bool add:map remove:list",
    "EndpointCompression": "enabled:bool",
    "EndpointWebsocketTCPConverter": "enabled:bool",
    "EndpointWebhookValidation": "enabled:bool provider secret:str?",
    "EndpointOIDC": f"{_SESSION} issuer client_id client_secret:str? scopes:list",
    "EndpointSAML": f"""{_SESSION} idp_metadata force_authn:bool allow_idp_initiated:bool authorized_groups:list
        nameid_format idp_metadata_url:str? entity_id assertion_consumer_service_url single_logout_url
        request_signing_certificate_pem metadata_url""",
    "EndpointOAuth": f"{_SESSION} provider:EndpointOAuthProvider auth_check_interval:int?",
    "EndpointOAuthProvider": f"code_host_a:CodeHostApp? {_PROVIDERS}",
    "OAuthApp": _APP,
    "CodeHostApp": f"{_APP} teams:list organizations:list",
    # EventDestination
    "EventDestination": f"{_EVERY} format target:EventTarget",
    "EventTarget": "batch_stream:BatchStream? data_stream:DataStream? log_group:LogGroup? monitoring:Monitoring?",
    "BatchStream": "auth:AWSAuth delivery_stream_arn",
    "DataStream": "auth:AWSAuth stream_arn",
    "LogGroup": "auth:AWSAuth log_group_arn",
    "Monitoring": "api_key:str? tags:str? service:str? site:str?",
    "AWSAuth": "role:AWSRole? creds:AWSCreds?",
    "AWSRole": "role_arn",
    "AWSCreds": "cloud_access_key_id:str? cloud_secret_access_key:str?",
}
ANSWERED: Final = {name: typed(row) for name, row in _ANSWERED.items()}
"""Objects as returned."""

_SENT_SESSION: Final = "enabled:bool options_passthrough:bool cookie_prefix inactivity_timeout:int maximum_duration:int"
_SENT_APP: Final = "client_id client_secret scopes:list email_addresses:list email_domains:list"
_SENT: Final = {
    # Module shapes as sent
    "EndpointBackendMutate": "enabled:bool backend_id",
    "EndpointIPPolicyMutate": "enabled:bool ip_policy_ids:list",
    "EndpointMutualTLSMutate": "enabled:bool certificate_authority_ids:list",
    "EndpointTLSTerminationMutate": "enabled:bool terminate_at min_version",
    # HTTPS route module fields
    "EndpointCircuitBreakerMutate": """enabled:bool tripped_duration:int rolling_window:int num_buckets:int
        volume_threshold:int error_threshold_percentage:float""",
    "EndpointRequestHeadersMutate": "enabled:bool add:map remove:list",
    "EndpointResponseHeadersMutate": "enabled:bool add:map remove:list",
    "EndpointCompressionMutate": "enabled:bool",
    "EndpointWebsocketTCPConverterMutate": "enabled:bool",
    "EndpointWebhookValidationMutate": "enabled:bool provider secret",
    "EndpointOIDCMutate": f"{_SENT_SESSION} issuer client_id client_secret scopes:list",
    "EndpointSAMLMutate": f"""{_SENT_SESSION} idp_metadata force_authn:bool allow_idp_initiated:bool
        authorized_groups:list nameid_format""",
    "EndpointOAuthMutate": f"{_SENT_SESSION} provider:EndpointOAuthProviderMutate auth_check_interval:int",
    "EndpointOAuthProviderMutate": f"code_host_a:CodeHostAppMutate {_PROVIDERS.replace('?', 'Mutate')}",
    "OAuthAppMutate": _SENT_APP,
    "CodeHostAppMutate": f"{_SENT_APP} teams:list organizations:list",
    # HTTPS edge routes
    "HTTPSRouteMutate": f"match_type match description metadata {_ROUTE_MODULES.replace('?', 'Mutate')}",
    # EventDestination
    "EventTargetMutate": """batch_stream:BatchStreamMutate data_stream:DataStreamMutate log_group:LogGroupMutate
        monitoring:MonitoringMutate""",
    "BatchStreamMutate": "auth:AWSAuthMutate delivery_stream_arn",
    "DataStreamMutate": "auth:AWSAuthMutate stream_arn",
    "LogGroupMutate": "auth:AWSAuthMutate log_group_arn",
    "MonitoringMutate": "api_key tags service site",
    "AWSAuthMutate": "role:AWSRoleMutate creds:AWSCredsMutate",
    "AWSRoleMutate": "role_arn",
    "AWSCredsMutate": "cloud_access_key_id cloud_secret_access_key",
}
SENT: Final = {name: typed(row) for name, row in _SENT.items()}
"""Objects as sent."""
