"""Wire-name profiles: how a service spells the few identifiers that the API document names in neutral words.

Everything else in this package, the operator and the reference API speaks neutral names; a profile translates JSON
bodies at the edge, by place: `tags` is renamed inside a monitoring target only, `transport` inside a tunnel session.
Two profiles ship, `neutral` and `ngrok`; a YAML or JSON file describes another:

    name: mine
    version_header: Mine-Version
    service: mine               # sessions have the transport mine/v2
    cookie_prefix: "mine."
    error_code_prefix: ERR_MINE_
    event_targets: {batch_stream: firehose}
    monitoring: {tags: labels}
    cloud_credentials: {cloud_access_key_id: key_id}
    oauth_providers: {search_vendor: google}

What a file leaves out keeps its neutral name. Source: API document, Identifier note; Versioning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, field_validator, model_validator

from edge_operator.api.wire import Collection

_MEMBER = r"^[A-Za-z_][A-Za-z0-9_.-]{0,63}$"
_HEADER_NAME = r"^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$"
_RESERVED_HEADERS = frozenset(
    {
        "authorization",
        "content-type",
        "content-length",
        "host",
        "connection",
        "transfer-encoding",
        "user-agent",
        "accept",
    }
)

Member = Annotated[str, Field(pattern=_MEMBER)]


class ProfileError(ValueError):
    """A profile cannot be used: the message says which one, where, what was found and what is expected."""


class _Names(BaseModel):
    """Field: a neutral member name; value: the name on the wire. All of one class stand in one JSON object."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
    beside: ClassVar[frozenset[str]] = frozenset()
    """Members of the same object that no profile renames."""

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        seen: dict[str, str] = dict.fromkeys(self.beside, "a member that keeps its name")
        for neutral, wire in self:
            if wire in seen:
                raise ValueError(f"{neutral}: {wire!r} is taken already, by {seen[wire]}")
            seen[wire] = neutral
        return self


class EventTargetNames(_Names):
    """Members of an event destination's `target`."""

    batch_stream: Member = "batch_stream"
    data_stream: Member = "data_stream"
    log_group: Member = "log_group"
    monitoring: Member = "monitoring"


class MonitoringNames(_Names):
    """Members of the monitoring target."""

    beside = frozenset({"api_key", "service"})
    tags: Member = "tags"
    site: Member = "site"


class CloudCredentialNames(_Names):
    """Members of a cloud target's `auth.creds`."""

    cloud_access_key_id: Member = "cloud_access_key_id"
    cloud_secret_access_key: Member = "cloud_secret_access_key"  # noqa: S105 - a name, no value


class OAuthProviderNames(_Names):
    """Members of the OAuth module's `provider`."""

    code_host_a: Member = "code_host_a"
    social_network: Member = "social_network"
    os_vendor: Member = "os_vendor"
    search_vendor: Member = "search_vendor"
    professional_network: Member = "professional_network"
    code_host_b: Member = "code_host_b"
    streaming_vendor: Member = "streaming_vendor"
    retail_vendor: Member = "retail_vendor"


