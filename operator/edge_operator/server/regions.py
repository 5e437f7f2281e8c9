"""The regions of the simulated platform. Assumed: their names and the form of the domains made from them."""

from __future__ import annotations

from typing import Final

from edge_operator.server.store import Transaction

FIRST: Final = ("us", "eu", "ap")
_FACT: Final = "regions"
_NAME_SERVERS: Final = 4


def every(tx: Transaction) -> list[str]:
    found: list[str] | None = tx.fact(_FACT)
    return list(FIRST) if found is None else found


def put(tx: Transaction, regions: list[str]) -> None:
    tx.set_fact(_FACT, regions)


def domains(tx: Transaction, domain: str) -> list[str]:
    """`tunnel.us.connect.example.com` for each region."""
    return [f"tunnel.{region}.{domain}" for region in every(tx)]


def ns_targets(service: str) -> list[str]:
    return [f"{number}.ns.{service}.example." for number in range(1, _NAME_SERVERS + 1)]
