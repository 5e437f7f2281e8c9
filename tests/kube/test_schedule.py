"""The laws of the schedule: one worker a key, no offer lost, nobody starves."""

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from edge_operator.kube.schedule import FAIR_SHARE, Backoff, Priority, Schedule

EDIT, NEW, RETRY, RESYNC = Priority


def schedule(**backoff: float) -> Schedule[str]:
    return Schedule(Backoff(**backoff), random.Random(7))  # repeatable


def taken(queue: Schedule[str], now: float = 0.0) -> list[str]:
    """All that can be taken, in order; each is finished at once."""
    out = []
    while (key := queue.take(now)) is not None:
        out.append(key)
        queue.finish(key, now)
    return out


def test_edits_go_before_retries_and_retries_before_resyncs() -> None:
    queue = schedule()
    for key, priority in {"c": RESYNC, "b": RETRY, "a": EDIT, "d": EDIT}.items():
        queue.offer(key, 0.0, priority)
    assert ["a", "d", "b", "c"] == taken(queue)


def test_a_higher_priority_moves_a_waiting_key_forward_and_a_lower_one_does_not_move_it_back() -> None:
    queue = schedule()
    queue.offer("slow", 0.0, RESYNC)
    queue.offer("other", 0.0, RETRY)
    queue.offer("slow", 0.0, EDIT)
    queue.offer("slow", 0.0, RESYNC)
    assert ["slow", "other"] == taken(queue)


def test_a_key_that_is_offered_again_and_again_keeps_its_place() -> None:
    queue = schedule()
    for key in ("a", "b", "a", "a"):
        queue.offer(key, 0.0, RETRY)
    assert ["a", "b"] == taken(queue)


def test_many_offers_are_answered_by_one_run() -> None:
    queue = schedule()
    for _ in range(5):
        queue.offer("a", 0.0, EDIT)
    queue.offer("a", 0.0, EDIT, due=50.0)
    assert ["a"] == taken(queue)
    assert [] == taken(queue, now=100.0)


def test_an_offer_during_a_run_leads_to_another_run_after_it() -> None:
    queue = schedule()
    queue.offer("a", 0.0, EDIT)
    assert queue.take(0.0) == "a"
    queue.offer("a", 0.0, EDIT)
    assert queue.take(0.0) is None
    queue.finish("a", 1.0)
    assert ["a"] == taken(queue, now=1.0)


def test_the_earlier_due_time_wins_whichever_comes_first() -> None:
    for dues in ((30.0, 10.0), (10.0, 30.0)):
        queue = schedule()
        for due in dues:
            queue.offer("a", 0.0, RESYNC, due)
        assert queue.next_due() == 10.0
        assert [] == taken(queue, now=9.9)
        assert ["a"] == taken(queue, now=10.0)
        assert queue.next_due() is None


def test_a_due_time_that_was_set_during_a_run_outlives_it() -> None:
    queue = schedule()
    queue.offer("a", 0.0, EDIT)
    queue.take(0.0)
    queue.offer("a", 0.0, RESYNC, due=60.0)
    queue.finish("a", 1.0)
    assert [] == taken(queue, now=59.0)
    assert ["a"] == taken(queue, now=60.0)


def test_a_canceled_key_is_neither_ready_nor_due_nor_remembered_as_failing() -> None:
    queue = schedule()
    queue.offer("a", 0.0, EDIT)
    queue.offer("b", 0.0, EDIT, due=5.0)
    queue.failed("a")
    for key in "ab":
        queue.cancel(key)
    assert [] == taken(queue, now=10.0)
    assert queue.failures("a") == 0
    assert queue.next_due() is None


def test_a_canceled_key_that_runs_is_finished_and_then_forgotten() -> None:
    queue = schedule()
    queue.offer("a", 0.0, EDIT)
    queue.take(0.0)
    queue.offer("a", 0.0, EDIT)
    queue.cancel("a")
    assert queue.running == 1
    queue.finish("a", 0.0)
    assert [] == taken(queue)


def test_a_resync_is_taken_although_edits_never_end() -> None:
    queue = schedule()
    queue.offer("resync", 0.0, RESYNC)
    order = []
    for number in range(2 * FAIR_SHARE):
        queue.offer(f"edit{number}", number + 1.0, EDIT)
        queue.offer(f"more{number}", number + 1.0, EDIT)
        key = queue.take(number + 1.0)
        assert key is not None
        order.append(key)
        queue.finish(key, number + 1.0)
    assert order.index("resync") < FAIR_SHARE


def test_edits_overtake_a_long_backlog_of_resyncs() -> None:
    """A thousand resyncs that have waited long leave an edit seven turns in eight."""
    queue = schedule()
    for number in range(1000):
        queue.offer(f"resync{number}", 0.0, RESYNC)
    for number in range(14):
        queue.offer(f"edit{number}", 500.0, EDIT)
    first = [queue.take(500.0) for _ in range(16)]
    assert 14 == sum(str(key).startswith("edit") for key in first)


