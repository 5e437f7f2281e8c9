"""Good and bad specs, each a change to a kind's sample: held against the Python models and a real API server."""

from __future__ import annotations

from typing import Any

from derive.case import Case, Move, manifest, merge
from edge_operator.kinds import DECLARED

__all__ = ["CASES", "FIXED", "MOVES", "Case", "Move", "manifest", "merge"]

SECRET = {"secretKeyRef": {"name": "example", "key": "value"}}
BACKEND_PREFIX = "should start with bkdwd_, bkdfo_, bkdhr_ or bkdtg_"
KIND_NAME = "kind and name come together"
FIXED = "cannot be changed after creation; delete and create the resource instead"


def _ref(**ref: str) -> dict[str, Any]:
    return {"backend": {"ref": {"kind": None, "name": None, **ref}}}


def _weights(*children: tuple[str, int]) -> dict[str, Any]:
    return {"backends": [{"ref": {"id": id_}, "weight": weight} for id_, weight in children]}


POLICIES = [
    Case("127 times é is 254 bytes", "TLSEdge", {"description": "é" * 127}),
    Case("128 times é is 256 bytes", "TLSEdge", {"description": "é" * 128}, "has 256 bytes; at most 255 are allowed"),
    Case("256 characters", "TLSEdge", {"description": "a" * 256}, "255"),
    Case("metadata up to 3,840 bytes", "TLSEdge", {"metadata": "a" * 3840}),
    Case("metadata of 3,842 bytes", "TLSEdge", {"metadata": "é" * 1921}, "has 3842 bytes; at most 3840 are allowed"),
    Case("the marker's name", "TLSEdge", {"metadata": '{"edge-operator.dev/owner": "me"}'}, "is reserved"),
    Case("adoption", "TLSEdge", {"externalID": "edgtls_1", "deletionPolicy": "Retain"}),
    Case("adoption without a policy", "TLSEdge", {"externalID": "edgtls_1"}, "needs an explicit deletionPolicy"),
    Case(
        "adoption of another kind's object",
        "TLSEdge",
        {"externalID": "edghts_1", "deletionPolicy": "Retain"},
        "should start with edgtls_",
        judge="API server",
    ),
    Case("observing nothing", "TLSEdge", {"managementPolicy": "Observe"}, "needs the externalID"),
    Case(
        "observing an object",
        "TLSEdge",
        {"managementPolicy": "Observe", "externalID": "edgtls_1", "deletionPolicy": "Delete"},
    ),
    Case("an unknown policy", "TLSEdge", {"onRemoteMissing": "Ignore"}, '"Ignore"'),
    Case("an unknown deletion policy", "TLSEdge", {"deletionPolicy": "Orphan"}, '"Orphan"'),
    Case("a field that does not exist", "TLSEdge", {"colour": "red"}, "spec.colour"),
]

