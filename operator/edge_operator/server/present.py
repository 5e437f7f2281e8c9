"""Turns stored documents into answers: ids become Refs with addresses, secrets are echoed or null."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic.fields import FieldInfo

from edge_operator.api.catalog import COLLECTIONS
from edge_operator.api.wire import Collection, Ref, SentAs, Wire

Doc = Mapping[str, Any]

_PATHS: Final = {
    **{c.prefix: c.path for c in COLLECTIONS.values()},
    # Assumed: addresses of what this API refers to and has no operations for.
    "bkdhr_": "/backends/http_response",
    "bkdtg_": "/backends/tunnel_group",
    "ipp_": "/ip_policies",
    "ca_": "/certificate_authorities",
    "usr_": "/users",
}


@dataclass(frozen=True)
class View:
    """How one caller sees the account: `base` is scheme and host as the caller used them."""

    base: str
    echo_secrets: bool

    def address(self, identifier: str, parent: str | None = None) -> str:
        """The address of a resource by its id."""
        path = _PATHS.get(identifier[: identifier.find("_") + 1], "")
        return f"{self.base}{path.format(edge_id=parent)}/{identifier}"

    def ref(self, identifier: str) -> dict[str, str]:
        return {"id": identifier, "uri": self.address(identifier)}

    def resource(self, collection: Collection[Any], doc: Doc) -> dict[str, Any]:
        """A whole resource. Members that the document does not have are null, so a `token` is."""
        return _shape(collection.read)(self, {**doc, "uri": self.address(doc["id"], doc.get("edge_id"))})

    def module(self, shape: type[Wire], doc: Doc) -> dict[str, Any]:
        return _shape(shape)(self, doc)


Renderer = Callable[[View, Any], Any]
ObjectRenderer = Callable[[View, Doc], dict[str, Any]]
_SHAPES: Final[dict[type[Wire], ObjectRenderer]] = {}


def _shape(shape: type[Wire]) -> ObjectRenderer:
    """The function that renders a shape, made once."""
    if shape not in _SHAPES:
        fields = [(name, *_field(name, field)) for name, field in shape.model_fields.items()]

        def render(view: View, doc: Doc) -> dict[str, Any]:
            return {name: function(view, doc.get(stored)) for name, stored, function in fields}

        _SHAPES[shape] = render
    return _SHAPES[shape]


def _field(name: str, field: FieldInfo) -> tuple[str, Renderer]:
    """Under which name a field is stored, and how it is rendered."""
    stored = next((mark.name for mark in field.metadata if isinstance(mark, SentAs)), name)
    if field.repr is False and name != "token":
        return stored, _secret
    return stored, _value(field.annotation)


def _value(annotation: Any) -> Renderer:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (types.UnionType, typing.Union):
        return _value(next(a for a in arguments if a is not type(None)))
    if origin is list:
        item = _value(arguments[0])
        return _same if item is _same else lambda view, value: [item(view, one) for one in value or ()]
    if annotation is Ref:
        return lambda view, value: None if value is None else view.ref(value)
    if isinstance(annotation, type) and issubclass(annotation, Wire):
        nested = _shape(annotation)
        return lambda view, value: None if value is None else nested(view, value)
    return _same


def _same(_: View, value: Any) -> Any:
    return value


def _secret(view: View, value: Any) -> Any:
    return value if view.echo_secrets else None
