from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_operator.api import errors, retry

POLICY = retry.RetryPolicy(attempts=4, base_seconds=1, cap_seconds=8, longest_wait_seconds=30)
READS_AND_SETS = ["GET", "PUT", "PATCH", "DELETE"]
NEVER_SENT = errors.NotSent("refused")
UNKNOWN = errors.OutcomeUnknown("cut")


def status(code: int, retry_after_seconds: float | None = None) -> errors.StatusError:
    return errors.for_status(code)(code, retry_after_seconds=retry_after_seconds)


REPEATED = {
    "a connection that never opened, whatever the method": ([*READS_AND_SETS, "POST"], NEVER_SENT),
    "an unknown outcome, where repeating does no harm": (READS_AND_SETS, UNKNOWN),
    "a fault of the service": (READS_AND_SETS, status(500)),
    "a gateway without a service behind it": (READS_AND_SETS, status(503)),
    "a status that asks for another try": (READS_AND_SETS, status(408)),
    "a rate limit: the request was refused, so a POST made nothing": ([*READS_AND_SETS, "POST"], status(429)),
}
GIVEN_UP = {
    "a POST that may have made something": (["POST"], UNKNOWN),
    "a POST that failed in the service": (["POST"], status(500)),
    "a POST that timed out in the service": (["POST"], status(408)),
    "an invalid request": ([*READS_AND_SETS, "POST"], status(400)),
    "an unprocessable request": ([*READS_AND_SETS, "POST"], status(422)),
    "a wrong key": ([*READS_AND_SETS, "POST"], status(401)),
    "a lack of permission": ([*READS_AND_SETS, "POST"], status(403)),
    "an absent resource": ([*READS_AND_SETS, "POST"], status(404)),
    "an absent operation": ([*READS_AND_SETS, "POST"], status(405)),
    "an operation not implemented": ([*READS_AND_SETS, "POST"], status(501)),
    "a conflict: the caller reads first": ([*READS_AND_SETS, "POST"], status(409)),
    "a redirect": ([*READS_AND_SETS, "POST"], status(301)),
    "a link to another host": (["GET"], errors.ForeignAddress("x")),
    "a list without an end": (["GET"], errors.PagingLoop("x")),
}


@pytest.mark.parametrize(("methods", "error"), REPEATED.values(), ids=REPEATED.keys())
def test_is_tried_again(methods: list[str], error: errors.APIError) -> None:
    for method in methods:
        assert retry.delay_seconds(method, 1, error, POLICY, 0.5) == 0.5


@pytest.mark.parametrize(("methods", "error"), GIVEN_UP.values(), ids=GIVEN_UP.keys())
def test_is_not_tried_again(methods: list[str], error: errors.APIError) -> None:
    for method in methods:
        assert retry.delay_seconds(method, 1, error, POLICY, 0.5) is None


def test_waits_double_up_to_the_cap_and_attempts_end() -> None:
    generous = retry.RetryPolicy(attempts=7, base_seconds=1, cap_seconds=8)

    waits = [retry.delay_seconds("GET", attempt, UNKNOWN, generous, 1.0) for attempt in range(1, 8)]

    assert waits == [1, 2, 4, 8, 8, 8, None]


def test_never_means_one_attempt() -> None:
    assert retry.delay_seconds("GET", 1, NEVER_SENT, retry.NEVER, 0.0) is None


def test_a_pause_that_was_asked_for_is_kept_with_jitter_on_top() -> None:
    assert retry.delay_seconds("POST", 1, status(429, 7), POLICY, 0.5) == 7.5
    assert retry.delay_seconds("GET", 1, status(503, 7), POLICY, 0.5) == 7.5


def test_a_pause_longer_than_a_call_waits_is_left_to_the_caller() -> None:
    assert retry.delay_seconds("GET", 1, status(429, 30.5), POLICY, 0.0) is None


@given(
    method=st.sampled_from([*READS_AND_SETS, "POST"]),
    attempt=st.integers(1, 10_000),
    code=st.integers(300, 999),
    asked=st.none() | st.floats(0, retry.LONGEST_RETRY_AFTER_SECONDS),
    jitter=st.floats(0, 1),
)
def test_every_wait_is_bounded(method: str, attempt: int, code: int, asked: float | None, jitter: float) -> None:
    policy = retry.RetryPolicy(attempts=20_000)

    delay = retry.delay_seconds(method, attempt, status(code, asked), policy, jitter)

    assert delay is None or 0 <= delay <= policy.longest_wait_seconds + policy.cap_seconds


@given(method=st.just("POST"), code=st.integers(300, 599), parsed=st.booleans())
def test_a_post_is_repeated_only_where_it_made_nothing(method: str, code: int, parsed: bool) -> None:
    error = errors.for_status(code)(code, parsed=parsed)

    if retry.delay_seconds(method, 1, error, POLICY, 0.5) is not None:
        assert error.created == "no"


NOW = 1_767_322_800.0  # 2026-01-02T03:00:00Z
RETRY_AFTER = {
    "absent": (None, None),
    "seconds": ("17", 17.0),
    "with spaces": (" 17 ", 17.0),
    "zero": ("0", 0.0),
    "a day is cut": ("86400", 3600.0),
    "more digits than any clock has": ("9" * 400, 3600.0),
    "a date": ("Fri, 02 Jan 2026 03:00:30 GMT", 30.0),
    "a date that is past": ("Fri, 02 Jan 2026 02:59:30 GMT", 0.0),
    "a date far off is cut": ("Fri, 02 Jan 2037 03:00:30 GMT", 3600.0),
    "a fraction is no HTTP": ("1.5", None),
    "below zero is no HTTP": ("-5", None),
    "a word": ("soon", None),
    "empty": ("", None),
    "digits of another script": ("١٧", None),
    "no such day": ("Fri, 99 Jan 2026 03:00:30 GMT", None),
    "not a number": ("nan", None),
    "infinite": ("inf", None),
}


@pytest.mark.parametrize(("header", "expected"), RETRY_AFTER.values(), ids=RETRY_AFTER.keys())
def test_retry_after_is_read_as(header: str | None, expected: float | None) -> None:
    assert expected == retry.retry_after_seconds(header, NOW)


@given(st.text())
def test_nonsense_in_retry_after_is_bounded_or_nothing(header: str) -> None:
    found = retry.retry_after_seconds(header, NOW)

    assert found is None or 0 <= found <= retry.LONGEST_RETRY_AFTER_SECONDS


@pytest.mark.parametrize(
    "wrong",
    [{"attempts": 0}, *({name: value} for name, value in itertools.product(
        ["base_seconds", "cap_seconds", "longest_wait_seconds"], [-1.0, math.inf, math.nan]))],
    ids=str,
)  # fmt: skip
def test_a_policy_without_sense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(errors.Misuse, match="retry"):
        retry.RetryPolicy(**wrong)  # type: ignore[arg-type] # the table holds whole numbers and fractions
