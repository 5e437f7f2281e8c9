"""What the API document says of single fields, and where it has a custom resource: tables by hand, and their readers.

`test_resources.py` holds `crds/*.yaml` and `docs/reference/*.md`, as they are committed, against these rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from wire import document, shapes

Schema = dict[str, Any]
ROOT: Final = Path(__file__).parents[2]

_KINDS: Final = """
APIKey                   /api_keys
TunnelCredential         /credentials
AgentIngress             /agent_ingresses
SSHCertificateAuthority  /ssh_certificate_authorities
SSHUserCertificate       /ssh_user_certificates
SSHHostCertificate       /ssh_host_certificates
TLSCertificate           /tls_certificates
WeightedBackend          /backends/weighted
FailoverBackend          /backends/failover
TCPEdge                  /edges/tcp
TLSEdge                  /edges/tls
HTTPSEdge                /edges/https
HTTPSRoute               /edges/https/{edge_id}/routes
EventDestination         /event_destinations
"""
KINDS: Final = dict(line.split() for line in _KINDS.strip().splitlines())
"""The kind of custom resource for each collection of the API document."""

SHOWN: Final = {"TunnelSession": "/tunnel_sessions"}
"""Resources that nobody's request makes: the kind, and the collection whose answers its status shows."""
OTHERS: Final = frozenset({"Connection", "ClusterConnection", "TunnelSessionCommand"})
"""Resources made of no answer: of connections the document says nothing, an order is three of its operations."""
NOT_YET: Final[dict[str, str]] = {}
"""Collections without a resource, each with the reason. A row that is no longer true fails."""

_UINT32: Final = "0..4294967295"
_FIELDS: Final = f"""
[Conventions that hold for every endpoint]
*.description                    at most 255 bytes
*.metadata                       at most 4096 bytes
*.enabled                        default true
[Endpoints, SSH certificate authorities]
SSHCertificateAuthority.private_key_type              one of rsa ecdsa ed25519
SSHCertificateAuthority.key_size                      one of 2048 4096
[Assumed: elliptic_curve]
SSHCertificateAuthority.elliptic_curve                one of p256 p384 p521
[SSHUserCertificate]
SSHUserCertificate.critical_options                   keys force-command source-address
SSHUserCertificate.extensions                         settled permit-pty permit-user-rc
SSHUserCertificate.valid_after                        settled issuance
SSHUserCertificate.valid_until                        settled
SSHHostCertificate.valid_after                        settled issuance
SSHHostCertificate.valid_until                        settled
[WeightedBackend]
WeightedBackend.backends                              0..10000
[TLS termination rules]
EndpointTLSTerminationMutate.terminate_at             one of edge upstream
EndpointTLSTerminationMutate.min_version              settled picks
[Assumed: min_version]
EndpointTLSTerminationMutate.min_version              one of 1.2 1.3
[HTTPS edge route]
HTTPSRoute.match_type                                 one of exact_path path_prefix
[HTTPS route module fields]
EndpointCircuitBreakerMutate.tripped_duration         {_UINT32}
EndpointCircuitBreakerMutate.rolling_window           {_UINT32}
EndpointCircuitBreakerMutate.num_buckets              0..128
EndpointCircuitBreakerMutate.volume_threshold         {_UINT32}
EndpointCircuitBreakerMutate.error_threshold_percentage  0..1
*.cookie_prefix                                       settled default
*.inactivity_timeout                                  {_UINT32}
*.maximum_duration                                    {_UINT32}
EndpointOAuthMutate.auth_check_interval               {_UINT32}
EndpointSAMLMutate.nameid_format                      default urn:oasis:names:tc:SAML:2.0:nameid-format:persistent
[Assumed: nameid_format]
EndpointSAMLMutate.nameid_format                      one of
    urn:oasis:names:tc:SAML:2.0:nameid-format:persistent urn:oasis:names:tc:SAML:2.0:nameid-format:transient
    urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified
[EventDestination]
EventDestination.format                               one of json
[Assumed: the only value is the default]
EventDestination.format                               default json
"""


@dataclass(frozen=True)
class Said:
    """What the document says of one field besides its type. `settled` are words for what the service does itself."""

    default: str | None = None
    one_of: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    settled: tuple[str, ...] | None = None
    low: float | None = None
    high: float | None = None
    bytes: int | None = None