EDGES = [
    Case("no hostport", "TLSEdge", {"hostports": []}, "spec.hostports"),
    Case("a hostport twice", "TLSEdge", {"hostports": ["a:443", "a:443"]}, "Duplicate", judge="API server"),
    Case("no backend", "TLSEdge", {"backend": None}),
    Case("a backend by name and id", "TLSEdge", _ref(kind="WeightedBackend", name="a", id="bkdtg_1"), "exactly one of"),
    Case("a backend by nothing", "TLSEdge", _ref(), "set exactly one of name, id"),
    Case("a backend by name without kind", "TLSEdge", _ref(name="a"), KIND_NAME),
    Case("a backend by id with kind", "TLSEdge", _ref(kind="WeightedBackend", id="bkdwd_1"), KIND_NAME),
    Case("a backend of a wrong kind", "TLSEdge", _ref(kind="TLSEdge", name="a"), "TLSEdge"),
    Case("a backend by a wrong id", "TLSEdge", _ref(id="edgtls_1"), BACKEND_PREFIX),
    *(Case(f"a {prefix} backend", "TLSEdge", _ref(id=f"{prefix}1")) for prefix in ("bkdwd_", "bkdfo_", "bkdtg_")),
    Case("no policy", "TLSEdge", {"ipRestriction": {"ipPolicies": []}}, "ipPolicies"),
    Case("a wrong policy", "TLSEdge", {"ipRestriction": {"ipPolicies": [{"id": "ip_1"}]}}, "should start with ipp_"),
    Case(
        "a policy twice",
        "TLSEdge",
        {"ipRestriction": {"ipPolicies": [{"id": "ipp_1"}, {"id": "ipp_1"}]}},
        "Duplicate",
        judge="API server",
    ),
    Case(
        "a wrong authority",
        "TLSEdge",
        {"mutualTLS": {"certificateAuthorities": [{"id": "cert_1"}]}},
        "should start with ca_",
    ),
    Case("an unknown TLS version", "TLSEdge", {"tlsTermination": {"minVersion": "1.1"}}, '"1.1"'),
    Case(
        "a TLS version with upstream",
        "TLSEdge",
        {"mutualTLS": None, "tlsTermination": {"terminateAt": "upstream"}},
        "minVersion needs terminateAt: edge",
    ),
    Case(
        "client certificates with upstream",
        "TLSEdge",
        {"tlsTermination": {"terminateAt": "upstream", "minVersion": None}},
        "set tlsTermination.terminateAt to edge, or remove mutualTLS",
    ),
    Case("upstream", "TLSEdge", {"mutualTLS": None, "tlsTermination": {"terminateAt": "upstream", "minVersion": None}}),
    Case(
        "client certificates with upstream",
        "HTTPSEdge",
        {"tlsTermination": {"terminateAt": "upstream", "minVersion": None}},
        "set tlsTermination.terminateAt to edge, or remove mutualTLS",
    ),
]

BACKENDS = [
    Case("weights 0 and 10,000", "WeightedBackend", _weights(("bkdtg_1", 0), ("bkdtg_2", 10_000))),
    Case("a weight of 10,001", "WeightedBackend", _weights(("bkdtg_1", 10_001)), "10000"),
    Case("a negative weight", "WeightedBackend", _weights(("bkdtg_1", -1)), "spec.backends[0].weight"),
    Case("a weight of 1.5", "WeightedBackend", {"backends": [{"ref": {"id": "bkdtg_1"}, "weight": 1.5}]}, "weight"),
    Case("no child", "WeightedBackend", {"backends": []}, "spec.backends"),
    Case("a child twice", "WeightedBackend", _weights(("bkdtg_1", 1), ("bkdtg_1", 2)), "each ref may stand here once"),
    Case("a wrong child", "WeightedBackend", _weights(("edgtls_1", 1)), BACKEND_PREFIX),
    Case("the longest list", "WeightedBackend", _weights(*((f"bkdtg_{'x' * 100}{n}", n) for n in range(64)))),
    Case("a longer list", "WeightedBackend", _weights(*((f"bkdtg_{n}", n) for n in range(65))), "spec.backends"),
    Case("a wrong child", "FailoverBackend", {"backends": [{"id": "ipp_1"}]}, BACKEND_PREFIX),
]


def _oauth(**provider: Any) -> dict[str, Any]:
    return {"oauth": {"provider": {"codeHostA": None, **provider}}}


