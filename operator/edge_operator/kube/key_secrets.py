"""Keeps the Secrets of connections' keys from going before the resources that need them, and lets them go afterwards.

What a status says is not enough for that: a connection may be edited or deleted before its first status is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from edge_operator.engine.references import ConnectionKey
from edge_operator.kube import connection_bodies as bodies
from edge_operator.kube.anchors import Anchors
from edge_operator.ports import Resource


class KeySecrets:
    """Those of the connections of namespaces. `connections` are all that there are, by their keys."""

    def __init__(self, connections: Mapping[ConnectionKey, Resource]) -> None:
        self._connections = connections
        self._held: dict[ConnectionKey, set[str]] = {}

    def note(self, key: ConnectionKey, body: Resource) -> None:
        """A connection may have held the Secrets that it names."""
        if key[1]:
            self._held.setdefault(key, set()).update(bodies.key_secrets(body))

    async def hold(self, anchors: Anchors, key: ConnectionKey, body: Resource, name: str) -> None:
        """Keep this Secret, and let go of those that the connection named before."""
        self.note(key, body)
        await anchors.hold_secret(key[1], name)
        await self._release(anchors, key, self._held[key] - {name})

    async def let_go(self, anchors: Anchors, key: ConnectionKey) -> None:
        """The connection needs none of them any more."""
        await self._release(anchors, key, self._held.get(key, set()).copy())
        self._held.pop(key, None)

    async def _release(self, anchors: Anchors, key: ConnectionKey, names: Iterable[str]) -> None:
        for name in names:
            others = (body for k, body in self._connections.items() if k != key and k[1] == key[1])
            if not any(name in bodies.key_secrets(other) for other in others):
                await anchors.release_secret(key[1], name)
            self._held[key].discard(name)
