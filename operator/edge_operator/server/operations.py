"""What can be called: one value for each operation, derived from the catalog.

Source: API document, Endpoints.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from edge_operator.api.catalog import COLLECTIONS
from edge_operator.api.wire import Body, Collection, Empty, Module, Wire

_METHODS: Final = {"create": "POST", "list": "GET", "get": "GET", "update": "PATCH", "delete": "DELETE"}
_STATUSES: Final = {"create": 201, "delete": 204, "command": 204}
_MODULE_METHODS: Final = {"put": "PUT", "get": "GET", "delete": "DELETE"}


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One method at one path.

    `verb` is create, list, get, update, delete or command; of a module, it is put, get or delete.
    """

    method: str
    path: str
    verb: str
    collection: Collection[Any]
    module: Module | None = None
    command: str | None = None
    body: type[Body] | None = None
    answer: type[Wire] | None = None
    assumed: bool = False

    @property
    def status(self) -> int:
        """The status of success."""
        return _STATUSES.get(self.verb, 200)

    @property
    def body_required(self) -> bool:
        """Whether a body must be sent; where not, `{}` is tolerated."""
        return self.body is not None and self.body is not Empty

    @property
    def writes(self) -> bool:
        return self.method != "GET"


def _of_collection(collection: Collection[Any]) -> Iterator[Operation]:
    item = f"{collection.path}/{{id}}"
    bodies = {"create": collection.create, "update": collection.update}
    for verb in _METHODS:
        if verb in collection.verbs:
            yield Operation(
                method=_METHODS[verb],
                path=collection.path if verb in {"create", "list"} else item,
                verb=verb,
                collection=collection,
                body=bodies.get(verb),
                answer=None if verb == "delete" else collection.read,
                assumed=verb in collection.assumed,
            )
    for command in collection.commands:
        yield Operation(
            method="POST", path=f"{item}/{command}", verb="command", collection=collection, command=command, body=Empty
        )
    for module in collection.modules.values():
        for verb, method in _MODULE_METHODS.items():
            yield Operation(
                method=method,
                path=f"{item}/{module.segment}",
                verb=verb,
                collection=collection,
                module=module,
                body=module.write if verb == "put" else None,
                answer=None if verb == "delete" else module.read,
                assumed=verb in module.assumed,
            )


OPERATIONS: Final = tuple(operation for collection in COLLECTIONS.values() for operation in _of_collection(collection))


class Paths:
    """Finds the operation of a request: a tree of path segments, so that the number of operations does not matter."""

    def __init__(self) -> None:
        self._root: dict[str, Any] = {}
        for operation in OPERATIONS:
            node = self._root
            for segment in operation.path.strip("/").split("/"):
                node = node.setdefault("{}" if segment.startswith("{") else segment, {})
            node.setdefault("", {})[operation.method] = operation

    def find(self, path: str) -> tuple[dict[str, Operation], tuple[str, ...]]:
        """The operations at a path by method, none where there are none, and the ids in the path, outermost first."""
        node = self._root
        ids: list[str] = []
        for segment in path.removeprefix("/").split("/"):
            if segment and segment != "{}" and segment in node:
                node = node[segment]
            elif segment and "{}" in node:
                ids.append(segment)
                node = node["{}"]
            else:
                return {}, ()
        return node.get("", {}), tuple(ids)
