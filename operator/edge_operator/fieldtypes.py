"""What a field of a custom resource can be: parts, references, Secret inputs, texts of a form, durations.

Each says in one place how it reads in Python and what the API server is told of it (JSON schema and CEL).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, ClassVar

from annotated_types import MaxLen, MinLen
from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError, core_schema

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


@dataclass(frozen=True)
class Format:
    """The text matches `regex` as a whole; `message` says what to write. CEL and Python read the regex alike."""

    regex: str
    message: str

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> Any:
        schema = dict(handler(core))
        regex = self.regex.replace("\\", "\\\\")  # as a CEL string has it
        rule = {"rule": f"self.matches('^{regex}$')", "message": self.message}
        return {**schema, "x-kubernetes-validations": [*schema.get("x-kubernetes-validations", ()), rule]}

    def _checked(self, value: str) -> str:
        if not re.fullmatch(self.regex, value):
            raise PydanticCustomError("format", "{message}", {"message": self.message})
        return value


_NAME = Format("[a-z0-9]([-a-z0-9.]*[a-z0-9])?", "should be a name of lower-case letters, digits, '-' and '.'")
ObjectName = Annotated[str, MinLen(1), MaxLen(253), _NAME]
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
