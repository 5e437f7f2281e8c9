"""SSHUserCertificate keeps a signed, unexpired user certificate in a Secret."""

from __future__ import annotations

from typing import Annotated, ClassVar

from annotated_types import MaxLen

from edge_operator.api import catalog
from edge_operator.certificates import Certificate
from edge_operator.declare import Column, Issued, Kind, Output, Reissues, Rule

Option = Annotated[str, MaxLen(4096)]


class Spec(Certificate):
    """A user certificate that renews itself; the service's default lifetime is 24 hours."""

    critical_options: Annotated[dict[str, Option] | None, MaxLen(2), Reissues()] = None
    """Critical options: force-command and source-address are defined."""
    extensions: Annotated[dict[str, Option] | None, MaxLen(32), Reissues()] = None
    """Extensions; permit-pty and permit-user-rc, each with an empty value, when left out."""

    rules: ClassVar[tuple[Rule, ...]] = (
        *Certificate.rules,
        Rule(
            "!has(self.criticalOptions) || self.criticalOptions.all(k, k in ['force-command', 'source-address'])",
            "criticalOptions: only force-command and source-address are defined",
            lambda s: set(s.critical_options or {}) <= {"force-command", "source-address"},
        ),
    )


KIND = Kind(
    name="SSHUserCertificate",
    spec=Spec,
    api=catalog.ssh_user_certificates,
    short=("suc",),
    lifecycle=Issued(authority="authority", host=False),
    columns=(Column("Secret", ".status.secretName"), Column("Valid-Until", ".status.validUntil")),
    outputs=(
        Output("certificate", key="ssh-certificate"),
        Output("public_key", key="ssh-publickey"),
        Output("private_key", key="ssh-privatekey"),
        Output("authority.public_key", key="ca.pub"),
    ),
    example="""
    authority: {name: example}
    privateKey: {algorithm: ed25519}
    principals: [deploy]
    criticalOptions: {source-address: 10.0.0.0/8}
    extensions: {permit-pty: ""}
    validFor: 24h
    """,
)