def test_the_delay_doubles_up_to_its_ceiling_with_full_jitter() -> None:
    queue = schedule(base_seconds=1.0, ceiling_seconds=8.0)
    for attempt in range(1, 8):
        assert 0 <= queue.failed("a") <= min(8.0, 2.0 ** (attempt - 1))
    assert queue.failures("a") == 7
    queue.succeeded("a")
    assert queue.failed("a") <= 1.0


def test_the_jitter_reaches_from_near_nothing_to_near_everything() -> None:
    delays = [Backoff(4.0, 4.0).delay(1, random.Random(seed)) for seed in range(200)]  # repeatable
    assert min(delays) < 0.2
    assert max(delays) > 3.8


def test_a_thousand_failures_in_a_row_are_no_overflow() -> None:
    assert Backoff(1.0, 300.0).delay(5000, random.Random(1)) <= 300.0  # repeatable


def test_rescheduling_the_same_key_for_ever_keeps_the_heap_small() -> None:
    queue = schedule()
    for number in range(10_000):
        queue.offer("a", 0.0, RETRY, due=1e6 - number)
    assert len(queue._heap) < 100
    assert queue.next_due() == 1e6 - 9_999


def test_a_snapshot_counts_what_is_ready_running_and_scheduled() -> None:
    queue = schedule()
    queue.offer("a", 0.0, EDIT)
    queue.offer("b", 2.0, RESYNC)
    queue.offer("c", 2.0, RETRY, due=90.0)
    queue.take(3.0)
    shown = queue.snapshot(12.0)
    assert ({EDIT: 0, NEW: 0, RETRY: 0, RESYNC: 1}, 1, 1, 10.0) == (
        shown.ready, shown.running, shown.scheduled, shown.oldest_seconds,
    )  # fmt: skip


def test_what_came_due_counts_as_waiting_since_then() -> None:
    queue = schedule()
    queue.offer("a", 0.0, RETRY, due=5.0)
    assert queue.snapshot(9.0).oldest_seconds == 4.0


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from(Priority)), max_size=40))
def test_whatever_is_offered_is_taken_exactly_once(offers: list[tuple[str, Priority]]) -> None:
    queue = schedule()
    for key, priority in offers:
        queue.offer(key, 0.0, priority)
    assert sorted({key for key, _ in offers}) == sorted(taken(queue))


KEYS = st.sampled_from([f"k{n}" for n in range(6)])


class Laws(RuleBasedStateMachine):
    """A model beside the schedule: who owes a run to whom, and since when."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = schedule()
        self.now = 0.0
        self.owed: dict[str, float] = {}
        """When each key should be ready at the latest."""
        self.running: set[str] = set()
        self.takes = 0
        self.ready_at_take: dict[str, int] = {}

    @rule(key=KEYS, priority=st.sampled_from(Priority), wait=st.one_of(st.none(), st.integers(-5, 60)))
    def offer(self, key: str, priority: Priority, wait: int | None) -> None:
        due = None if wait is None else self.now + wait
        self.queue.offer(key, self.now, priority, due)
        self.owed[key] = min(self.owed.get(key, 1e9), self.now if due is None else max(due, self.now))

    @rule(seconds=st.integers(1, 30))
    def pass_time(self, seconds: int) -> None:
        self.now += seconds

    @rule()
    def take(self) -> None:
        ready = {key for key, due in self.owed.items() if due <= self.now and key not in self.running}
        key = self.queue.take(self.now)
        if key is None:
            assert not ready, f"{ready} should have been taken"
            return
        assert key in ready
        assert key not in self.running
        self.takes += 1
        for waiting in ready - {key}:
            first = self.ready_at_take.setdefault(waiting, self.takes)
            assert self.takes - first <= FAIR_SHARE * 7, f"{waiting} starves"
        self.ready_at_take.pop(key, None)
        self.running.add(key)
        del self.owed[key]

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def finish(self, data: Any) -> None:
        key = data.draw(st.sampled_from(sorted(self.running)))
        self.running.remove(key)
        self.queue.finish(key, self.now)

    @rule(key=KEYS)
    def cancel(self, key: str) -> None:
        self.queue.cancel(key)
        self.owed.pop(key, None)
        self.ready_at_take.pop(key, None)

    @invariant()
    def counts_agree(self) -> None:
        ready = [key for key, due in self.owed.items() if due <= self.now and key not in self.running]
        assert len(ready) == self.queue.ready(self.now)
        assert len(self.running) == self.queue.running

    @invariant()
    def the_next_due_time_is_known(self) -> None:
        later = [due for due in self.owed.values() if due > self.now]
        self.queue.ready(self.now)
        assert self.queue.next_due() == (min(later) if later else None)

    @invariant()
    def nothing_is_kept_of_what_is_at_rest(self) -> None:
        assert self.queue._entries.keys() == self.owed.keys() | self.running


TestLaws = Laws.TestCase
