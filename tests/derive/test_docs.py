"""Documentation that people write says what is so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from edge_operator.derive import files
from edge_operator.engine import state
from edge_operator.kube.metrics import Metrics
from edge_operator.kube.queue import Priority, Snapshot
from edge_operator.policies import Policies

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
WRITTEN = [page for page in PAGES if page.parent.name != "reference"]
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()

name = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
written = pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))


def prose(text: str) -> Iterator[str]:
    """The lines of a page that are neither code, nor table, nor derived."""
    text = re.sub(r"<!-- derived: .*?<!-- /derived: [^\n]*-->", "", text, flags=re.DOTALL)
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    yield from (line for line in text.splitlines() if not line.startswith("|"))


@name
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        if not target.startswith("https://"):
            assert (page.parent / target).exists(), target


@name
def test_anchors_are_headings(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)]+)\)", page.read_text()):
        text = (page.parent / target).read_text() if target else page.read_text()
        headings = [re.sub(r"[^\w -]", "", line.lstrip("# ")).lower().replace(" ", "-") for line in text.splitlines()]
        assert anchor in headings, anchor


@written
def test_a_line_holds_one_sentence(page: Path) -> None:
    long = [line for line in prose(page.read_text()) if re.search(r"[a-z0-9)`]\. [A-Z`]", line)]

    assert long == []


@written
def test_make_is_asked_for_what_it_has(page: Path) -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    assert set(re.findall(r"\bmake ([a-z0-9-]+)", "\n".join(re.findall(r"`make [^`]+`", page.read_text())))) <= targets


def test_every_metric_is_documented_and_every_documented_one_exists() -> None:
    metrics = Metrics()
    metrics.watch_queue(lambda: Snapshot(ready={Priority.EDIT: 0}, running=0, scheduled=0, oldest_seconds=0.0))
    metrics.watch_resources(lambda: {("TLSEdge", "True"): 1})
    metrics.watch_connections(lambda: {("Connection", "Connected"): 1})
    metrics.watch_leader(lambda: True)
    families = {family.name for family in metrics.registry.collect() if family.name.startswith("edge_operator_")}

    assert families == set(re.findall(r"^\| `(edge_operator_\w+)`", OPERATIONS, re.MULTILINE))


def test_every_annotation_is_documented() -> None:
    for annotation in (state.CLAIM, state.THROUGH, state.PAUSED, state.ABANDON, state.ROTATE, *state.REQUESTED):
        assert f"`{annotation.removeprefix('edge-operator.dev/')}" in OPERATIONS
    assert state.FINALIZER in OPERATIONS


def test_every_policy_is_documented() -> None:
    for field in Policies.model_fields.values():
        assert f"| `{field.alias}` |" in OPERATIONS


def test_every_kind_of_page_with_derived_parts_has_them() -> None:
    for path, block in files.BLOCKS:
        assert (ROOT / path).read_text().count(f"<!-- derived: {block}") == 1
