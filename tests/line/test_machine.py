"""Anything in any order: many resources, two accounts, edits, deletions, faults, deaths and clocks; judged at rests."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from doubles import schedules
from doubles.apiserver import Key
from doubles.effects import Fate
from doubles.finds import ADOPTABLE, FINDERS
from doubles.tally import MANY, TALLY, hold
from doubles.trial import FAULTS, NAMES, SPANS, Trial
from edge_operator.kinds import KINDS

KIND = st.sampled_from(sorted(KINDS))
PICK = st.integers(0, 11)


class Machine(RuleBasedStateMachine):
    """Rules that a person, the service, the network or the clock may follow at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.trial = Trial()

    def teardown(self) -> None:
        """The last rest of every run; then the end."""
        try:
            self.rest()
        finally:
            self.runner.run(self.trial.rig.__aexit__())
            self.runner.close()

    def _run(self, work: Any) -> None:
        self.runner.run(work)

    def _pick(self, number: int) -> Key:
        keys = self.trial.keys()
        return keys[number % len(keys)]

    def _some(self) -> bool:
        return bool(self.trial.keys())

    @initialize(wanted=st.lists(st.tuples(KIND, st.sampled_from(NAMES)), min_size=2, max_size=6, unique=True))
    def begin(self, wanted: list[tuple[str, str]]) -> None:
        for kind, name in wanted:
            self._run(self.trial.declare(kind, name))

    @rule(kind=KIND, name=st.sampled_from(NAMES))
    def declare(self, kind: str, name: str) -> None:
        self._run(self.trial.declare(kind, name))

    @rule(kind=st.sampled_from(ADOPTABLE), name=st.sampled_from(FINDERS), policy=st.sampled_from(("Delete", "Retain")))
    def adopt(self, kind: str, name: str, policy: str) -> None:
        self._run(self.trial.adopt(kind, name, policy))

    @precondition(_some)
    @rule(pick=PICK, number=st.integers(0, 9))
    def edit(self, pick: int, number: int) -> None:
        self.trial.edit(self._pick(pick), number)

    @precondition(_some)
    @rule(pick=PICK, how=st.sampled_from(("plain", "plain", "retain", "abandon")))
    def delete(self, pick: int, how: str) -> None:
        self.trial.delete(self._pick(pick), how)

    @precondition(_some)
    @rule(pick=PICK, deleted=st.booleans())
    def meddle_with_the_service(self, pick: int, deleted: bool) -> None:
        self._run(self.trial.meddle(self._pick(pick), deleted=deleted))

    @precondition(_some)
    @rule(pick=PICK, emptied=st.booleans())
    def lose_a_secret(self, pick: int, emptied: bool) -> None:
        self.trial.lose_secret(self._pick(pick), emptied=emptied)

    @precondition(_some)
    @rule(pick=PICK, number=st.integers(0, 9))
    def ask_for_a_rotation(self, pick: int, number: int) -> None:
        self.trial.ask(self._pick(pick), number)

    @precondition(_some)
    @rule(pick=PICK)
    def pause(self, pick: int) -> None:
        self.trial.pause(self._pick(pick))

    @rule(kind=KIND)
    def others_make_objects(self, kind: str) -> None:
        self._run(self.trial.neighbours(kind))

    @rule(
        faults=st.lists(st.sampled_from(FAULTS), min_size=1, max_size=3, unique_by=str),
        count=st.integers(1, 4),
        skip=st.integers(0, 2),
        account=st.sampled_from((None, 0, 1)),
    )
    def the_service_fails(self, faults: list[dict[str, Any]], count: int, skip: int, account: int | None) -> None:
        self.trial.rig.faults(*({**fault, "count": count, "skip": skip} for fault in faults), account=account)
        for fault in faults:
            TALLY.inject([f"service: {fault['kind']} {fault.get('status', '')}".rstrip()])

    @rule(distance=st.integers(1, 6), fate=st.sampled_from(sorted(Fate)))
    def something_becomes_of_an_effect(self, distance: int, fate: Fate) -> None:
        self.trial.fate(distance, fate)
        TALLY.inject([str(fate)])

    @rule()
    def the_process_ends(self) -> None:
        self._run(self.trial.rig.restart())

    @rule(behind=st.integers(0, 3))
    def the_cache_falls_behind(self, behind: int) -> None:
        self.trial.rig.stale = behind

    @rule(span=st.sampled_from(SPANS))
    def the_clock_steps(self, span: Any) -> None:
        self.trial.rig.world.step(span)

    @rule(hours=st.sampled_from((1, 20, 120)))
    def time_passes(self, hours: int) -> None:
        self._run(self.trial.rig.sleep(hours * 3600.0))

    @rule(passes=st.integers(1, 6))
    def work_a_little(self, passes: int) -> None:
        self._run(self.trial.work(passes))

    @rule()
    def work(self) -> None:
        self._run(self.trial.rig.settle())

    @rule(kind=KIND)
    def look_at_the_account(self, kind: str) -> None:
        self._run(self.trial.look(kind))

    @rule(passes=st.integers(0, 8))
    def rest_after_a_little_work(self, passes: int) -> None:
        self._run(self.trial.work(passes))
        self.rest()

    def rest(self) -> None:
        self._run(self.trial.rest())
        hold("the state machine comes to rest", not self.trial.rig.process.dirty)


@pytest.mark.fault("all of these in any order, over many resources")
@pytest.mark.timeout(schedules.TIMEOUT_SECONDS)
def test_whatever_happens_in_whatever_order_every_rest_is_as_it_should_be():
    given = settings(
        max_examples=schedules.SIZE.machine_runs,
        stateful_step_count=schedules.SIZE.machine_steps,
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    TALLY.kind = MANY
    try:
        run_state_machine_as_test(seed(schedules.SEED)(Machine), settings=given)
    except AssertionError:
        TALLY.violated_of[MANY] += 1
        raise