@dataclass(frozen=True)
class _Place:
    """What is renamed in one JSON value: member names here, and the members (by their name before) that are places.

    `scalar` translates a string and is its own inverse.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    inside: Mapping[str, _Place] = field(default_factory=dict)
    scalar: Callable[[str], str] | None = None

    def __bool__(self) -> bool:
        return bool(self.names or self.inside or self.scalar)

    def apply(self, value: Any) -> Any:
        """The value in the other spelling; parts without a rename are the same objects, nothing is changed in place."""
        if isinstance(value, Mapping):
            inside = self.inside
            return {
                self.names.get(key, key): inside[key].apply(item) if key in inside else item
                for key, item in value.items()
            }
        if isinstance(value, list):
            return [self.apply(item) for item in value]
        return self.scalar(value) if self.scalar and isinstance(value, str) else value

    def inverse(self) -> _Place:
        """The place that undoes this one."""
        names = {after: before for before, after in self.names.items()}
        inside = {self.names.get(key, key): place.inverse() for key, place in self.inside.items()}
        return _Place(names, inside, self.scalar)

    def path(self, path: Sequence[str | int]) -> tuple[str | int, ...]:
        if not path:
            return ()
        head, rest = path[0], path[1:]
        if isinstance(head, int):
            return (head, *self.path(rest))
        inner = self.inside.get(head)
        return (self.names.get(head, head), *(inner.path(rest) if inner else rest))


def _exchange(names: Mapping[str, str]) -> dict[str, str]:
    """The renaming made one to one over all names, so that translating there and back never loses a member.

    `{"tags": "ddtags"}` becomes `{"tags": "ddtags", "ddtags": "tags"}`: a wire body that says `tags` where the service
    says `ddtags` has an unknown member, and must not turn into a known one.
    """
    moved = {neutral: wire for neutral, wire in names.items() if neutral != wire}
    back = {wire: neutral for neutral, wire in moved.items()}
    closed = dict(moved)
    for wire in moved.values():
        if wire not in moved:
            start = back[wire]
            while start in back:
                start = back[start]
            closed[wire] = start
    return closed


def _place(names: _Names | None = None, **inside: _Place) -> _Place:
    """A place, without those inner places that have nothing to rename."""
    return _Place(_exchange(dict(names)) if names else {}, {key: place for key, place in inside.items() if place})


class Profile(BaseModel):
    """One service's spelling. `encode` turns neutral bodies into wire bodies, `decode` turns them back."""

    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True, hide_input_in_errors=True)

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$")]
    version_header: Annotated[str, Field(pattern=_HEADER_NAME)] = "Service-Version"
    version: Annotated[str, Field(pattern=r"^[!-~]{1,32}$")] = "2"
    service: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$")] = "service"
    """The service's short name, as it stands before the slash in a session's transport."""
    cookie_prefix: Annotated[str, Field(pattern=r"^[!-~]{0,64}$")] = "service."
    """What the service puts where a session module gives no cookie prefix."""
    error_code_prefix: Annotated[str, Field(pattern=r"^[A-Z0-9_]{0,32}$")] = "ERR_"
    event_targets: EventTargetNames = EventTargetNames()
    monitoring: MonitoringNames = MonitoringNames()
    cloud_credentials: CloudCredentialNames = CloudCredentialNames()
    oauth_providers: OAuthProviderNames = OAuthProviderNames()

    _to_wire: dict[tuple[str, str | None], _Place] = PrivateAttr(default_factory=dict)
    _to_neutral: dict[tuple[str, str | None], _Place] = PrivateAttr(default_factory=dict)

    @field_validator("version_header")
    @classmethod
    def _own_header(cls, value: str) -> str:
        if value.lower() in _RESERVED_HEADERS:
            raise ValueError(f"{value!r} is a header with another meaning")
        return value

    def model_post_init(self, _context: Any) -> None:
        self._to_wire = self._places()
        self._to_neutral = {where: place.inverse() for where, place in self._to_wire.items()}

    @property
    def transport(self) -> str:
        """The native transport of a session, for example `ngrok/v2`. Source: API document, TunnelSession."""
        return f"{self.service}/v2"

    def encode(self, collection: Collection[Any] | None, value: Any, *, module: str | None = None) -> Any:
        """A neutral body of the collection as the wire has it: an item, a list answer or, with `module`, that module's.

        Without a collection, or where nothing differs, it is the value itself. The value is never changed in place.
        """
        place = self._to_wire.get((collection.name, module)) if collection else None
        return place.apply(value) if place else value

    def decode(self, collection: Collection[Any] | None, value: Any, *, module: str | None = None) -> Any:
        """The neutral form of a wire body: the inverse of `encode`."""
        place = self._to_neutral.get((collection.name, module)) if collection else None
        return place.apply(value) if place else value

    def encode_path(
        self, collection: Collection[Any] | None, path: Sequence[str | int], *, module: str | None = None
    ) -> tuple[str | int, ...]:
        """A place in a neutral body by its wire names: ("target", "monitoring") may become ("target", "datadog")."""
        place = self._to_wire.get((collection.name, module)) if collection else None
        return place.path(path) if place else tuple(path)

    def _places(self) -> dict[tuple[str, str | None], _Place]:
        """Every place of the API that a profile may spell differently, by collection and module."""
        cloud = _place(auth=_place(creds=_place(self.cloud_credentials)))
        monitoring = _place(self.monitoring)
        target = _place(
            self.event_targets, batch_stream=cloud, data_stream=cloud, log_group=cloud, monitoring=monitoring
        )
        oauth = _place(provider=_place(self.oauth_providers))
        route = _place(oauth=oauth)
        transport = _Place(scalar=self._transport if self.service != _NEUTRAL_SERVICE else None)
        items = {
            "event_destinations": _place(target=target),
            "https_routes": route,
            "https_edges": _place(routes=route),
            "tunnel_sessions": _place(transport=transport),
        }
        places: dict[tuple[str, str | None], _Place] = {("https_routes", "oauth"): oauth}
        for name, item in items.items():
            places[name, None] = _Place(inside={**item.inside, **({name: item} if item else {})})
        return {where: place for where, place in places.items() if place}

    def _transport(self, value: str) -> str:
        """`service/v2` and `ngrok/v2` change places; `ssh` stays. One function for both directions."""
        head, slash, rest = value.partition("/")
        other = {_NEUTRAL_SERVICE: self.service, self.service: _NEUTRAL_SERVICE}
        return f"{other.get(head, head)}/{rest}" if slash else value


