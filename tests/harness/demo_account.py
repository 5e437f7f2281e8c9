"""What the demo shows of the account, through the client that the operator uses, and of the Secrets."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from edge_operator.api import catalog
from edge_operator.api.client import Client
from edge_operator.declare import GROUP
from edge_operator.kinds import KINDS
from harness.cluster import Cluster
from harness.demo_resources import Row

COLUMNS = ("Id", "Made for", "In", "What it is")
SECRET_COLUMNS = ("Secret", "For", "Keys")
TELLING = ("description", "hostports", "match", "principals")
"""Members, texts or lists of texts, that say what an object is."""


def objects(url: str, key: str) -> list[tuple[str, dict[str, Any]]]:
    """Every object in the account of a kind that the operator knows: the path of its collection, and the object."""

    async def read() -> list[tuple[str, dict[str, Any]]]:
        found: list[tuple[str, dict[str, Any]]] = []
        async with Client(url, key, user_agent="edge-operator-demo") as client:
            for collection in (kind.api for kind in KINDS.values() if "list" in kind.api.verbs):
                async for item in client.of(collection).raw.list():
                    found.append((collection.path, dict(item)))
                    found += [(catalog.https_routes.path, dict(route)) for route in item.get("routes") or ()]
        return found

    return asyncio.run(read())


def account_rows(found: Sequence[tuple[str, Mapping[str, Any]]], rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """The account as a table; `rows` say which resource each object is for."""
    makers = {row.id: row.key for row in rows if row.id}
    return [
        (item["id"], makers.get(item["id"], "nobody here"), path.replace("{edge_id}", "*"), _telling(item))
        for path, item in found
    ]


def secret_rows(cluster: Cluster, namespace: str) -> list[tuple[str, ...]]:
    """The Secrets that the operator wrote: name, resource, and the names of the keys. Values are never shown."""
    written: list[tuple[str, ...]] = []
    for secret in cluster.request("GET", f"/api/v1/namespaces/{namespace}/secrets")["items"]:
        owners = [o for o in secret["metadata"].get("ownerReferences") or () if o["apiVersion"].startswith(GROUP)]
        if owners:
            keys = ", ".join(sorted(secret.get("data") or {}))
            written.append((secret["metadata"]["name"], f"{owners[0]['kind']}/{owners[0]['name']}", keys))
    return written


def _telling(item: Mapping[str, Any]) -> str:
    texts = [", ".join(value) if isinstance(value, list) else value for name in TELLING if (value := item.get(name))]
    return "; ".join(texts)