ROUTES = [
    Case("an unknown match type", "HTTPSRoute", {"matchType": "regex"}, '"regex"'),
    Case("an empty match", "HTTPSRoute", {"match": ""}, "spec.match"),
    Case("no edge", "HTTPSRoute", {"edge": None}, "spec.edge"),
    Case("an edge by name and id", "HTTPSRoute", {"edge": {"id": "edghts_1"}}, "set exactly one of name, id"),
    Case("a wrong edge", "HTTPSRoute", {"edge": {"name": None, "id": "edgtls_1"}}, "should start with edghts_"),
    Case("128 buckets", "HTTPSRoute", {"circuitBreaker": {"numBuckets": 128}}),
    Case("129 buckets", "HTTPSRoute", {"circuitBreaker": {"numBuckets": 129}}, "128"),
    Case("a fraction of 1", "HTTPSRoute", {"circuitBreaker": {"errorThresholdPercentage": 1}}),
    Case("a percentage", "HTTPSRoute", {"circuitBreaker": {"errorThresholdPercentage": 25}}, "should be less than or"),
    Case("a negative fraction", "HTTPSRoute", {"circuitBreaker": {"errorThresholdPercentage": -0.1}}, "greater than"),
    Case("the largest uint32", "HTTPSRoute", {"circuitBreaker": {"rollingWindow": 2**32 - 1}}),
    Case("more than a uint32", "HTTPSRoute", {"circuitBreaker": {"rollingWindow": 2**32}}, "4294967295"),
    Case("a webhook without secret", "HTTPSRoute", {"webhookVerification": {"secret": None}}, "secret is needed"),
    Case("aws_sns without secret", "HTTPSRoute", {"webhookVerification": {"secret": None, "provider": "AWS_SNS"}}),
    Case("a secret in the open", "HTTPSRoute", {"webhookVerification": {"secret": "hunter2"}}, "secret"),
    Case("no provider", "HTTPSRoute", _oauth(), "set exactly one of codeHostA, socialNetwork"),
    Case(
        "two providers",
        "HTTPSRoute",
        {"oauth": {"provider": {"searchVendor": {}}}},
        "set exactly one of codeHostA, socialNetwork",
    ),
    Case("the service's own application", "HTTPSRoute", _oauth(searchVendor={"emailDomains": ["example.com"]})),
    Case("a client without secret", "HTTPSRoute", _oauth(osVendor={"clientID": "a"}), "come together"),
    Case("a secret without client", "HTTPSRoute", _oauth(osVendor={"clientSecret": SECRET}), "come together"),
    Case("scopes without client", "HTTPSRoute", _oauth(osVendor={"scopes": ["a"]}), "set clientID and clientSecret"),
    Case("a group twice", "HTTPSRoute", {"saml": {"authorizedGroups": ["a", "a"]}}, "Duplicate", judge="API server"),
    Case("metadata in the open", "HTTPSRoute", {"saml": {"idpMetadata": {"secretKeyRef": None, "value": "<x/>"}}}),
    Case("metadata twice", "HTTPSRoute", {"saml": {"idpMetadata": {"value": "<x/>"}}}, "exactly one of value"),
    Case("an unknown name format", "HTTPSRoute", {"saml": {"nameidFormat": "x"}}, "nameidFormat"),
    Case("a long header name", "HTTPSRoute", {"requestHeaders": {"add": {"x" * 257: "a"}}}, "256 characters"),
    Case("an empty header name", "HTTPSRoute", {"requestHeaders": {"add": {"": "a"}}}, "add"),
]

CLOUD = {"role": {"roleARN": "arn:x"}}
KEYS = {"creds": {"cloudAccessKeyID": SECRET, "cloudSecretAccessKey": SECRET}}


def _stream(**auth: Any) -> dict[str, Any]:
    return {"target": {"monitoring": None, "dataStream": {"streamARN": "arn:y", "auth": auth}}}


EVENTS = [
    Case("no target", "EventDestination", {"target": {"monitoring": None}}, "set exactly one of batchStream"),
    Case("two targets", "EventDestination", {"target": _stream(**CLOUD)["target"] | {"monitoring": {}}}, "target"),
    Case("a stream with a role", "EventDestination", _stream(**CLOUD)),
    Case("a stream with keys", "EventDestination", _stream(**KEYS)),
    Case("both ways to sign in", "EventDestination", _stream(**CLOUD, **KEYS), "set exactly one of role, creds"),
    Case("no way to sign in", "EventDestination", _stream(), "set exactly one of role, creds"),
    Case("another format", "EventDestination", {"format": "xml"}, '"xml"'),
]

