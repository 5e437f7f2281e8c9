"""Objects of others in the same account, which nothing that we do may touch."""

from __future__ import annotations

from typing import Any

from doubles.rig import Rig
from doubles.world import key_pair
from edge_operator.engine import marker
from edge_operator.kinds import KINDS

FOREIGN = "not ours"


async def foreign(rig: Rig, kind: str) -> None:
    """Put objects beside ours that are not ours: one without a marker, one of another cluster, one of another uid."""
    collection = rig.outside.of(KINDS[kind].api).raw
    path = {"edge_id": rig.id("HTTPSEdge")} if kind == "HTTPSRoute" else {}
    uid = "99999999-0000-4000-8000-000000000000"
    for number, metadata in enumerate(
        (
            "mine",
            marker.attach("", marker.owner("another-cluster", "00000000-0000-4000-8000-000000000001", "n", "a", "b")),
            marker.attach("{}", marker.owner(rig.cluster.id, uid, "nonce1", "default", "other")),
        )
    ):
        body = {"description": FOREIGN, "metadata": metadata, **least(rig, kind, number)}
        await collection.create(body, **path)


def least(rig: Rig, kind: str, number: int) -> dict[str, Any]:
    """The least that a request for an object of the kind has to say."""
    match kind:
        case "HTTPSRoute":
            return {"match_type": "exact_path", "match": f"/foreign/{number}"}
        case "EventDestination":
            return {"format": "json", "target": {"monitoring": {"api_key": "foreign"}}}
        case "SSHHostCertificate" | "SSHUserCertificate":
            key = key_pair(number=999).public
            return {"ssh_certificate_authority_id": rig.id("SSHCertificateAuthority"), "public_key": key}
        case "AgentIngress":
            return {"domain": f"foreign-{number}.example.com"}
        case "TLSCertificate":
            held = next(o["data"] for o in rig.api.objects.values() if "tls.crt" in o.get("data", {}))
            return {"certificate_pem": held["tls.crt"], "private_key_pem": held["tls.key"]}
        case "TCPEdge" | "TLSEdge" | "HTTPSEdge":
            return {"hostports": [f"foreign-{kind.lower()}-{number}.example.com:443"]}
        case _:
            return {}
