"""What is the same and what is not, field by field; compared is what the spec says and nothing else."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_operator.declare import CaseInsensitive, Keyed, Part, SecretInput, SentAs, Unordered
from edge_operator.engine import compare
from edge_operator.engine.operations import Waiting
from edge_operator.engine.project import Field, fields
from edge_operator.engine.reasons import Waits
from edge_operator.kinds import KINDS


class Inner(Part):
    names: Annotated[list[str] | None, Unordered(), CaseInsensitive(), SentAs("name_list")] = None
    secret: SecretInput | None = None
    level: int | None = None


class Sample(Part):
    ordered: list[str] | None = None
    group: Annotated[list[str] | None, Unordered()] = None
    word: Annotated[str | None, CaseInsensitive()] = None
    heads: Annotated[dict[str, str] | None, CaseInsensitive()] = None
    weights: Annotated[list[Inner] | None, Keyed(by="names", value="level")] = None
    inner: Inner | None = None
    token: SecretInput | None = None


FIELDS = {f.name: f for f in fields(Sample)}


@pytest.mark.parametrize(
    ("name", "want", "have", "paths", "reason"),
    [
        ("ordered", ["a", "b"], ["b", "a"], ["ordered"], "order is meaning"),
        ("ordered", ["a"], ["A"], ["ordered"], "case is meaning"),
        ("ordered", [], None, ["ordered"], "an empty list is asked for and nothing is there"),
        ("group", ["a", "b"], ["b", "a"], [], "order is none"),
        ("group", ["a", "b"], ["b", "A"], ["group"], "case is meaning in a set"),
        ("group", ["a"], ["a", "a"], ["group"], "twice is not once"),
        ("word", "GitHub", "github", [], "case is none"),
        ("word", "github", "gitlab", ["word"], "another word"),
        ("heads", {"X-A": "1"}, {"x-a": "1"}, [], "the case of a name is none"),
        ("heads", {"x-a": "B"}, {"x-a": "b"}, ["heads"], "the case of a value is meaning"),
        ("heads", {"x-a": "1"}, {"x-a": "1", "x-b": "2"}, ["heads"], "one more"),
        ("weights", {"a": 1, "b": 2}, {"b": 2, "a": 1}, [], "a map has no order"),
        ("weights", {"a": 1}, {"a": 1, "b": 0}, ["weights"], "a child more, even without weight"),
        ("inner", {"level": 1}, {"level": 1, "name_list": ["x"]}, [], "what the spec leaves out"),
        ("inner", {"level": 1, "name_list": ["A", "b"]}, {"level": 2, "name_list": ["B", "a"]}, ["inner.level"], "one"),
        ("inner", {"level": 1, "name_list": ["a"]}, {}, ["inner.names", "inner.level"], "each by its path in the spec"),
        ("inner", {"level": 1}, None, ["inner"], "a part that is gone is named whole"),
        ("inner", {}, {}, [], "nothing asked for"),
        ("inner", {"secret": "s"}, {"secret": None}, [], "not returned, not compared"),
        ("inner", {"secret": "s"}, {}, [], "not returned, not compared"),
        ("inner", {"secret": "s"}, {"secret": "t"}, ["inner.secret"], "returned, compared"),
        ("token", "s", None, [], "not returned, not compared"),
        ("token", "s", "s", [], "the same"),
    ],
)
def test_a_difference_is_named_by_its_path(name: str, want: Any, have: Any, paths: list[str], reason: str) -> None:
    assert paths == compare.differences(FIELDS[name], want, have), reason


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(list(FIELDS.values())), JSON)
def test_nothing_differs_from_itself_and_normal_is_normal(field: Field, value: Any) -> None:
    assert [] == compare.differences(field, value, value) or not _shaped(field, value)
    once = compare.normal(field, value)
    assert once == compare.normal(field, once)


def _shaped(field: Field, value: Any) -> bool:
    """Whether the value could be one of this field: a part is an object."""
    return field.part is None or isinstance(value, dict)


@given(st.sampled_from(list(FIELDS.values())), JSON, JSON)
def test_any_two_values_can_be_compared(field: Field, want: Any, have: Any) -> None:
    assert all(path.startswith(field.alias) for path in compare.differences(field, want, have))


@pytest.mark.parametrize(
    ("answer", "where"),
    [
        ({"id": "edgtls_1", "hostports": "a:443"}, "hostports"),
        ({"id": "edgtls_1", "backend": {"backend": "bkdwd_1"}}, "backend.backend"),
        ({"hostports": []}, "id"),
        ({"id": "edgtls_1", "hostports": [1], "description": 7}, "description, hostports.0"),
    ],
)
def test_an_answer_of_another_shape_is_waited_out_and_never_echoed(answer: dict[str, Any], where: str) -> None:
    with pytest.raises(Waiting) as waiting:
        compare.held(KINDS["TLSEdge"], answer)

    assert Waits.SERVICE_UNAVAILABLE == waiting.value.reason
    assert f"the service returned an object that cannot be read, at {where}" == waiting.value.message


def test_a_long_complaint_is_cut() -> None:
    answer = {"id": "edgtls_1", "hostports": list(range(1000))}

    with pytest.raises(Waiting) as waiting:
        compare.held(KINDS["TLSEdge"], answer)

    assert len(waiting.value.message) <= 256


def test_what_the_service_holds_is_read_in_the_form_of_a_request() -> None:
    answer = {
        "id": "edgtcp_1",
        "hostports": None,
        "backend": {"enabled": True, "backend": {"id": "bkdwd_1", "uri": "u"}, "news": 1},
        "ip_restriction": {"ip_policies": [{"id": "ipp_1", "uri": "u"}, {"id": "ipp_2"}]},
        "unheard_of": {},
    }

    held = compare.held(KINDS["TCPEdge"], answer)

    assert [] == held["hostports"]
    assert {"enabled": True, "backend_id": "bkdwd_1"} == held["backend"]
    assert {"enabled": True, "ip_policy_ids": ["ipp_1", "ipp_2"]} == held["ip_restriction"]
    assert "unheard_of" not in held
