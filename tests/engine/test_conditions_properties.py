"""Conditions obey the rules of kstatus whatever the verdict, and a patch of the status says only what is new."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doubles import legal
from doubles.apiserver import merged
from doubles.world import START
from edge_operator.engine import conditions, reasons
from edge_operator.engine.conditions import Verdict
from edge_operator.engine.state import stamp

WORDS = [*reasons.Ready, *reasons.Waits, *reasons.Stalls]
verdicts = st.builds(
    Verdict,
    st.sampled_from(WORDS),
    st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=3000),
    st.lists(st.sampled_from(["hostports", "backend.enabled"]), unique=True).map(tuple),
    st.booleans(),
)
json_values = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=12,
)
statuses = st.dictionaries(st.text(max_size=2), json_values, max_size=4)


@given(st.lists(verdicts, min_size=1, max_size=5))
def test_every_sequence_of_verdicts_leads_through_legal_statuses(sequence: list[Verdict]):
    status: dict = {}
    for number, verdict in enumerate(sequence):
        now = START + timedelta(minutes=number)
        after = conditions.conditions(verdict, status.get("conditions", []), number + 1, now)
        following = {"observedGeneration": number + 1, "conditions": after}
        legal.check({"metadata": {"generation": number + 1}, "status": following}, status)
        status = following


def test_a_transition_time_moves_with_the_status_and_not_with_reason_or_message():
    steps = [
        (Verdict(reasons.Waits.PROGRESSING, "a"), 0),
        (Verdict(reasons.Waits.CONFLICT, "b"), 0),
        (Verdict(reasons.Stalls.INVALID_SPEC, "c"), 0),
        (Verdict(reasons.Ready.AVAILABLE, "d"), 3),
        (Verdict(reasons.Ready.OBSERVED, "e"), 3),
        (Verdict(reasons.Waits.RECOVERING, "f"), 5),
    ]
    before: list = []
    for number, (verdict, moved) in enumerate(steps):
        before = conditions.conditions(verdict, before, 1, START + timedelta(minutes=number))
        assert stamp(START + timedelta(minutes=moved)) == before[0]["lastTransitionTime"]


def test_what_differs_stays_said_while_paused_and_no_longer():
    said = conditions.conditions(Verdict(reasons.Ready.OBSERVED, "a", drift=("hostports",)), [], 1, START)
    paused = conditions.conditions(Verdict(reasons.Ready.OBSERVED, "a", paused=True), said, 1, START)
    assert [c for c in paused if c["type"] == "DriftDetected"] == said[1:]
    after = conditions.conditions(Verdict(reasons.Ready.OBSERVED, "b"), paused, 1, START)
    assert [c["type"] for c in after] == ["Ready"]


def test_a_condition_that_is_not_true_is_not_there():
    for word in WORDS:
        types = {c["type"] for c in conditions.conditions(Verdict(word, "m"), [], 1, START)}
        busy = (
            {"Reconciling"} if word in list(reasons.Waits) else {"Stalled"} if word in list(reasons.Stalls) else set()
        )
        assert {"Ready", *busy} == types


def test_every_reason_has_a_meaning_and_stands_in_one_family_only():
    words = [*WORDS, *reasons.Events]
    assert set(words) == set(reasons.MEANINGS)
    conditions_only = [str(word) for word in WORDS]
    assert len(set(conditions_only)) == len(conditions_only)


@given(statuses, statuses)
def test_a_difference_leads_from_one_status_to_the_other(before: dict, after: dict):
    assert after == merged(before, conditions.difference(before, after))


@given(statuses)
def test_no_difference_is_no_patch(status: dict):
    assert {} == conditions.difference(status, status)


@given(statuses, statuses)
def test_a_difference_says_nothing_that_is_so_already(before: dict, after: dict):
    for key, value in conditions.difference(before, after).items():
        assert before.get(key, ...) != value
        assert value is not None or key in before


@pytest.mark.parametrize(
    ("rule", "status"),
    [
        ("Ready is missing", []),
        ("Reconciling and Stalled at once", [("Ready", "False", "Progressing"), ("Reconciling", "True", "Progressing"),
                                             ("Stalled", "True", "InvalidSpec")]),
        ("neither Reconciling nor Stalled", [("Ready", "False", "Progressing")]),
        ("does not fit Stalled", [("Ready", "False", "Progressing"), ("Stalled", "True", "Progressing")]),
        ("without being true", [("Ready", "True", "Available"), ("Stalled", "False", "InvalidSpec")]),
        ("does not fit Ready=True", [("Ready", "True", "Progressing")]),
        ("two reasons", [("Ready", "False", "Progressing"), ("Stalled", "True", "InvalidSpec")]),
        ("unknown condition", [("Ready", "True", "Available"), ("Happy", "True", "Available")]),
        ("stands there twice", [("Ready", "True", "Available"), ("Ready", "True", "Available")]),
    ],
)  # fmt: skip
def test_the_checker_of_statuses_finds_what_is_against_the_rules(rule, status):
    time = stamp(START)
    found = [
        {"type": t, "status": s, "reason": r, "message": "m", "observedGeneration": 1, "lastTransitionTime": time}
        for t, s, r in status
    ]
    resource = {"metadata": {"generation": 1}, "status": {"observedGeneration": 1, "conditions": found}}
    with pytest.raises(legal.IllegalStatus, match=rule):
        legal.check(resource, {})


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("observedGeneration is not set", {"observedGeneration": -1}),
        ("observedGeneration is not set", {"observedGeneration": 9}),
        ("not a digest", {"applied": {"a": "value"}}),
        ("empty members", {"previous": []}),
        ("shows a secret", {"uri": "https://api.test/?token=canary-canary"}),
    ],
)
def test_the_checker_finds_what_else_is_wrong_in_a_status(rule, change):
    good = conditions.conditions(Verdict(reasons.Ready.AVAILABLE, "m"), [], 1, START)
    status = {"observedGeneration": 1, "conditions": good, **change}
    with pytest.raises(legal.IllegalStatus, match=rule):
        legal.check({"metadata": {"generation": 1}, "status": status}, {}, ["canary-canary"])
