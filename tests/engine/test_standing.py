"""How a connection stands: what it says, what its resources are told, and what is worth an event."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from edge_operator.engine import standing
from edge_operator.engine.conditions import Verdict
from edge_operator.engine.operations import Shut, Stalled, Waiting
from edge_operator.engine.reasons import Ready, Stalls, Waits

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CONNECTED = Verdict(Ready.CONNECTED, "the service accepts the key")
REFUSED = Verdict(Stalls.AUTHENTICATION_FAILED, "the service refuses the API key")
META = {"generation": 3}


def test_a_refused_key_is_the_connections_own_failure():
    why = Waiting(Waits.CONNECTION_NOT_READY, "the service refuses the API key")
    assert REFUSED == standing.refusal(why)
    down = Waiting(Waits.SERVICE_UNAVAILABLE, "the service does not answer")
    assert Waits.SERVICE_UNAVAILABLE is standing.refusal(down).reason
    assert Stalls.INVALID_SPEC is standing.refusal(Stalled(Stalls.INVALID_SPEC, "no")).reason


def test_a_connection_says_more_of_an_outage_than_its_resources_where_there_is_more():
    short = Waiting(Waits.SERVICE_UNAVAILABLE, "the service does not answer")
    assert standing.refusal(short).message == "the service does not answer"
    longer = Waiting(Waits.SERVICE_UNAVAILABLE, "the service does not answer", detail="it answers 502")
    assert standing.refusal(longer).message == "it answers 502"


def test_resources_wait_for_a_connection_that_cannot_be_used_and_are_told_why():
    shut = standing.shut("Connection 'main'", REFUSED)
    assert Shut(Waits.CONNECTION_NOT_READY, "Connection 'main' cannot be used: the service refuses the API key") == shut
    error = shut.as_error()
    assert isinstance(error, Waiting)
    assert isinstance(Shut(Stalls.REFERENCE_NOT_PERMITTED, "no").as_error(), Stalled)


def test_a_connection_in_use_names_those_who_use_it():
    users = [("TLSEdge", "team-a", str(number)) for number in range(7)]
    said = standing.blocked(users, CONNECTED)
    assert Waits.DELETION_BLOCKED is said.reason
    assert said.message.startswith("still used by TLSEdge/0 in team-a, TLSEdge/1 in team-a")
    assert said.message.endswith("TLSEdge/4 in team-a and 2 more; delete them first")
    assert standing.blocked(users, REFUSED) == REFUSED, "why they cannot be deleted counts for more"


def test_nobody_is_more_than_who_is_named():
    users = [("TLSEdge", "team-a", str(number)) for number in range(5)]
    assert standing.blocked(users, CONNECTED).message.endswith(", TLSEdge/4 in team-a; delete them first")


def test_a_mismatch_names_some_of_what_is_missing_and_the_way_out():
    said = standing.mismatch([{"b_2", "b_1"}, {"a_1", "c_1"}], "0123456789abcdef")
    assert "(a_1, b_1, b_2 …)" in said
    assert f"{standing.ACCEPT}=0123456789abcdef" in said


def test_the_last_error_is_kept_when_it_is_over():
    failed = standing.status({}, REFUSED, META, ["PUT /b", "PUT /a"], NOW)
    assert failed["lastError"] == "the service refuses the API key"
    assert failed["unsupportedOperations"] == ["PUT /a", "PUT /b"]
    assert {c["type"] for c in failed["conditions"]} == {"Ready", "Stalled"}
    again = standing.status(failed, CONNECTED, META, (), NOW)
    assert again["lastError"] == "the service refuses the API key"
    assert again["observedGeneration"] == 3
    assert {c["type"] for c in again["conditions"]} == {"Ready"}
    blocked = standing.status({}, standing.blocked([("TLSEdge", "a", "b")], CONNECTED), META, (), NOW)
    assert "lastError" not in blocked


def test_what_a_service_lacks_stays_said_until_the_connection_is_another():
    first = standing.status({}, CONNECTED, META, ["PUT /b"], NOW)
    restarted = standing.status(first, CONNECTED, META, ["PUT /a"], NOW)
    assert restarted["unsupportedOperations"] == ["PUT /a", "PUT /b"]
    changed = standing.status(restarted, CONNECTED, {**META, "generation": META["generation"] + 1}, (), NOW)
    assert "unsupportedOperations" not in changed


@pytest.mark.parametrize(
    ("before", "verdict", "news"),
    [(None, CONNECTED, False), (None, REFUSED, True), (CONNECTED, REFUSED, True), (REFUSED, REFUSED, False)],
)
def test_an_event_is_for_what_changed(before: Verdict | None, verdict: Verdict, news: bool):
    status = {} if before is None else standing.status({}, before, META, (), NOW)
    assert standing.is_news(status, verdict) is news


def test_an_event_is_for_what_changed_of_ready_whatever_else_is_said():
    others = [{"type": "Checked", "status": "True", "reason": "ByHand"}]
    ready = standing.status({}, CONNECTED, META, (), NOW)["conditions"]
    assert not standing.is_news({"conditions": [*others, *ready]}, CONNECTED)


OUTAGE = {
    "type": "Ready",
    "reason": "ServiceUnavailable",
    "message": "answers 502",
    "observedGeneration": 3,
}


@pytest.mark.parametrize(
    ("connection", "said"),
    [
        ({"metadata": META}, False),
        ({"metadata": META, "status": {"conditions": [{**OUTAGE, "type": "Reconciling"}]}}, False),
        ({"metadata": META, "status": {"conditions": [{**OUTAGE, "type": "Reconciling"}, OUTAGE]}}, True),
        ({"metadata": META, "status": {"conditions": [{**OUTAGE, "reason": "AuthenticationFailed"}]}}, False),
        ({"metadata": META, "status": {"conditions": [{**OUTAGE, "observedGeneration": 2}]}}, False),
        ({"metadata": {}, "status": {"conditions": [{**OUTAGE, "observedGeneration": 1}]}}, True),
    ],
    ids=["nothing", "another condition", "an outage", "another reason", "another spec", "no generation"],
)
def test_what_a_connection_says_of_an_outage_counts_for_its_spec(connection: dict[str, Any], said: bool):
    found = standing.outage(connection)
    assert found == (Verdict(Waits.SERVICE_UNAVAILABLE, "answers 502") if said else None)
