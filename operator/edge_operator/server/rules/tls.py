"""TLS certificates. Source: API document, TLSCertificate. The private key is checked and then forgotten."""

from __future__ import annotations

from typing import Any, Final

from edge_operator.server import chains
from edge_operator.server.rules.rule import Context, Doc, Place, Rules, Sent
from edge_operator.server.world import World


def _read(world: World, sent: Sent, place: Place) -> dict[str, Any]:
    try:
        return chains.read(sent["certificate_pem"], sent["private_key_pem"], world.now())
    except chains.ChainUnusable as error:
        raise (place / error.member).problem(str(error)) from None


def _complete(context: Context, doc: Doc) -> None:
    del doc["private_key_pem"]
    doc |= context.prepared


TLS_CERTIFICATES: Final = Rules(prepare=_read, complete=_complete)
