"""The vocabulary that wire shapes and the catalog are written in.

Source: API document, Conventions that hold for every endpoint; Limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, TypeVar

from annotated_types import Ge, Le
from pydantic import BaseModel, ConfigDict, model_validator
from pydantic_core import PydanticCustomError


@dataclass(frozen=True)
class MaxBytes:
    """The UTF-8 form of the string has at most `limit` bytes: the document's limits count bytes, not characters."""

    limit: int

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema  # only needed while a model is built

        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> Any:
        return {**handler(core), "maxLength": self.limit, "x-max-bytes": self.limit}

    def _checked(self, value: str) -> str:
        found = len(value.encode())
        if found > self.limit:
            raise PydanticCustomError(
                "too_many_bytes",
                "has {found} bytes; at most {limit} are allowed",
                {"found": found, "limit": self.limit},
            )
        return value


@dataclass(frozen=True)
class SentAs:
    """A response member such as `backend: Ref` is written in requests under this name, here `backend_id`."""

    name: str


DESCRIPTION_BYTES = 255
METADATA_BYTES = 4096

Description = Annotated[str, MaxBytes(DESCRIPTION_BYTES)]
Metadata = Annotated[str, MaxBytes(METADATA_BYTES)]
Uint32 = Annotated[int, Ge(0), Le(2**32 - 1)]
Timestamp = str
"""An RFC 3339 time as the service wrote it, for example `2026-01-02T03:04:05Z`."""
Secret = str
"""A token, a client secret, a private key: such a field is declared with `Field(repr=False)`."""


class Wire(BaseModel):
    """A shape as returned. Members that we do not know are ignored, so a newer service is no error."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True, use_attribute_docstrings=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, value: Any) -> Any:
        """Null stands for the default: services write it for an empty list or text, too."""
        return {name: v for name, v in value.items() if v is not None} if isinstance(value, dict) else value


class Ref(Wire):
    """Points at another resource: `{"id": "bkdwd_1", "uri": "https://…"}`. Source: API document, Ref."""

    id: str
    """Identifier of the resource."""
    uri: str = ""
    """Address for locating the resource."""


class Body(BaseModel):
    """A shape as sent: unknown members and wrong types are errors; None and absent both mean "not given"."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)


class Empty(Body):
    """The empty JSON object that agent commands take."""


class Described(Body):
    """The two members that every resource of the service takes. Source: API document, Conventions, 5."""

    description: Description | None = None
    metadata: Metadata | None = None


class Entity(Wire):
    """What every stored resource has. Source: API document, Conventions, 3 and 5."""

    id: str
    """Identifier that the service gave the remote object."""
    uri: str = ""
    """Address of the remote object in the management API."""
    created_at: Timestamp | None = None
    """When the remote object was created, in RFC 3339."""
    description: str = ""
    metadata: str = ""


def as_sent(value: Any) -> Any:
    """What the service returned, in the form a request would have.

    `{"enabled": true, "backend": {"id": "bkdwd_1", "uri": "…"}}` becomes `{"enabled": true, "backend_id": "bkdwd_1"}`,
    so desired and observed compare key by key.
    """
    match value:
        case Ref():
            return value.id
        case Wire():
            return {
                next((m.name for m in shape.metadata if isinstance(m, SentAs)), name): as_sent(getattr(value, name))
                for name, shape in type(value).model_fields.items()
            }
        case list():
            return [as_sent(item) for item in value]
        case dict():
            return {key: as_sent(item) for key, item in value.items()}
        case _:
            return value


@dataclass(frozen=True, kw_only=True)
class Module:
    """A part of a resource with operations of its own at `<resource>/<segment>`.

    `verbs` is a subset of put, get and delete; `assumed` names those that the document does not show.
    """

    segment: str
    read: type[Wire]
    write: type[Body]
    assumed: frozenset[str] = frozenset()


R = TypeVar("R", bound=Wire)

CRUD = frozenset({"create", "get", "list", "update", "delete"})


@dataclass(frozen=True, kw_only=True)
class Collection(Generic[R]):
    """One resource type of the service: where it lives, what it returns and what it takes.

    `path` may hold the name of a parent's id, as in `/edges/https/{edge_id}/routes`.
    `items` is the array's name in a list. `assumed` names verbs that the document does not show.
    `commands` are POSTs with an empty object at `<item>/<command>`.
    """

    name: str
    path: str
    items: str
    prefix: str
    read: type[R]
    create: type[Body] | None = None
    update: type[Body] | None = None
    verbs: frozenset[str] = CRUD
    assumed: frozenset[str] = frozenset()
    modules: Mapping[str, Module] = field(default_factory=dict)
    commands: tuple[str, ...] = ()