SSH = [
    Case("an unknown key type", "SSHCertificateAuthority", {"privateKeyType": "dsa"}, '"dsa"'),
    Case("a curve for rsa", "SSHCertificateAuthority", {"privateKeyType": "rsa"}, "needs privateKeyType: ecdsa"),
    Case("a curve for nothing", "SSHCertificateAuthority", {"privateKeyType": None}, "needs privateKeyType: ecdsa"),
    Case("a size for ecdsa", "SSHCertificateAuthority", {"keySize": 2048}, "keySize needs privateKeyType: rsa"),
    Case(
        "an rsa key of 4,096 bits",
        "SSHCertificateAuthority",
        {"privateKeyType": "rsa", "ellipticCurve": None, "keySize": 4096},
    ),
    Case(
        "an rsa key of 3,072 bits",
        "SSHCertificateAuthority",
        {"privateKeyType": "rsa", "ellipticCurve": None, "keySize": 3072},
        "3072",
    ),
    Case("two keys", "SSHHostCertificate", {"publicKey": {"value": "ssh-ed25519 AAAA"}}, "exactly one of privateKey"),
    Case("no key", "SSHHostCertificate", {"privateKey": None}, "set exactly one of privateKey, publicKey"),
    Case("a given key", "SSHHostCertificate", {"privateKey": None, "publicKey": {"value": "ssh-ed25519 AAAA"}}),
    Case(
        "a key given twice",
        "SSHHostCertificate",
        {"privateKey": None, "publicKey": {"value": "ssh-ed25519 AAAA", **SECRET}},
        "set exactly one of value, secretKeyRef",
    ),
    Case("no principals", "SSHHostCertificate", {"principals": None}, "needs allowAnyPrincipal: true"),
    Case("an empty list", "SSHHostCertificate", {"principals": []}, "needs allowAnyPrincipal: true"),
    Case("any host", "SSHHostCertificate", {"principals": None, "allowAnyPrincipal": True}),
    Case(
        "a fixed end and a lifetime",
        "SSHHostCertificate",
        {"validUntil": "2030-01-01T00:00:00Z"},
        "leave out validFor and renewBefore",
    ),
    Case("a fixed end", "SSHHostCertificate", {"validUntil": "2030-01-01T00:00:00Z", "validFor": None}),
    Case("early renewal", "SSHHostCertificate", {"renewBefore": "2160h"}, "renewBefore must be shorter than validFor"),
    Case("timely renewal", "SSHHostCertificate", {"renewBefore": "720h30m"}),
    Case("days", "SSHHostCertificate", {"validFor": "90d"}, "spec.validFor"),
    Case("an ISO duration", "SSHHostCertificate", {"validFor": "P90D"}, "spec.validFor"),
    Case("a size for ed25519", "SSHHostCertificate", {"privateKey": {"size": 256}}, "size is for rsa"),
    Case("rsa of 256 bits", "SSHHostCertificate", {"privateKey": {"algorithm": "rsa", "size": 256}}, "2048, 3072 or"),
    Case("ecdsa of 2,048 bits", "SSHHostCertificate", {"privateKey": {"algorithm": "ecdsa", "size": 2048}}, "256, 384"),
    Case("ecdsa of 521 bits", "SSHHostCertificate", {"privateKey": {"algorithm": "ecdsa", "size": 521}}),
    Case("a wrong authority", "SSHHostCertificate", {"authority": {"name": None, "id": "ca_1"}}, "with sshca_"),
    Case(
        "a name too long for a Secret",
        "SSHHostCertificate",
        {},
        "set spec.secretName, or use at most 23",
        judge="API server",
        name="a" * 235,
    ),
    Case("a long name with a Secret's name", "SSHHostCertificate", {"secretName": "short"}, name="a" * 235),
]

TOKENS = [
    Case("any rule", "TunnelCredential", {"acl": ["*"]}),
    Case("no rule", "TunnelCredential", {"acl": []}),
    Case(
        "a rule without bind", "TunnelCredential", {"acl": ["*.example.com"]}, "write rules of the form bind:<target>"
    ),
    Case("a rule without target", "TunnelCredential", {"acl": ["bind:"]}, "write rules of the form bind:<target>"),
    Case("rotation", "APIKey", {"rotation": {"interval": "720h", "overlap": "30m"}}),
    Case("a long overlap", "APIKey", {"rotation": {"interval": "1h", "overlap": "1h"}}, "overlap must be shorter"),
    Case("a short interval", "APIKey", {"rotation": {"interval": "30m", "overlap": None}}, "overlap must be shorter"),
    Case("an unknown option", "SSHUserCertificate", {"criticalOptions": {"verify-required": ""}}, "only force-command"),
    Case("a command", "SSHUserCertificate", {"criticalOptions": {"force-command": "/bin/true"}}),
]