def _read(text: str) -> dict[str, Any]:
    if found := re.fullmatch(r"(\d+)\.\.(\d+)", text):
        return {"low": int(found[1]), "high": int(found[2])}
    if found := re.fullmatch(r"at most (\d+) bytes", text):
        return {"bytes": int(found[1])}
    if found := re.fullmatch(r"default (\S+)", text):
        return {"default": found[1]}
    word, _, rest = text.partition(" ")
    name = {"one": "one_of", "keys": "keys", "settled": "settled"}[word]
    return {name: tuple(rest.removeprefix("of ").split())}


def _fields() -> dict[str, Said]:
    found: dict[str, dict[str, Any]] = {}
    for line in re.sub(r"\n +", " ", _FIELDS).strip().splitlines():
        if not line.startswith("["):
            field, _, text = line.partition(" ")
            found.setdefault(field, {}).update(_read(" ".join(text.split())))
    return {field: Said(**said) for field, said in found.items()}


FIELDS: Final = _fields()
"""By shape and member; `*` stands for every shape that has the member."""


def said(shape: str, member: str) -> Said:
    """What the document says of this member."""
    return FIELDS.get(f"{shape}.{member}") or FIELDS.get(f"*.{member}") or Said()


REFERENCES: Final = {
    "backend_id": "ref",
    "ip_policy_ids": "ipPolicies",
    "certificate_authority_ids": "certificateAuthorities",
    "ssh_certificate_authority_id": "authority",
    "edge_id": "edge",
}
"""Members that hold ids, and the fields in which a resource refers to what they mean."""
_BACKENDS: Final = ("bkdwd_", "bkdfo_", "bkdhr_", "bkdtg_")
PREFIXES: Final = {
    "backend_id": _BACKENDS,
    "backends": _BACKENDS,
    "ip_policy_ids": ("ipp_",),
    "certificate_authority_ids": ("ca_",),
    "ssh_certificate_authority_id": ("sshca_",),
    "edge_id": ("edghts_",),
}
"""Which ids such a member takes. Source: API document, Identifier prefixes."""
RETURNED: Final = {
    "backend": "backend_id",
    "ip_policies": "ip_policy_ids",
    "certificate_authorities": "certificate_authority_ids",
}
"""Source: API document, Module shapes: Refs are returned where ids are sent."""
SECRETS: Final = frozenset(
    {"client_secret", "secret", "api_key", "cloud_access_key_id", "cloud_secret_access_key", "token"}
)
"""Members whose values stand in a Secret, and never in a resource."""
TEXTS: Final = frozenset({"idp_metadata", "public_key"})
"""Long texts, given in the resource or in a Secret."""
UPLOADED: Final = {"certificate_pem": "secretRef", "private_key_pem": "secretRef"}
"""Members that come out of one Secret of the type kubernetes.io/tls."""
MARKER_BYTES: Final = 256
"""What the operator's marker may take of the metadata."""

_SECRET: Final = ("secretName", "secretTemplate")
_CERTIFICATE: Final = ("privateKey", "allowAnyPrincipal", "validFor", "renewBefore", *_SECRET)
_OPERATORS: Final = ("connectionRef", "externalID", "deletionPolicy", "managementPolicy", "onRemoteMissing")
OPERATORS_FIELDS: Final = {
    **dict.fromkeys(KINDS, _OPERATORS),
    **dict.fromkeys(("APIKey", "TunnelCredential"), (*_OPERATORS, *_SECRET, "rotation")),
    **dict.fromkeys(("SSHUserCertificate", "SSHHostCertificate"), (*_OPERATORS, *_CERTIFICATE)),
}
"""Fields of a spec that are for the operator and not in the document."""
OPERATORS_STATUS: Final = frozenset(
    {"observedGeneration", "conditions", "nonce", "applied", "seal", "previous", "path", "secretName"}
    | {"lastHandledReconcileAt", "lastHandledRotateAt"}
)
"""Members of a status that are the operator's own."""
LEFT_OUT: Final = {
    "APIKey.token": "it is written to the Secret",
    "Credential.token": "it is written to the Secret",
    "SSHUserCertificate.certificate": "it is written to the Secret",
    "SSHHostCertificate.certificate": "it is written to the Secret",
    "HTTPSEdge.routes": "each of them is an HTTPSRoute with a status of its own",
}
"""Members of answers that no status shows although no spec says them, each with the reason."""


