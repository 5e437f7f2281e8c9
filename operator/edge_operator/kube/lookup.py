"""The accounts that manifests lead to, for commands: connections are read with the rights of whoever calls.

What the same files hold counts as if it were in the cluster. Nothing is written: a door lets reads through alone.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping
from typing import Any

from edge_operator.connections import Spec
from edge_operator.door import Door
from edge_operator.engine.operations import Shut, Stalled, Waiting, shown
from edge_operator.engine.reasons import Waits
from edge_operator.engine.references import DEFAULT_CONNECTION, ConnectionKey
from edge_operator.kinds import COMPANIONS
from edge_operator.kube import connection_bodies as bodies
from edge_operator.kube import errors
from edge_operator.kube.account import Account
from edge_operator.kube.client import JSON, KubeAPI
from edge_operator.kube.cluster import path
from edge_operator.kube.secrets import Secrets
from edge_operator.kube.terms import Terms, terms
from edge_operator.ports import Resource
from edge_operator.remote import ManagementAPI

Given = Mapping[tuple[str, str], Mapping[str, str]]
"""Values of Secrets by (namespace, name): `{("default", "tls"): {"tls.crt": "…"}}`."""


class _GivenSecrets(Secrets):
    """Secrets of the cluster, and those that the files hold."""

    def __init__(self, api: KubeAPI, given: Given) -> None:
        super().__init__(api)
        self._given = given

    async def read(self, namespace: str, name: str) -> JSON | None:
        """A Secret as it would be, or None."""
        values = self._given.get((namespace, name))
        if values is None:
            return await super().read(namespace, name)
        return {"data": {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}}


class Accounts:
    """Account by connection. `connections` are those of the files, `flags` the default where there is no other."""

    def __init__(
        self,
        api: KubeAPI,
        flags: Terms | None,
        *,
        connections: Mapping[ConnectionKey, Resource],
        given: Given,
        operator_namespace: str,
        call_seconds: float,
    ) -> None:
        self._api, self._flags, self._connections = api, flags, connections
        self._secrets, self._namespace, self._call_seconds = _GivenSecrets(api, given), operator_namespace, call_seconds
        self._accounts: dict[ConnectionKey, Account] = {}

    async def remote(self, key: ConnectionKey, namespace: str) -> ManagementAPI:
        """The service as a resource of this namespace would ask it.

        Raises:
            Waiting, Stalled: there is no such connection, or it cannot be used or read.
        """
        body = self._connections.get(key) or await self._live(key)
        if body is not None and (why := bodies.admits(key, body, namespace)) is not None:
            raise why.as_error()
        if key not in self._accounts:
            found = await self._terms(key, body)
            door = Door(time.monotonic, may_act=lambda _: False, call_seconds=found.call_seconds)
            self._accounts[key] = Account(door, Shut(Waits.CONNECTION_NOT_READY, "not opened yet"), lambda _: None)
            self._accounts[key].use(found)
        return self._accounts[key].remote

    async def _terms(self, key: ConnectionKey, body: Resource | None) -> Terms:
        if body is None:
            if key == DEFAULT_CONNECTION and self._flags is not None:
                return self._flags
            named = (
                "there is no default connection" if key == DEFAULT_CONNECTION else f"there is no {bodies.shown(key)}"
            )
            raise Waiting(Waits.CONNECTION_NOT_READY, f"spec.connectionRef: {named}")
        try:
            return await terms(
                bodies.parsed({**body, "kind": key[0]}),
                key[1] or self._namespace,
                self._secrets,
                call_seconds=self._call_seconds,
            )
        except (Waiting, Stalled) as why:
            raise Waiting(Waits.CONNECTION_NOT_READY, f"{bodies.shown(key)}: {why.message}") from None
        except errors.KubeError as why:
            raise Waiting(Waits.CONNECTION_NOT_READY, f"{bodies.shown(key)}: its Secret: {shown(why)}") from None

    async def _live(self, key: ConnectionKey) -> Resource | None:
        try:
            found: Resource = await self._api.get(path(COMPANIONS[key[0]], key[1], key[2]))
        except errors.NotFound:
            return None
        except errors.Forbidden as why:
            if key == DEFAULT_CONNECTION and self._flags is not None:
                return None
            raise Waiting(Waits.CONNECTION_NOT_READY, f"{bodies.shown(key)} cannot be read: {shown(why)}") from None
        return found

    async def close(self) -> None:
        """Close every client."""
        for account in self._accounts.values():
            await account.close()


def connections(documents: list[dict[str, Any]]) -> dict[ConnectionKey, Resource]:
    """The connections among documents, by their keys."""
    found: dict[ConnectionKey, Resource] = {}
    for document in documents:
        kind = COMPANIONS.get(str(document.get("kind")))
        if kind is not None and issubclass(kind.spec, Spec):
            meta = document["metadata"]
            found[kind.name, str(meta["namespace"]) if kind.namespaced else "", str(meta.get("name"))] = document
    return found
