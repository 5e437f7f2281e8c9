"""For every kind its place in an order in which what is referred to comes first, and a change of its sample."""

from __future__ import annotations

from typing import Any

from edge_operator.derive import samples
from edge_operator.kinds import KINDS

CHANGES: dict[str, Any] = {
    "FailoverBackend": {"backends": [{"id": "bkdtg_2"}]},
    "WeightedBackend": {"backends": [{"ref": {"id": "bkdtg_2"}, "weight": 1}]},
    "TCPEdge": {"hostports": ["mq.example.net:5672"]},
    "TLSEdge": {"hostports": ["db.example.net:443"]},
    "HTTPSEdge": {"hostports": ["shop.example.com:443", "shop.example.net:443"]},
    "HTTPSRoute": {"match": "/v2", "description": "changed"},
    "EventDestination": {"target": {"monitoring": {"tags": "env:test"}}},
    "AgentIngress": {"description": "changed"},
    "APIKey": {"description": "changed"},
    "TunnelCredential": {"acl": ["bind:*.example.net"]},
    "TLSCertificate": {"description": "changed"},
    "SSHCertificateAuthority": {"description": "changed"},
    "SSHHostCertificate": {"description": "changed"},
    "SSHUserCertificate": {"description": "changed"},
}
"""Each is one PATCH of the service."""
EVERY = list(CHANGES)
SSH = ("SSHHostCertificate", "SSHUserCertificate")
TOKENS = ("APIKey", "TunnelCredential")


def needs() -> list[dict[str, Any]]:
    """The Secrets that the samples read."""
    return [manifest for kind in KINDS.values() for manifest in samples.manifests(kind)[:-1]]


def application() -> list[dict[str, Any]]:
    """A whole application: every sample, with what it needs."""
    return [manifest for kind in EVERY for manifest in samples.manifests(KINDS[kind])]
