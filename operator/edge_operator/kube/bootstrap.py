"""What the operator needs from the cluster before it starts: CRDs, the cluster's identity, the key of the digests."""

from __future__ import annotations

import asyncio
import base64
import logging
import secrets
from collections.abc import Mapping
from typing import Any

from edge_operator.declare import CustomResource
from edge_operator.kube import errors, paths
from edge_operator.kube.client import JSON, KubeAPI
from edge_operator.kube.cluster import path

_log = logging.getLogger(__name__)

DIGEST_SECRET = "edge-operator-digest-key"  # noqa: S105 - a name
DIGEST_KEY_BYTES = 32
WAIT_SECONDS = 5.0


async def wait_for_definitions(
    api: KubeAPI, kinds: Mapping[str, CustomResource[Any]], namespaces: tuple[str, ...]
) -> None:
    """Return once every kind can be listed. What is missing is said plainly, once, and waited for."""
    said: set[str] = set()
    while missing := [text for kind in kinds.values() if (text := await _obstacle(api, kind, namespaces))]:
        if news := [text for text in missing if text not in said]:
            _log.warning("waiting for the cluster to be prepared: %s", "; ".join(news))
            said.update(news)
        await asyncio.sleep(WAIT_SECONDS)
    if said:
        _log.info("the cluster is prepared now")


async def _obstacle(api: KubeAPI, kind: CustomResource[Any], namespaces: tuple[str, ...]) -> str | None:
    """What keeps a kind from being listed, in words, or None."""
    for namespace in (namespaces if kind.namespaced else ()) or ("",):
        pages = api.pages(path(kind, namespace), limit="1")
        try:
            await anext(pages)
        except errors.NotFound:
            return f"CustomResourceDefinition {kind.crd} is not installed (kubectl apply --server-side -f crds/)"
        except errors.Forbidden:
            where = f"in namespace {namespace}" if namespace else "in the whole cluster"
            return f"this account may not list {kind.plural} {where} (see the chart's roles)"
        except errors.KubeError as error:
            return f"the Kubernetes API does not answer: {error}"
        finally:
            await pages.aclose()
    return None


async def cluster_identity(api: KubeAPI, setting: str | None) -> str:
    """The setting, else the uid of the namespace kube-system, which lives as long as the cluster.

    Raises:
        NotConfigured: it may not be read and there is no setting.
    """
    if setting:
        return setting
    try:
        found = await api.get(paths.resource("", "v1", "namespaces", name="kube-system"))
    except errors.Forbidden as error:
        text = "this account may not read the namespace kube-system; set --cluster-id to a text that names this cluster"
        raise errors.NotConfigured(text) from error
    return str(found["metadata"]["uid"])


async def digest_key(api: KubeAPI, namespace: str) -> bytes:
    """The key of the digests in status, from the operator's own Secret; made on the first start.

    Raises:
        NotConfigured: the Secret holds no usable key.
    """
    at = paths.secret(namespace, DIGEST_SECRET)
    try:
        found = await api.get(at)
    except errors.NotFound:
        found = await _make(api, namespace, at)
    key = base64.b64decode((found.get("data") or {}).get("key") or "")
    if len(key) < DIGEST_KEY_BYTES:
        raise errors.NotConfigured(
            f"Secret {namespace}/{DIGEST_SECRET} holds no key of {DIGEST_KEY_BYTES} bytes; delete it to have one made"
        )
    return key


async def _make(api: KubeAPI, namespace: str, at: str) -> JSON:
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {"name": DIGEST_SECRET, "labels": {"app.kubernetes.io/managed-by": "edge-operator"}},
        "data": {"key": base64.b64encode(secrets.token_bytes(DIGEST_KEY_BYTES)).decode()},
    }
    try:
        return await api.create(paths.secret(namespace), body)
    except errors.AlreadyExists:  # another replica was first
        return await api.get(at)
