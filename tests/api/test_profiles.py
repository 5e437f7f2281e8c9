from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from edge_operator.api import catalog, events, modules, profiles
from edge_operator.api.wire import Collection

NGROK = profiles.NGROK
SWAPPED = profiles.Profile(
    name="swapped",
    service="tunnels",
    event_targets=profiles.EventTargetNames(batch_stream="data_stream", data_stream="log_group", log_group="queue"),
    oauth_providers=profiles.OAuthProviderNames(os_vendor="search_vendor", search_vendor="os_vendor"),
)
"""Takes neutral names for other things, in a chain and in a ring."""

PLACES = [(collection, None) for collection in catalog.COLLECTIONS.values()] + [
    (collection, module) for collection in catalog.COLLECTIONS.values() for module in collection.modules
]

NAMES = sorted(
    {
        name
        for profile in (NGROK, SWAPPED)
        for part in ("event_targets", "monitoring", "cloud_credentials", "oauth_providers")
        for pair in dict(getattr(profile, part)).items()
        for name in pair
    }
    | {
        "target",
        "auth",
        "creds",
        "oauth",
        "provider",
        "routes",
        "transport",
        "id",
        "event_destinations",
        "tunnel_sessions",
    }
)
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.sampled_from(["ngrok/v2", "service/v2", "service/2", "ssh", "/", ""])
)
BODIES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6),
    max_leaves=12,
)
SHAPED = st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, BODIES))


@pytest.mark.parametrize("profile", [profiles.NEUTRAL, NGROK, SWAPPED], ids=lambda profile: profile.name)
@given(place=st.sampled_from(PLACES), body=SHAPED)
def test_translating_there_and_back_changes_nothing(
    profile: profiles.Profile, place: tuple[Collection[Any], str | None], body: dict[str, Any]
) -> None:
    collection, module = place
    before = json.dumps(body)

    wire = profile.encode(collection, body, module=module)

    assert body == profile.decode(collection, wire, module=module)
    assert body == profile.encode(collection, profile.decode(collection, body, module=module), module=module)
    assert before == json.dumps(body), "the value was changed in place"


@given(place=st.sampled_from(PLACES), body=SHAPED)
def test_neutral_translates_nothing_and_copies_nothing(
    place: tuple[Collection[Any], str | None], body: dict[str, Any]
) -> None:
    collection, module = place

    assert profiles.NEUTRAL.encode(collection, body, module=module) is body
    assert profiles.NEUTRAL.decode(collection, body, module=module) is body


def test_ngrok_renames_event_targets_by_place() -> None:
    neutral = {
        "description": "tags and site",
        "target": {
            "batch_stream": {"auth": {"creds": {"cloud_access_key_id": "a", "cloud_secret_access_key": "b"}}},
            "data_stream": {"auth": {"role": {"role_arn": "arn"}}, "stream_arn": "s"},
            "log_group": None,
            "monitoring": {"api_key": "k", "tags": "t", "service": "s", "site": "e"},
        },
    }

    assert NGROK.encode(catalog.event_destinations, neutral) == {
        "description": "tags and site",
        "target": {
            "firehose": {"auth": {"creds": {"aws_access_key_id": "a", "aws_secret_access_key": "b"}}},
            "kinesis": {"auth": {"role": {"role_arn": "arn"}}, "stream_arn": "s"},
            "cloudwatch_logs": None,
            "datadog": {"api_key": "k", "ddtags": "t", "service": "s", "ddsite": "e"},
        },
    }


def test_names_outside_their_place_stay() -> None:
    body = {"tags": 1, "metadata": "monitoring", "target": {"auth": {"creds": {"cloud_access_key_id": "a"}}, "tags": 2}}

    assert body == NGROK.encode(catalog.event_destinations, body)
    assert body == NGROK.encode(catalog.weighted_backends, body)
    assert body == NGROK.encode(None, body)


def test_keys_of_maps_are_never_member_names() -> None:
    body = {"request_headers": {"add": {"provider": "x", "search_vendor": "y"}}, "oauth": None}

    assert body == NGROK.encode(catalog.https_routes, body)


def test_ngrok_renames_oauth_providers_in_routes_edges_and_the_bare_module() -> None:
    neutral: Any = {"provider": {"search_vendor": {"scopes": []}}}
    wire: Any = {"provider": {"google": {"scopes": []}}}

    assert wire == NGROK.encode(catalog.https_routes, neutral, module="oauth")
    assert {"oauth": wire} == NGROK.encode(catalog.https_routes, {"oauth": neutral})
    assert {"routes": [{"oauth": wire}]} == NGROK.encode(catalog.https_edges, {"routes": [{"oauth": neutral}]})
    assert neutral == NGROK.encode(catalog.https_routes, neutral, module="oidc")


def test_lists_are_translated_item_by_item() -> None:
    wire = {
        "tunnel_sessions": [{"transport": "ngrok/v2"}, {"transport": "ssh"}],
        "uri": "ngrok/v2",
        "next_page_uri": None,
    }

    assert NGROK.decode(catalog.tunnel_sessions, wire) == {
        "tunnel_sessions": [{"transport": "service/v2"}, {"transport": "ssh"}],
        "uri": "ngrok/v2",
        "next_page_uri": None,
    }


def test_the_short_example_of_a_transport_is_translated_too() -> None:
    assert NGROK.decode(catalog.tunnel_sessions, {"transport": "ngrok/2"}) == {"transport": "service/2"}


def test_a_neutral_name_on_an_ngrok_wire_does_not_become_a_known_member() -> None:
    decoded = NGROK.decode(catalog.event_destinations, {"target": {"batch_stream": {}}})

    assert decoded == {"target": {"firehose": {}}}


