"""docs/reliability.md says what the tests say, without running them again."""

from __future__ import annotations

import json
import re

from edge_operator.kinds import KINDS
from harness import reliability

TEXT = reliability.PAGE.read_text()


def test_the_page_is_what_its_harness_writes() -> None:
    figures = json.loads(reliability.FIGURES.read_text())
    mutants = json.loads(reliability.MUTANTS.read_text())

    assert reliability.page(figures, mutants, reliability.shown()) == TEXT, "make reliability"


def test_every_test_that_the_page_names_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT)

    assert named
    for path, name in named:
        assert re.search(rf"^(async )?def {name}\(", (reliability.ROOT / path).read_text(), re.MULTILINE), name


def test_every_fault_is_said_once() -> None:
    faults = [row.fault for row in reliability.shown()]

    assert sorted(set(faults)) == sorted(faults)


def test_every_kind_was_run_and_nothing_was_violated() -> None:
    figures = json.loads(reliability.FIGURES.read_text())

    assert "common" in figures
    for run in figures.values():
        assert KINDS.keys() == run["schedules"].keys()
        assert (run["failed"], run["violated_of"]) == (0, {})


def test_every_survivor_among_the_mutants_is_explained() -> None:
    mutants = json.loads(reliability.MUTANTS.read_text())

    assert [m["where"] for m in mutants["survivors"] if not m["why"].strip()] == []
