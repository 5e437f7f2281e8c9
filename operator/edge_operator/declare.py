"""The vocabulary a kind is declared in. Types (`fieldtypes`) say what a field is; marks say what happens to it.

Not here: shapes on the wire (`api`), what every spec has (`policies`), parts that several kinds share (`parts`),
what follows from a mark (`engine`, `derive`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, Literal, TypeVar

from edge_operator.api.wire import Collection, SentAs
from edge_operator.fieldtypes import (
    AnyRef,
    Duration,
    Format,
    MemberKey,
    ObjectName,
    ObjectRef,
    OneOf,
    Part,
    RemoteID,
    RemoteRef,
    Rule,
    SecretInput,
    SecretKeyRef,
    TextInput,
    TLSSecretRef,
    one_of,
    to_camel,
)

__all__ = [
    "AnyRef",
    "Duration",
    "Format",
    "MemberKey",
    "ObjectName",
    "ObjectRef",
    "OneOf",
    "Part",
    "RemoteID",
    "RemoteRef",
    "Rule",
    "SecretInput",
    "SecretKeyRef",
    "SentAs",
    "TLSSecretRef",
    "TextInput",
    "one_of",
    "to_camel",
]

GROUP = "edge-operator.dev"
VERSION = "v1alpha1"

# Marks ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reference:
    """The value is the id of an object of one of these kinds, or an id that starts with one of these prefixes."""

    kinds: tuple[str, ...]
    ids: tuple[str, ...]

    def __init__(self, *kinds: str, ids: tuple[str, ...]) -> None:
        object.__setattr__(self, "kinds", kinds)
        object.__setattr__(self, "ids", ids)

    def __get_pydantic_json_schema__(self, source: Any, handler: Any) -> Any:
        return {**handler(source), "x-reference": {"kinds": list(self.kinds), "ids": list(self.ids)}}


@dataclass(frozen=True)
class Immutable:
    """The service fixes the value at creation; the API server refuses a change."""

    def __get_pydantic_json_schema__(self, source: Any, handler: Any) -> Any:
        return {**handler(source), "x-immutable": True}


@dataclass(frozen=True)
class Reissues:
    """A change needs a new remote object; the old one is deleted afterwards."""


@dataclass(frozen=True)
class Unordered:
    """Order carries no meaning, for the API server and for comparison alike."""

    def __get_pydantic_json_schema__(self, source: Any, handler: Any) -> Any:
        return {**handler(source), "x-kubernetes-list-type": "set"}


@dataclass(frozen=True)
class CaseInsensitive:
    """Case carries no meaning when compared: header names, providers."""


@dataclass(frozen=True)
class Keyed:
    """A list of parts here, a map on the wire."""

    by: str
    value: str


@dataclass(frozen=True)
class InPath:
    """Travels in the address of the request, under this name, not in its body."""

    name: str


@dataclass(frozen=True)
class Local:
    """For the operator alone: never on the wire."""


@dataclass(frozen=True)
class Module:
    """A sub-object that is replaced whole. `own_path` when PUT goes to a path of its own rather than in the PATCH.

    `protects`: it guards what is behind it, so it goes on before other changes and comes off after them.
    """

    own_path: bool = True
    protects: bool = False


T = TypeVar("T")
Sub = Annotated[T | None, Module()]
Guard = Annotated[T | None, Module(protects=True)]
Inline = Annotated[T | None, Module(own_path=False)]
InlineGuard = Annotated[T | None, Module(own_path=False, protects=True)]


# Lifecycles ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Managed:
    """Created, changed, deleted."""


@dataclass(frozen=True)
class Issued:
    """Signed for a time, and signed anew before it ends.

    `authority` is the spec field that names the signer; `host` says whether hosts or users hold such certificates.
    """

    authority: str
    host: bool


@dataclass(frozen=True)
class Token:
    """Holds a token that is shown once, at creation; lost or due, a new object takes the old one's place."""


@dataclass(frozen=True)
class Uploaded:
    """Made from what a Secret holds; when that changes, a new object takes the old one's place."""


Lifecycle = Managed | Issued | Token | Uploaded


@dataclass(frozen=True)
class Output:
    """A value that users need, in the Secret under `key`.

    `source` is a member of the answer (`certificate`), `private_key` for a key that the operator made,
    `authority.public_key` for a member of the signing authority, or `previous.token` for one of the predecessor.
    """

    source: str
    key: str


@dataclass(frozen=True)
class Column:
    """A printer column besides Ready, Reason, ID and Age."""

    name: str
    path: str
    type: str = "string"


S = TypeVar("S", bound=Part)


@dataclass(frozen=True, kw_only=True)
class CustomResource(Generic[S]):
    """A type of custom resource: its names, what a user writes, and an example.

    `example` is a spec in YAML: documentation, sample, test input and demo at once; `needs` are the other objects
    (whole manifests in YAML) that the example refers to and that no other type's example makes.
    """

    name: str
    spec: type[S]
    example: str
    short: tuple[str, ...]
    columns: tuple[Column, ...] = ()
    needs: str = ""
    namespaced: bool = True

    @property
    def plural(self) -> str:
        """Name in addresses: `tlsedges`, `sshcertificateauthorities`."""
        lower = self.name.lower()
        if lower.endswith("y") and lower[-2] not in "aeiou":
            return f"{lower[:-1]}ies"
        return f"{lower}es" if lower.endswith("s") else f"{lower}s"

    @property
    def crd(self) -> str:
        """Name of the CustomResourceDefinition."""
        return f"{self.plural}.{GROUP}"


@dataclass(frozen=True, kw_only=True)
class Kind(CustomResource[S]):
    """A custom resource that stands for one remote object: what a user writes and which collection it governs."""

    api: Collection[Any]
    lifecycle: Lifecycle = field(default_factory=Managed)
    outputs: tuple[Output, ...] = ()
    on_remote_missing: Literal["Recreate", "Stall"] = "Recreate"


@dataclass(frozen=True, kw_only=True)
class Companion(CustomResource[S]):
    """A custom resource that is not made into a remote object, such as the connection that others go through.

    Its status is declared, where that of a `Kind` follows from what the service says. A `mirror` is written by the
    operator alone, in its own namespace: people look at it, and nothing is done when it changes.
    """

    status: type[Part]
    mirror: bool = False


Body = dict[str, Any]
"""A request body or an answer, in JSON types."""