def test_paths_are_spelt_as_on_the_wire() -> None:
    path = ("event_destinations", 0, "target", "monitoring", "tags")

    assert NGROK.encode_path(catalog.event_destinations, path) == (
        "event_destinations",
        0,
        "target",
        "datadog",
        "ddtags",
    )
    assert NGROK.encode_path(catalog.https_routes, ("provider", "search_vendor"), module="oauth") == (
        "provider",
        "google",
    )
    assert NGROK.encode_path(catalog.credentials, ("acl", 3)) == ("acl", 3)
    assert NGROK.encode_path(None, ("x",)) == ("x",)


RENAMED_SHAPES: dict[type[BaseModel], str] = {
    events.EventTarget: "event_targets",
    events.EventTargetMutate: "event_targets",
    events.Monitoring: "monitoring",
    events.MonitoringMutate: "monitoring",
    events.AWSCreds: "cloud_credentials",
    events.AWSCredsMutate: "cloud_credentials",
    modules.EndpointOAuthProvider: "oauth_providers",
    modules.EndpointOAuthProviderMutate: "oauth_providers",
}


def _paths(annotation: Any, path: tuple[str | int, ...] = ()) -> list[tuple[type[BaseModel], tuple[str | int, ...]]]:
    """Every place in a shape where a shape with renamed members stands."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        found = [(annotation, path)] if annotation in RENAMED_SHAPES else []
        for name, shape in annotation.model_fields.items():
            found += _paths(shape.annotation, (*path, name))
        return found
    return [place for inner in get_args(annotation) for place in _paths(inner, path)]


def test_every_place_of_the_shapes_with_renamed_members_is_renamed() -> None:
    """Completeness by reflection: a shape that is used in a new place needs that place in the profile."""
    checked = 0
    for collection in catalog.COLLECTIONS.values():
        bodies: list[tuple[str | None, Any]] = [
            (None, model) for model in (collection.read, collection.create, collection.update) if model
        ]
        bodies += [
            (name, model) for name, module in collection.modules.items() for model in (module.read, module.write)
        ]
        for module, model in bodies:
            for shape, path in _paths(model):
                names = dict(getattr(NGROK, RENAMED_SHAPES[shape]))
                for member, expected in names.items():
                    wire = NGROK.encode_path(collection, (*path, member), module=module)
                    assert expected == wire[-1], (collection.name, module, path)
                    checked += 1
    assert checked > 80


def test_name_tables_have_exactly_the_members_of_the_shapes() -> None:
    for shape, part in RENAMED_SHAPES.items():
        table = type(getattr(NGROK, part))
        assert set(shape.model_fields) == set(table.model_fields) | table.beside


def test_shipped_profiles_are_those_of_the_table() -> None:
    assert (
        profiles.NEUTRAL.version_header,
        profiles.NEUTRAL.version,
        profiles.NEUTRAL.error_code_prefix,
    ) == ("Service-Version", "2", "ERR_")
    assert (
        NGROK.version_header,
        NGROK.transport,
        NGROK.cookie_prefix,
        NGROK.error_code_prefix,
    ) == ("Ngrok-Version", "ngrok/v2", "ngrok.", "ERR_NGROK_")
    assert NGROK is profiles.load("ngrok")
    assert profiles.NEUTRAL is profiles.load("neutral")


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
def test_a_file_holds_another_profile(tmp_path: Path, suffix: str) -> None:
    content = {"name": "mine", "version_header": "Mine-Version", "version": 3, "monitoring": {"tags": "labels"}}
    file = tmp_path / f"mine{suffix}"
    file.write_text(json.dumps(content))

    profile = profiles.load(str(file))

    assert (profile.name, profile.version_header, profile.version) == ("mine", "Mine-Version", "3")
    assert profile.encode(catalog.event_destinations, {"target": {"monitoring": {"tags": "a"}}}) == {
        "target": {"monitoring": {"labels": "a"}}
    }


BAD_FILES = {
    "not a mapping": ("- a\n- b\n", "holds list, expected a mapping"),
    "empty": ("", "holds NoneType"),
    "not YAML": ("name: [", "not valid YAML"),
    "no name": ("version: '2'\n", "name: Field required"),
    "an unknown member": ("name: a\nversion_heading: X\n", "version_heading: Extra inputs are not permitted"),
    "an unknown name": ("name: a\nmonitoring: {tag: b}\n", "monitoring.tag: Extra inputs"),
    "two names alike": (
        "name: a\nmonitoring: {tags: site}\n",
        "monitoring: Value error, site: 'site' is taken already, by tags",
    ),
    "a name that stays": ("name: a\nmonitoring: {tags: api_key}\n", "'api_key' is taken already"),
    "a header that is taken": ("name: a\nversion_header: Authorization\n", "header with another meaning"),
    "a header that is none": ('name: a\nversion_header: "X Y: z"\n', "version_header: String should match"),
    "a line end in a value": ('name: a\nversion: "2\\r\\nX: y"\n', "version: String should match"),
    "a shipped name": ("name: ngrok\n", "ships with the program"),
}


@pytest.mark.parametrize(("content", "expected"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_a_bad_file_is_refused_with_its_name_and_the_reason(tmp_path: Path, content: str, expected: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(content)

    with pytest.raises(profiles.ProfileError) as caught:
        profiles.load(file)

    assert str(file) in str(caught.value)
    assert expected in str(caught.value)


def test_an_unknown_name_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(profiles.ProfileError, match="expected neutral or ngrok, or a YAML or JSON file: No such file"):
        profiles.load("nrgok")
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(profiles.ProfileError, match="not UTF-8"):
        profiles.load(binary)
