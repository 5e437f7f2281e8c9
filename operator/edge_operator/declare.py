"""The vocabulary a kind is declared in. Types say what a field is; marks say what happens to it.

Not here: shapes on the wire (`api`), what every spec has (`policies`), parts that several kinds share (`parts`),
what follows from a mark (`engine`, `derive`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

from annotated_types import MaxLen, MinLen
from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from edge_operator.api.wire import Collection, SentAs

__all__ = ["SentAs"]  # a mark of the wire that declarations use too

GROUP = "edge-operator.dev"
VERSION = "v1alpha1"

_ACRONYMS = {
    **{w: w.upper() for w in ("acl", "arn", "id", "ip", "mtls", "oidc", "saml", "ssh", "tcp", "tls", "uri", "url")},
    "ids": "IDs",
    "ips": "IPs",
    "nameid": "NameID",
    "idp": "IDP",
    "pem": "PEM",
    "dns": "DNS",
    "ns": "NS",
}


def to_camel(name: str) -> str:
    """`mutual_tls` becomes `mutualTLS`, `ip_policies` becomes `ipPolicies`. Source: Kubernetes API conventions."""
    first, *rest = name.split("_")
    return first + "".join(_ACRONYMS.get(w, w.capitalize()) for w in rest)


# Types ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """A rule over several fields, in CEL for the API server and in Python; a test holds them to each other."""

    cel: str
    message: str
    holds: Callable[[Any], bool]


class Part(BaseModel):
    """A piece of a custom resource: camelCase in Kubernetes, snake_case here and on the wire."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
        protected_namespaces=(),
    )
    rules: ClassVar[tuple[Rule, ...]] = ()
    atomic: ClassVar[bool] = False

    @classmethod
    def __get_pydantic_json_schema__(cls, source: Any, handler: Any) -> Any:
        schema = handler(source)
        target = handler.resolve_ref_schema(schema)
        if cls.atomic:
            target["x-kubernetes-map-type"] = "atomic"
        if cls.rules:
            target["x-kubernetes-validations"] = [{"rule": r.cel, "message": r.message} for r in cls.rules]
        return schema

    @model_validator(mode="after")
    def _rules_hold(self) -> Part:
        for rule in self.rules:
            if not rule.holds(self):
                raise PydanticCustomError("rule", "{message}", {"message": rule.message})
        return self


def one_of(*names: str) -> Rule:
    """Exactly one of these fields (by their Python names) is set."""
    shown = [to_camel(n) for n in names]
    has = ", ".join(f"has(self.{n})" for n in shown)
    return Rule(
        f"[{has}].filter(x, x).size() == 1",
        f"set exactly one of {', '.join(shown)}",
        lambda part: sum(getattr(part, n) is not None for n in names) == 1,
    )


class OneOf(Part):
    """Exactly one member is set."""

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        cls.rules = (
            one_of(*cls.model_fields),
            *(r for r in cls.__dict__.get("rules", ()) if "size() == 1" not in r.cel),
        )


ObjectName = Annotated[str, MinLen(1), MaxLen(253)]
RemoteID = Annotated[str, MinLen(1), MaxLen(128)]
MemberKey = Annotated[str, MinLen(1), MaxLen(253)]


class RemoteRef(Part):
    """A remote object that has no custom resource of its own, by its id."""

    atomic = True

    id: RemoteID
    """Id of the remote object."""


class ObjectRef(OneOf):
    """A custom resource of the same namespace by name, or a remote object by id."""

    atomic = True  # so that lists of references can be sets

    name: ObjectName | None = None
    """Name of a resource in the same namespace."""
    id: RemoteID | None = None
    """Id of a remote object that is managed elsewhere."""


class AnyRef(Part):
    """A custom resource of the same namespace by kind and name, or a remote object by id."""

    atomic = True
    rules = (
        one_of("name", "id"),
        Rule(
            "has(self.kind) == has(self.name)",
            "kind and name come together",
            lambda r: (r.kind is None) == (r.name is None),
        ),
    )

    kind: Annotated[str, MaxLen(63)] | None = None
    """Kind of the resource; needed with name, because several kinds fit here."""
    name: ObjectName | None = None
    """Name of a resource in the same namespace."""
    id: RemoteID | None = None
    """Id of a remote object that is managed elsewhere."""


class SecretKeyRef(Part):
    """One key of a Secret in the same namespace."""

    name: ObjectName
    """Name of the Secret."""
    key: MemberKey
    """Key within the Secret's data."""


class SecretInput(Part):
    """A value read from a Secret in the same namespace; never written in the resource itself."""

    secret_key_ref: SecretKeyRef
    """Where the value is."""


class TLSSecretRef(Part):
    """A Secret of the type kubernetes.io/tls in the same namespace, as cert-manager writes it."""

    name: ObjectName
    """Name of the Secret."""

    wires: ClassVar[dict[str, str]] = {"certificate_pem": "tls.crt", "private_key_pem": "tls.key"}

    @property
    def members(self) -> dict[str, SecretKeyRef]:
        """What is sent, by its name on the wire, and the key that holds it."""
        return {wire: SecretKeyRef(name=self.name, key=key) for wire, key in self.wires.items()}


class TextInput(OneOf):
    """A text, given here or read from a Secret in the same namespace."""

    value: Annotated[str, MaxLen(131_072)] | None = None
    """The text itself."""
    secret_key_ref: SecretKeyRef | None = None
    """Where the text is."""


_UNITS = {"h": 3600, "m": 60, "s": 1}
_DURATION = r"^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,8}s)?$"


def _duration(value: Any) -> timedelta:
    if isinstance(value, timedelta):
        return value
    if not isinstance(value, str) or not value or not re.fullmatch(_DURATION, value):
        raise PydanticCustomError("duration", "write a duration such as 2160h, 90m or 1h30m")
    return timedelta(seconds=sum(int(n) * _UNITS[u] for n, u in re.findall(r"([0-9]+)([hms])", value)))


Duration = Annotated[
    timedelta,
    BeforeValidator(_duration),
    PlainSerializer(lambda d: f"{int(d.total_seconds())}s"),
    WithJsonSchema({"type": "string", "pattern": _DURATION, "minLength": 2, "maxLength": 24, "example": "2160h"}),
]
"""Hours, minutes and seconds as Kubernetes users write them: `2160h`, `30m`, `1h30m`."""


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
class Kind(Generic[S]):
    """One custom resource type: what a user writes and which remote collection it governs.

    `example` is a spec in YAML: documentation, sample, test input and demo at once; `needs` are the other objects
    (whole manifests in YAML) that the example refers to and that no other kind's example makes.
    """

    name: str
    spec: type[S]
    api: Collection[Any]
    example: str
    short: tuple[str, ...]
    columns: tuple[Column, ...] = ()
    lifecycle: Lifecycle = field(default_factory=Managed)
    outputs: tuple[Output, ...] = ()
    on_remote_missing: Literal["Recreate", "Stall"] = "Recreate"
    needs: str = ""

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


Body = dict[str, Any]
"""A request body or an answer, in JSON types."""
