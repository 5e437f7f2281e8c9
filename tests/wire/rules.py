"""Every rule of the API document, by hand: `key: the rule in short`, below the section that states it.

`test_coverage.py` fails while a rule has no transcript or test that cites its key. Keys below `Assumed` are choices of
this project where the document says "not shown".
"""

from __future__ import annotations

from typing import Final

_RULES: Final = """
[Conventions that hold for every endpoint]
Conventions 1: every request carries a bearer key and the version header, one with a body Content-Type application/json
Conventions 2: create 201, get, list, update and module replace 200, delete and commands 204 without a body
Conventions 3: every resource has id and uri; timestamps are RFC 3339
Conventions 4: a list is one array named per type, uri, and next_page_uri, null when there is no next page
Conventions 5: description is optional, at most 255 bytes; metadata is optional, at most 4096 bytes
Conventions 6: every module has enabled, true when omitted
Conventions 7: a module or nested object that is not configured is null
Conventions 8: a generated token is returned in the create response and never again
[Identifier prefixes]
Prefixes: the id of each resource has its prefix
Prefixes, referenced: bkdhr_, bkdtg_, ipp_, ca_ and usr_ are referenced only
[APIKey]
APIKey owner: owner_id defaults to the authenticated user; only admins may set another
[Credential]
Credential owner: as for API keys
ACL 1: omitted or empty acl means no restrictions
ACL 2: the only rule kind is bind:<target>
ACL 3: a domain may start with *.
ACL 4: a label is <key>=<value>, and either may be *
ACL 5: the single rule * permits everything
[TunnelSession]
Session fields: version, credential Ref, ip, metadata, os, region, started_at
Session transport: <service>/v2 or ssh
[AgentIngress]
Ingress domains: ns_targets for the domain, region_domains below it
Ingress growth: region_domains may grow
[SSHCertificateAuthority]
Authority types: rsa, ecdsa or ed25519
Authority private key: never returned
[SSHUserCertificate]
User certificate key: authorized-keys format; key_type is that of public_key
User certificate principals: an empty list allows any user
User certificate critical options: only force-command and source-address
User certificate extensions: permit-pty and permit-user-rc with empty values when unspecified
User certificate dates: valid_after and valid_until in RFC 3339
User certificate form: signed, in authorized-keys format
[SSHHostCertificate]
Host certificate fields: no critical_options, no extensions
Host certificate principals: hostnames and addresses; an empty list is valid for all hosts
[TLSCertificate]
TLS leaf: subject, issuer, serial, SANs, usages and dates come from the leaf
TLS chain: certificate_pem is a chain of PEM certificates, leaf first
TLS issued_at: null for an uploaded certificate
TLS private key: accepted at upload and not returned
[WeightedBackend]
Weighted backends: child id to weight
[FailoverBackend]
Failover order: child ids, in order
[TCPEdge, TLSEdge]
TCP edge: hostports, backend, ip_restriction
TLS edge: the TCP edge's fields, mutual_tls and tls_termination
[Module shapes]
Modules returned: Refs are returned where ids are sent
[TLS termination rules]
Termination 1: terminate_at is edge or upstream
Termination 2: upstream disallows modules that need decrypted traffic
Termination 3: min_version is null when terminate_at is upstream; the service picks when it is unspecified
[HTTPS edge route]
Route match type: exact_path or path_prefix
Route match: /path, host or host/path
[HTTPS route module fields]
Circuit breaker: five fields, fraction from 0 to 1
Request headers: enabled, add, remove
Response headers: enabled, add, remove
Compression: enabled only
Websocket converter: enabled only
Webhook provider: must be a supported provider
Webhook secret: required for every provider except one
OIDC: issuer, client_id, client_secret and scopes are returned as stored
Session module fields: options_passthrough, cookie_prefix with its default, inactivity_timeout, maximum_duration
SAML fields: metadata, two switches, groups and a name identifier format with its default
SAML read-only: addresses and the signing certificate of the service provider
OAuth provider: one member per identity provider; the others are null
OAuth code host: code_host_a alone has teams <org>/<team> and organizations
OAuth 1: without client_id the service uses its own application
OAuth 2: client_secret must come with client_id
OAuth 3: scopes need client_id and client_secret
[EventDestination]
Event format: the only accepted value is json
Event target: exactly one non-null member of four, the rest null
Cloud auth: exactly one of role and creds
[Agent command rules]
Command 1: restart gives a new session id and is refused on a system that is no Unix
Command 2: stop ends the session
Command 3: update stays within the major version
Command 4: wait ten seconds after an update before restarting, so that the new code is used
Command 5 no update: update fails when no update is available
Command 5 disabled: update fails when the agent's configuration disabled update checks
Command 5 updating: update fails while the agent updates
Command 5 updated: update fails when the agent updated and was not restarted
Sessions online: only online sessions are listed
[Edge update rule]
Edge update absent: a module that a PATCH leaves out is unchanged
Edge update present: a module in a PATCH replaces the old one completely
Edge update removal: a module is removed by its own delete, never by PATCH
[HTTPS route modules]
Module replace: PUT replaces the whole module and returns it; GET reads it; DELETE removes it
[Authentication]
Authentication 1: bearer token
Authentication 2: a key made here opens the API; its token is shown once
Authentication 3: a credential's token does not open the API; it is shown once
[Errors]
Errors 3 client secret: OAuth client_id without client_secret
Errors 3 scopes: OAuth scopes without client_id and client_secret
Errors 3 min_version: min_version with terminate_at upstream
Errors 3 target: an event target with no or more than one member
Errors 3 auth: cloud auth with both or neither
[Limits]
Limits description: 255 bytes
Limits metadata: 4096 bytes
Limits weight: integer from 0 to 10000
Limits num_buckets: at most 128
Limits fraction: error_threshold_percentage between 0 and 1
Limits key size: 2048 or 4096
Limits wait: ten seconds between update and restart
Limits user validity: 24 hours from creation
Limits host validity: one year from creation
[Versioning]
Version 1: the header Service-Version is 2
Version 2: update never crosses a major version
[Assumed: Protocol]
Paging limit: limit from 1 to 100
Paging order: newest first
Paging links: next_page_uri is absolute, on the host that the caller used, and null at the end
Paging parameters: what is out of range, malformed or unknown is refused
Ids: the prefix and 27 characters that sort by time
Tokens: 27 characters, _ and 21 characters; stored as a hash
Times echoed: a time is echoed as it was given
Error body: error_code (not in a plain 404), status_code, msg, details with operation_id
Status 401: no key, an unknown or a revoked one; 403 by setting
Status 403: not permitted
Status 404: an unknown id
Status 409: a conflicting state
Status 429: over the rate limit
Version refused: a missing version or another one is refused and the supported one is named
Bodies: unknown members, wrong types and wrong prefixes are refused
Body tolerated: an empty object is tolerated where no body is expected
Not given: absent and null are the same; for elliptic_curve and key_size also "" and 0
Empty texts: an empty description is "", never left out
No CORS: cross-origin headers are not sent
[Assumed: Operations]
HTTPS edge: its operations, fields and routes
HTTPS edge deleted: its routes go with it
Route list: there is none
Module unset: GET 404, DELETE 204
Taken: a hostport, a match or a domain that is taken is a 409 that names its owner; hosts have no case
Event update: the whole resource; a target left out is kept
Backends unchanged: a PATCH without backends changes none
Secrets echoed: returned as stored, or null by setting
In use: a backend in a backend, an edge or a route, and an authority with certificates stay; the user is named
Header names: stored lower-case
min_version: 1.2 or 1.3
Authority defaults: ed25519; p256; 2048
Curves: p256, p384, p521
nameid_format: persistent, transient, emailAddress, unspecified
Webhook names: compared without case; aws_sns needs no secret
Match empty: refused
Hostports: host:port
SSH signature: key id is the resource's id, serial 0
Registered: referenced-only ids may have to be registered, by setting
Profile: the names of another service, by setting
"""


def _rules() -> dict[str, str]:
    found = {}
    for line in _RULES.strip().splitlines():
        if not line.startswith("["):
            key, _, text = line.partition(": ")
            assert key not in found, key
            found[key] = text
    return found


RULES: Final = _rules()
"""The rules by their keys."""
