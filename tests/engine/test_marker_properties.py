"""The owner marker: in any metadata, taken off without a trace, never more than 256 bytes."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from edge_operator.engine import marker
from edge_operator.policies import RESERVED_MEMBER, USER_METADATA_BYTES

UID = "0d9c8a4e-6f0b-4b1e-9a53-2f1d6b7c8e90"
CLUSTER = "7b1c2d3e-4f50-4617-8293-a4b5c6d7e8f9"
WHO = marker.owner(CLUSTER, UID, "k3v9x2ab", "shop", "front")

names = st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?", fullmatch=True)
nonces = st.from_regex(r"[a-z0-9]{1,32}", fullmatch=True)
owners = st.builds(marker.owner, st.just(CLUSTER), st.just(UID), nonces, names, names)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(st.text(), values, max_size=4)
layouts = st.sampled_from([{}, {"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False}])
spaces = st.text(" \n\t\r", max_size=3)


@given(st.text(), owners)
@example("", WHO)
@example("{", WHO)
@example("}", WHO)
@example("{}", WHO)
@example("{ }", WHO)
@example('{"a": "}"}', WHO)
@example('{"a": {"b": {}}}\n', WHO)
@example("[]", WHO)
@example('"{}"', WHO)
@example("line\n", WHO)
@example("\n", WHO)
@example('{"a": 1}}', WHO)
@example("{" * 5000, WHO)
def test_any_text_comes_back_as_it_was(text: str, who: marker.Owner):
    assert (text, who) == marker.split(marker.attach(text, who))


@given(objects, layouts, spaces, spaces, owners)
def test_any_json_object_comes_back_byte_for_byte_and_stays_json(value, layout, before, after, who):
    text = f"{before}{json.dumps(value, **layout)}{after}"
    marked = marker.attach(text, who)
    assert (text, who) == marker.split(marked)
    assert {**value, RESERVED_MEMBER: str(who)} == json.loads(marked)


@given(st.text() | objects.map(json.dumps), owners)
def test_the_marker_adds_at_most_256_bytes(text: str, who: marker.Owner):
    added = len(marker.attach(text, who).encode("utf-8", "surrogatepass")) - len(text.encode("utf-8", "surrogatepass"))
    assert added <= marker.LIMIT_BYTES == 4096 - USER_METADATA_BYTES


@given(names, names)
def test_a_long_place_is_shortened_to_a_digest_that_still_tells_places_apart(namespace: str, name: str):
    who = marker.owner(CLUSTER, UID, "n" * 32, namespace, name)
    other = marker.owner(CLUSTER, UID, "n" * 32, namespace, f"{name}x")
    assert who.place != other.place
    assert who.place == f"{namespace}/{name}" or who.place.startswith("sha256:")


def test_a_short_form_is_the_same_for_ever():
    """Objects carry it; were it made in another way one day, they would be marked anew."""
    who = marker.owner(CLUSTER, UID, "n" * 32, "shop", "x" * 253)
    assert who.place == "sha256:ee3c7fbf55a941cdc136de58c354ead7"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain",
        '{"team": "a"}',
        f"{RESERVED_MEMBER}=",
        f"{RESERVED_MEMBER}=v1 a b.c",
        f"{RESERVED_MEMBER}=v2 a b.c d/e",
        f'{{"{RESERVED_MEMBER}": 7}}',
        f"{RESERVED_MEMBER}=v1 a b.c d/e\nmore lines after it",
        f"x{RESERVED_MEMBER}=v1 a b.c d/e",
    ],
)
def test_what_is_no_marker_is_nobodys(text: str):
    assert (text, None) == marker.split(text)


def test_a_marker_in_the_middle_of_somebodys_json_is_not_taken_for_ours():
    quoted = json.dumps({"note": f'"{RESERVED_MEMBER}":"{WHO}"', "last": 1})
    assert (quoted, None) == marker.split(quoted)


@given(st.text(), owners, owners)
def test_only_the_last_marker_is_taken_off(text: str, first: marker.Owner, second: marker.Owner):
    """Somebody copied our metadata into his own: ours is what we put there last."""
    once = marker.attach(text, first)
    assert (once, second) == marker.split(marker.attach(once, second))