_NEUTRAL_SERVICE: Final = "service"

NEUTRAL: Final = Profile(name="neutral")

NGROK: Final = Profile(
    name="ngrok",
    version_header="Ngrok-Version",
    service="ngrok",
    cookie_prefix="ngrok.",
    error_code_prefix="ERR_NGROK_",
    event_targets=EventTargetNames(
        batch_stream="firehose", data_stream="kinesis", log_group="cloudwatch_logs", monitoring="datadog"
    ),
    monitoring=MonitoringNames(tags="ddtags", site="ddsite"),
    cloud_credentials=CloudCredentialNames(
        cloud_access_key_id="aws_access_key_id",
        cloud_secret_access_key="aws_secret_access_key",  # noqa: S106 - a name, no value
    ),
    oauth_providers=OAuthProviderNames(
        code_host_a="github",
        social_network="facebook",
        os_vendor="microsoft",
        search_vendor="google",
        professional_network="linkedin",
        code_host_b="gitlab",
        streaming_vendor="twitch",
        retail_vendor="amazon",
    ),
)

SHIPPED: Final[Mapping[str, Profile]] = {profile.name: profile for profile in (NEUTRAL, NGROK)}


def load(name_or_file: str | Path) -> Profile:
    """The shipped profile of that name, else the one in that YAML or JSON file.

    Raises:
        ProfileError: neither a shipped name nor a readable file, or the file is not a profile.
    """
    if isinstance(name_or_file, str) and name_or_file in SHIPPED:
        return SHIPPED[name_or_file]
    file = Path(name_or_file)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        shipped = " or ".join(SHIPPED)
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "is not UTF-8 text"
        raise ProfileError(
            f"profile {str(name_or_file)!r}: expected {shipped}, or a YAML or JSON file: {reason}"
        ) from error
    return parse(text, f"profile file {file}", json_only=file.suffix == ".json")


def parse(text: str, where: str, *, json_only: bool = False) -> Profile:
    """The profile in a YAML or JSON text; `where` names it in messages.

    Raises:
        ProfileError: the text is not a profile.
    """
    try:
        content = json.loads(text) if json_only else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError) as error:
        why = re.sub(r"\s+", " ", str(error))[:256]
        raise ProfileError(f"{where}: not valid {'JSON' if json_only else 'YAML'}: {why}") from error
    if not isinstance(content, dict):
        raise ProfileError(f"{where}: holds {type(content).__name__}, expected a mapping with at least `name`")
    try:
        profile = Profile.model_validate(content)
    except ValidationError as error:
        found = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'profile'}: {e['msg']}" for e in error.errors()[:5])
        raise ProfileError(f"{where}: {found}") from error
    if profile.name in SHIPPED:
        raise ProfileError(f"{where}: name: {profile.name!r} ships with the program, choose another")
    return profile
