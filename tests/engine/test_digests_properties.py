"""Digests remember without telling: bound to key, resource and field, and silent about the value."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edge_operator.engine import digests

KEY, OTHER = b"0123456789abcdef0123456789abcdef", b"another key of the operator's...."
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.text(), st.text(), json_values)
def test_one_value_has_one_digest_of_sixteen_characters(uid: str, field: str, value):
    first = digests.digest(KEY, uid, field, value)
    assert first == digests.digest(KEY, uid, field, value)
    assert 16 == len(first)
    assert {"f": first} == digests.known(KEY, {"f": first})


@given(json_values, json_values)
def test_two_values_have_two_digests(one, two):
    same = repr(one) == repr(two) or _sorted(one) == _sorted(two)
    assert same == (digests.digest(KEY, "u", "f", one) == digests.digest(KEY, "u", "f", two))


def _sorted(value):
    import json

    return json.dumps(value, sort_keys=True)


@given(json_values)
def test_the_same_value_elsewhere_has_another_digest(value):
    base = digests.digest(KEY, "uid-1", "field", value)
    assert base != digests.digest(KEY, "uid-2", "field", value)
    assert base != digests.digest(KEY, "uid-1", "other", value)
    assert base != digests.digest(OTHER, "uid-1", "field", value)


def test_the_parts_of_the_input_do_not_run_into_each_other():
    assert digests.digest(KEY, "ab", "c", 1) != digests.digest(KEY, "a", "bc", 1)


def test_a_digest_of_another_key_says_nothing():
    recorded = {"a": digests.digest(KEY, "u", "a", 1), "b": digests.digest(OTHER, "u", "b", 1), "c": "", "d": "x" * 16}
    assert {"a": recorded["a"]} == digests.known(KEY, recorded)