def collection(kind: str) -> str:
    return KINDS.get(kind) or SHOWN[kind]


def shape(kind: str) -> str:
    """The shape of what this kind of resource stands for, as it is answered."""
    return next(o.answer for o in document.OPERATIONS if o.path == collection(kind) and o.answer) or ""


def body(kind: str) -> dict[str, str]:
    """The ids in the address and the members of the body that make one; none where agents make them."""
    made = [o.sent or {} for o in document.OPERATIONS if o.method == "POST" and o.path == collection(kind)]
    return {**dict.fromkeys(in_path(kind), "id"), **(made[0] if made else {})}


def in_path(kind: str) -> list[str]:
    """The ids of parents in the collection's address."""
    return re.findall(r"{(\w+)}", collection(kind))


@dataclass(frozen=True)
class Field:
    """A member of a body and where the spec says it. `shape` is the one that the member belongs to."""

    path: str
    shape: str
    member: str
    type: str
    schema: Schema | None

    def __str__(self) -> str:
        return f"spec.{self.path} ({self.shape}.{self.member})"

    @property
    def said(self) -> Said:
        return said(self.shape, self.member)


def spelt(member: str, properties: Schema) -> str:
    """The field of that name in camelCase, whichever way acronyms are written; else the name as it would stand."""
    member = REFERENCES.get(member) or UPLOADED.get(member) or member
    plain = member.replace("_", "").lower()
    found = [name for name in properties if name.lower() == plain]
    return found[0] if len(found) == 1 else member


def _in(shape: str, members: dict[str, str], schema: Schema, path: str = "") -> Iterator[Field]:
    """Every member of a body, at any depth."""
    for member, kind in members.items():
        name = spelt(member, schema["properties"])
        inner = schema["properties"].get(name)
        yield Field(path + name, shape, member, kind, inner)
        if kind in shapes.SENT and inner is not None:
            yield from _in(kind, shapes.SENT[kind], inner, f"{path}{name}.")


def fields(kind: str, spec: Schema) -> list[Field]:
    """Every member that the create operation of a kind takes, and the ids in its address."""
    return list(_in(shape(kind), body(kind), spec))


def crds() -> dict[str, dict[str, Any]]:
    """The schema of every custom resource in `crds`, by its kind."""
    found = {}
    for file in sorted((ROOT / "crds").glob("*.yaml")):
        spec = yaml.safe_load(file.read_text(encoding="utf-8"))["spec"]
        (version,) = spec["versions"]
        found[spec["names"]["kind"]] = version["schema"]["openAPIV3Schema"]["properties"]
    return found


@dataclass(frozen=True)
class Page:
    """A page of the reference: the collection and prefix that it names, if any, and its rows by path."""

    collection: str
    prefix: str
    spec: dict[str, tuple[str, ...]]
    status: dict[str, tuple[str, ...]]

    def row(self, path: str) -> tuple[str, ...] | None:
        """Type, meaning and wire name; a part that is described as like another one is found there."""
        head = path
        while head:
            like = re.search(r"like `([^`]+)`", self.spec.get(head, ("",))[0])
            if like and head != path:
                return self.row(like[1] + path[len(head) :])
            head = head.rpartition(".")[0]
        return self.spec.get(path)


def pages() -> dict[str, Page]:
    """Every page of a resource in `docs/reference`, by the kind in its title."""
    found = {}
    for file in sorted((ROOT / "docs" / "reference").glob("*.md")):
        text = file.read_text(encoding="utf-8")
        if "\n## spec\n" in text:
            title = re.search(r"^# (\w+)$", text, re.MULTILINE)
            assert title, file
            collection = re.search(r"^\| Collection of the management API \| `([^`]+)` \|$", text, re.MULTILINE)
            prefix = re.search(r"^\| Id \| starts with `([^`]+)` \|$", text, re.MULTILINE)
            head = (collection[1] if collection else "", prefix[1] if prefix else "")
            found[title[1]] = Page(*head, _rows(text, "spec"), _rows(text, "status"))
    return found


def _rows(text: str, section: str) -> dict[str, tuple[str, ...]]:
    part = text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    lines = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| `")]
    return {cells[0].strip("`"): tuple(cells[1:]) for cells in lines}
