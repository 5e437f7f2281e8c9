"""What SSH host and user certificates have in common. Source: API document, SSHUserCertificate, SSHHostCertificate."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from annotated_types import MaxLen, MinLen

from edge_operator.api.wire import SentAs
from edge_operator.declare import (
    Duration,
    Format,
    Local,
    ObjectRef,
    Part,
    Reference,
    Reissues,
    Rule,
    TextInput,
    Unordered,
    one_of,
)
from edge_operator.policies import Publishing

Time = Annotated[
    str,
    MaxLen(40),
    Format(
        "[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})",
        "should be an RFC 3339 time, such as 2030-01-02T03:04:05Z",
    ),
]


class PrivateKey(Part):
    """A key pair that the operator makes and keeps in the Secret."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!has(self.size) || self.algorithm != 'ed25519'",
            "size is for rsa (2048, 3072, 4096) and ecdsa (256, 384, 521)",
            lambda k: k.size is None or k.algorithm != "ed25519",
        ),
        Rule(
            "!has(self.size) || self.algorithm != 'rsa' || self.size in [2048, 3072, 4096]",
            "size of an rsa key is 2048, 3072 or 4096",
            lambda k: k.size is None or k.algorithm != "rsa" or k.size in (2048, 3072, 4096),
        ),
        Rule(
            "!has(self.size) || self.algorithm != 'ecdsa' || self.size in [256, 384, 521]",
            "size of an ecdsa key is 256, 384 or 521",
            lambda k: k.size is None or k.algorithm != "ecdsa" or k.size in (256, 384, 521),
        ),
    )

    algorithm: Literal["ed25519", "ecdsa", "rsa"] = "ed25519"
    """Algorithm of the key."""
    size: Literal[256, 384, 521, 2048, 3072, 4096] | None = None
    """Bits of the key: 2048 (default), 3072 or 4096 for rsa, 256 (default), 384 or 521 for ecdsa."""
    rotation_policy: Literal["Always", "Never"] = "Always"
    """Always makes a new key for each certificate, Never keeps the first one."""


class Certificate(Publishing):
    """An SSH certificate that renews itself."""

    authority: Annotated[
        ObjectRef,
        Reference("SSHCertificateAuthority", ids=("sshca_",)),
        SentAs("ssh_certificate_authority_id"),
        Reissues(),
    ]
    """The SSHCertificateAuthority that signs."""
    private_key: Annotated[PrivateKey | None, Local(), Reissues()] = None
    """Let the operator make the key pair and keep it in the Secret."""
    public_key: Annotated[TextInput | None, Reissues()] = None
    """The public key to sign, in OpenSSH authorized-keys format."""
    principals: Annotated[list[Annotated[str, MinLen(1), MaxLen(253)]] | None, MaxLen(256), Unordered(), Reissues()] = (
        None
    )
    """Host names and addresses, or user names, that the certificate is for. None at all: see allowAnyPrincipal."""
    allow_any_principal: Annotated[bool, Local()] = False
    """Says that a certificate without principals, valid for everybody, is meant."""
    valid_for: Annotated[Duration | None, Local(), Reissues()] = None
    """Lifetime of each certificate, for example 2160h; the service's default when left out."""
    renew_before: Annotated[Duration | None, Local()] = None
    """How long before its end a certificate is renewed; after two thirds of the lifetime when left out."""
    valid_after: Annotated[Time | None, Reissues()] = None
    """Fixed start of validity in RFC 3339; the time of issuance when left out."""
    valid_until: Annotated[Time | None, Reissues()] = None
    """Fixed end of validity in RFC 3339; such a certificate is not renewed."""

    rules: ClassVar[tuple[Rule, ...]] = (
        *Publishing.rules,
        one_of("private_key", "public_key"),
        Rule(
            "[has(self.principals) && size(self.principals) > 0, has(self.allowAnyPrincipal) && self.allowAnyPrincipal]"
            ".exists(x, x)",
            "list principals; a certificate without any is valid for everybody and needs allowAnyPrincipal: true",
            lambda s: bool(s.principals) or s.allow_any_principal,
        ),
        Rule(
            "!has(self.validUntil) || (!has(self.validFor) && !has(self.renewBefore))",
            "validUntil is a fixed end: leave out validFor and renewBefore",
            lambda s: s.valid_until is None or (s.valid_for is None and s.renew_before is None),
        ),
        Rule(
            "!has(self.validFor) || !has(self.renewBefore) || duration(self.renewBefore) < duration(self.validFor)",
            "renewBefore must be shorter than validFor",
            lambda s: s.valid_for is None or s.renew_before is None or s.renew_before < s.valid_for,
        ),
    )