CONNECTIONS = [
    Case("no scheme", "Connection", {"url": "api.example.com"}, "should be an address such as https"),
    Case("a query", "Connection", {"url": "https://api.example.com/?a=b"}, "should be an address such as https"),
    Case("a user", "ClusterConnection", {"url": "https://me@api.example.com"}, "should be an address such as https"),
    Case("a path and a port", "Connection", {"url": "http://[::1]:8080/v1/api"}),
    Case("a profile", "Connection", {"profile": "ngrok"}),
    Case("another profile", "Connection", {"profile": "other"}, "profile"),
    Case("a profile of one's own", "Connection", {"customProfile": {"value": "name: mine"}}),
    Case(
        "two profiles",
        "Connection",
        {"profile": "ngrok", "customProfile": {"value": "name: mine"}},
        "set profile or customProfile, not both",
    ),
    Case("certificates from nowhere", "Connection", {"caBundle": {}}, "set exactly one of value, secretKeyRef"),
    Case("a short timeout", "Connection", {"timeout": "0s"}, "timeout must be at least 1s"),
    Case("a timeout", "Connection", {"timeout": "10s"}),
    Case("one request a minute", "Connection", {"requestsPerMinute": 1}, "requestsPerMinute"),
    Case("a namespace with capitals", "ClusterConnection", {"allowedNamespaces": ["Team"]}, "lower-case letters"),
    Case("a namespace twice", "ClusterConnection", {"allowedNamespaces": ["a", "a"]}, "Duplicate", judge="API server"),
    Case("a connection", "TLSEdge", {"connectionRef": {"name": "main"}}),
    Case("a connection of the cluster", "TLSEdge", {"connectionRef": {"kind": "ClusterConnection", "name": "main"}}),
    Case("a connection of another kind", "TLSEdge", {"connectionRef": {"kind": "Secret", "name": "main"}}, "kind"),
]

COMMANDS = [
    Case("a session by name", "TunnelSessionCommand", {"sessionID": None, "sessionRef": {"name": "ts-1"}}),
    Case(
        "a session by id and name", "TunnelSessionCommand", {"sessionRef": {"name": "ts-1"}}, "exactly one of session"
    ),
    Case("no session", "TunnelSessionCommand", {"sessionID": None}, "set exactly one of sessionID, sessionRef"),
    Case("another's id", "TunnelSessionCommand", {"sessionID": "cr_1"}, "should start with ts_"),
    Case("an id that leads elsewhere", "TunnelSessionCommand", {"sessionID": "ts_/../x"}, "should start with ts_"),
    Case("an unknown command", "TunnelSessionCommand", {"command": "Reboot"}, '"Reboot"'),
    Case("no command", "TunnelSessionCommand", {"command": None}, "command"),
    Case("a restart after an update", "TunnelSessionCommand", {"command": "Update", "restartAfterUpdate": True}),
    Case("a restart after a restart", "TunnelSessionCommand", {"restartAfterUpdate": True}, "needs command: Update"),
    Case("no time after the end", "TunnelSessionCommand", {"ttlSecondsAfterFinished": 0}),
    Case("less than no time", "TunnelSessionCommand", {"ttlSecondsAfterFinished": -1}, "ttlSecondsAfterFinished"),
]

