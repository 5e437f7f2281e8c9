"""What a user does to a resource of each kind, beyond its example."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from doubles.rig import Rig
from edge_operator.derive import samples
from edge_operator.kinds import KINDS

NAME = samples.NAME
Step = Callable[[Rig], Any]


@dataclass(frozen=True)
class Edit:
    """One edit of a sample: the members of the spec that it sets, and the calls that it takes."""

    what: str
    members: dict[str, Any]
    calls: tuple[str, ...]

    def __str__(self) -> str:
        return self.what


_EDITS: dict[str, tuple[Edit, ...]] = {
    "AgentIngress": (
        Edit("description", {"description": "other words"}, ("PATCH",)),
        Edit("metadata", {"metadata": "plain"}, ("PATCH",)),
    ),
    "EventDestination": (
        Edit("description", {"description": "other words"}, ("PATCH",)),
        Edit(
            "target",
            {"target": {"logGroup": {"auth": {"role": {"roleARN": "arn:role"}}, "logGroupARN": "arn:log"}}},
            ("PATCH",),
        ),
    ),
    "FailoverBackend": (
        Edit("description", {"description": "other words"}, ("PATCH",)),
        Edit("order", {"backends": [{"id": "bkdtg_2"}, {"id": "bkdhr_1"}]}, ("PATCH",)),
    ),
    "HTTPSEdge": (
        Edit("hostports", {"hostports": ["other.example.com:443"]}, ("PATCH",)),
        Edit("module changed", {"mutualTLS": {"certificateAuthorities": [{"id": "ca_other"}]}}, ("PUT mutual_tls",)),
        Edit(
            "two modules and a field",
            {
                "mutualTLS": {"certificateAuthorities": [{"id": "ca_third"}]},
                "tlsTermination": {"terminateAt": "edge", "minVersion": "1.3"},
                "description": "guarded",
            },
            ("PUT tls_termination", "PUT mutual_tls", "PATCH"),
        ),
        Edit("module removed", {"mutualTLS": None}, ("DELETE mutual_tls",)),
    ),
    "HTTPSRoute": (
        Edit("match", {"match": "/other"}, ("PATCH",)),
        Edit("module changed", {"compression": {"enabled": False}}, ("PUT compression",)),
        Edit(
            "guard and backend",
            {"backend": {"ref": {"id": "bkdtg_2"}}, "ipRestriction": {"ipPolicies": [{"id": "ipp_other"}]}},
            ("PUT ip_restriction", "PUT backend"),
        ),
        Edit("module removed", {"circuitBreaker": None}, ("DELETE circuit_breaker",)),
        Edit(
            "guard off last",
            {"oidc": None, "saml": None, "requestHeaders": None, "match": "/third"},
            ("PATCH", "DELETE request_headers", "DELETE saml", "DELETE oidc"),
        ),
    ),
    "SSHCertificateAuthority": (
        Edit("description", {"description": "other words"}, ("PATCH",)),
        Edit("metadata", {"metadata": '{"team": "a"}'}, ("PATCH",)),
    ),
    "SSHHostCertificate": (
        Edit("description", {"description": "other words"}, ("PATCH",)),
        Edit("reissued", {"principals": ["web-2.example.com"]}, ("POST", "DELETE")),
        Edit("lifetime", {"validFor": "1000h"}, ("POST", "DELETE")),
    ),
    "TCPEdge": (
        Edit("hostports", {"hostports": ["other.example.com:5672"]}, ("PATCH",)),
        Edit("module changed", {"backend": {"ref": {"id": "bkdtg_2"}}}, ("PATCH",)),
        Edit("module removed", {"ipRestriction": None}, ("DELETE ip_restriction",)),
    ),
    "APIKey": (Edit("description", {"description": "other words"}, ("PATCH",)),),
    "TunnelCredential": (
        Edit("acl", {"acl": ["bind:other.example.com"]}, ("PATCH",)),
        Edit("acl off", {"acl": None}, ("PATCH",)),
    ),
    "SSHUserCertificate": (
        Edit("description", {"description": "other words"}, ("PATCH",)),
        Edit("reissued", {"principals": ["other"]}, ("POST", "DELETE")),
        Edit("options", {"criticalOptions": {"force-command": "/bin/true"}}, ("POST", "DELETE")),
    ),
    "TLSCertificate": (Edit("description", {"description": "other words"}, ("PATCH",)),),
    "TLSEdge": (
        Edit("hostports", {"hostports": ["other.example.com:443"]}, ("PATCH",)),
        Edit("module changed", {"tlsTermination": {"terminateAt": "edge", "minVersion": "1.2"}}, ("PATCH",)),
        Edit("module removed", {"ipRestriction": None}, ("DELETE ip_restriction",)),
        Edit(
            "passed through",
            {"mutualTLS": None, "tlsTermination": {"terminateAt": "upstream"}, "description": "through"},
            ("PATCH", "DELETE mutual_tls", "PATCH"),
        ),
    ),
    "WeightedBackend": (
        Edit("description", {"description": "other words"}, ("PATCH",)),
        Edit("weights", {"backends": [{"ref": {"id": "bkdhr_1"}, "weight": 5}]}, ("PATCH",)),
    ),
}


EDITS = {kind: _EDITS.get(kind, (Edit("description", {"description": "other words"}, ("PATCH",)),)) for kind in KINDS}
"""A kind that is not listed above has at least its description edited."""

_SEGMENTS = frozenset(segment for kind in KINDS.values() for segment in kind.api.modules)


def effect_of(call: str) -> str:
    """One call in short: `PUT /edges/https/edghts_1/mutual_tls 200` becomes `PUT mutual_tls`, else the method alone."""
    method, path, _ = call.split()
    last = path.rsplit("/", 1)[-1]
    return f"{method} {last}" if last in _SEGMENTS else method
