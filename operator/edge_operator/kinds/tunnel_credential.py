"""TunnelCredential creates an authtoken that agents start tunnels with, and keeps it in a Secret."""

from __future__ import annotations

from typing import Annotated, ClassVar

from annotated_types import MaxLen, MinLen
from pydantic import AfterValidator

from edge_operator.api import access, catalog
from edge_operator.declare import Column, Immutable, Kind, Output, RemoteID, Rule, Token, Unordered
from edge_operator.policies import Rotating

ACLRule = Annotated[str, MinLen(1), MaxLen(512)]


class Spec(Rotating):
    """A credential for agents."""

    acl: Annotated[list[ACLRule], MaxLen(128), Unordered(), AfterValidator(access.unrestricted)] = []
    """What the token may bind: bind:<domain>, bind:*.<domain>, bind:<key>=<value>; none, or a lone *, is everything."""
    owner_id: Annotated[RemoteID | None, Immutable()] = None
    """User or bot that owns the credential; only admins may name another than themselves. Cannot be changed."""

    rules: ClassVar[tuple[Rule, ...]] = (
        *Rotating.rules,
        Rule(
            "!has(self.acl) || self.acl == ['*'] || self.acl.all(r, r.startsWith('bind:') && size(r) > 5)",
            "acl: write rules of the form bind:<target>, such as bind:*.example.com or bind:env=*, or a lone *",
            lambda s: all(r.startswith("bind:") and len(r) > len("bind:") for r in s.acl),
        ),
    )


KIND = Kind(
    name="TunnelCredential",
    spec=Spec,
    api=catalog.credentials,
    short=("tcr",),
    columns=(Column("Secret", ".status.secretName"), Column("Description", ".spec.description")),
    lifecycle=Token(),
    outputs=(
        Output("token", key="token"),
        Output("id", key="id"),
        Output("previous.token", key="previous-token"),
        Output("previous.id", key="previous-id"),
    ),
    on_remote_missing="Stall",
    example="""
    description: agents of the shop
    acl: ["bind:*.example.com", "bind:env=production"]
    """,
)