CASES = [
    *(Case("the sample", kind, {}) for kind in DECLARED),
    Case(
        "a name with capitals", "TLSEdge", {"backend": {"ref": {"name": "Bad_Name"}}}, "lower-case letters, digits, '-'"
    ),
    Case("a hostport without a port", "TLSEdge", {"hostports": ["no-port"]}, "should be host:port, such as"),
    Case("a hostport with a scheme", "TCPEdge", {"hostports": ["tcp://a:1"]}, "should be host:port, such as"),
    Case("a hostport of two words", "TCPEdge", {"hostports": ["a b:1"]}, "should be host:port, such as"),
    Case("port 0", "TCPEdge", {"hostports": ["a:0"]}, "should be host:port, such as"),
    Case("port 65535", "TCPEdge", {"hostports": ["a:65535"]}),
    Case("port 65536", "TCPEdge", {"hostports": ["a:65536"]}, "should be host:port, such as"),
    Case("an IPv6 hostport", "TCPEdge", {"hostports": ["[2001:db8::1]:443"]}),
    Case("an IPv6 hostport without brackets", "TCPEdge", {"hostports": ["2001:db8::1:443"]}, "should be host:port,"),
    Case("a match of a host and a path", "HTTPSRoute", {"match": "*.example.com/api"}),
    Case("a match of a host", "HTTPSRoute", {"match": "www.example.com"}),
    Case("a match with a query", "HTTPSRoute", {"match": "/api?x=1"}, "should be /path, host or host/path"),
    Case("a match with a scheme", "HTTPSRoute", {"match": "https://a/b"}, "should be /path, host or host/path"),
    Case("a match of two words", "HTTPSRoute", {"match": "/a b"}, "should be /path, host or host/path"),
    Case("a time in words", "SSHHostCertificate", {"validAfter": "tomorrow"}, "should be an RFC 3339 time, such as"),
    Case("a time with an offset", "SSHHostCertificate", {"validAfter": "2030-01-02T03:04:05+01:00"}),
    *POLICIES,
    *EDGES,
    *BACKENDS,
    *ROUTES,
    *EVENTS,
    *SSH,
    *TOKENS,
    *CONNECTIONS,
    *COMMANDS,
]

_ADOPTED = {"externalID": "edgtls_1", "deletionPolicy": "Retain"}
_AUTHORITY: dict[str, Any] = {"ellipticCurve": None, "privateKeyType": None}

MOVES = [
    Move("the edge changes", "HTTPSRoute", {}, {"edge": {"name": "other"}}, f"spec.edge: Invalid value: {FIXED}"),
    Move("the edge is named by id", "HTTPSRoute", {}, {"edge": {"name": None, "id": "edghts_1"}}, FIXED),
    Move("an id appears", "TLSEdge", {}, _ADOPTED, f"externalID {FIXED}"),
    Move("an id changes", "TLSEdge", _ADOPTED, {**_ADOPTED, "externalID": "edgtls_2"}, FIXED),
    Move("an id disappears", "TLSEdge", _ADOPTED, {}, f"externalID {FIXED}"),
    Move("a key type appears", "SSHCertificateAuthority", _AUTHORITY, {"ellipticCurve": None}, "privateKeyType cannot"),
    Move("a key type disappears", "SSHCertificateAuthority", {"ellipticCurve": None}, _AUTHORITY, "privateKeyType"),
    Move("a curve changes", "SSHCertificateAuthority", {}, {"ellipticCurve": "p521"}, FIXED),
    Move("a size appears", "SSHCertificateAuthority", _AUTHORITY, {"keySize": 2048, **_AUTHORITY}, "keySize"),
    Move("a description changes", "SSHCertificateAuthority", {}, {"description": "other"}),
    Move("a policy appears", "TLSEdge", {}, {"deletionPolicy": "Retain"}),
    Move("a connection appears before an id", "TLSEdge", {}, {"connectionRef": {"name": "main"}}),
    Move("the command changes", "TunnelSessionCommand", {}, {"command": "Stop"}, f"a command {FIXED}"),
    Move("the session changes", "TunnelSessionCommand", {}, {"sessionID": "ts_2"}, f"a command {FIXED}"),
    Move("a time appears", "TunnelSessionCommand", {"ttlSecondsAfterFinished": None}, {}, f"a command {FIXED}"),
    Move("a time goes", "TunnelSessionCommand", {}, {"ttlSecondsAfterFinished": None}, f"a command {FIXED}"),
    Move("a session is mirrored under another", "TunnelSession", {}, {"sessionID": "ts_2"}, FIXED),
    Move("the authority changes", "SSHHostCertificate", {}, {"authority": {"name": "other"}}),
]
