"""The derived files in the repository."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from edge_operator.derive import documents, files
from edge_operator.kinds import KINDS

ROOT = Path(__file__).parents[2]
FILES = files.files(KINDS.values())


def run(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "edge_operator.derive", *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def copied(root: Path) -> Path:
    """A repository with the files that are derived in part."""
    (root / "pyproject.toml").touch()
    for path, _ in files.BLOCKS:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text((ROOT / path).read_text())
    for name in ("values.yaml", "values.schema.json"):
        (root / files.CHART).mkdir(parents=True, exist_ok=True)
        (root / files.CHART / name).write_text((ROOT / files.CHART / name).read_text())
    return root


def test_committed_files_are_as_they_are_derived() -> None:
    done = run("--check")

    assert done.returncode == 0, done.stdout + done.stderr


def test_a_check_names_what_differs_and_writes_nothing(tmp_path: Path) -> None:
    root = copied(tmp_path)
    run("--root", str(root))
    edited = root / "crds" / "tlsedges.yaml"
    edited.write_text(edited.read_text() + "# by hand\n")
    left_over = root / "crds" / "leftovers.yaml"
    left_over.touch()

    done = run("--check", "--root", str(root))

    assert done.returncode == 1
    assert done.stdout.splitlines() == ["differs: crds/leftovers.yaml", "differs: crds/tlsedges.yaml"]
    assert "make derive" in done.stderr
    assert edited.read_text().endswith("# by hand\n")
    assert left_over.exists()


def test_writing_repairs_and_removes_left_overs(tmp_path: Path) -> None:
    root = copied(tmp_path)
    left_over = root / "crds" / "leftovers.yaml"
    left_over.parent.mkdir()
    left_over.touch()

    first, second, check = run("--root", str(root)), run("--root", str(root)), run("--check", "--root", str(root))

    assert "wrote: crds/leftovers.yaml" in first.stdout
    assert not left_over.exists()
    assert "wrote" not in second.stdout
    assert check.returncode == 0


def test_a_folder_that_is_no_repository_is_refused(tmp_path: Path) -> None:
    done = run("--root", str(tmp_path))

    assert done.returncode == 2
    assert "pyproject.toml" in done.stderr


@pytest.mark.parametrize("path", FILES)
def test_derived_files_say_what_they_are_derived_from(path: str) -> None:
    first = FILES[path].splitlines()[0]

    assert "derived from operator/edge_operator/" in first
    assert "do not edit" in first
    for word in first.split():
        if word.startswith("operator/"):
            assert (ROOT / word.rstrip(",")).exists()


def test_yaml_has_no_anchors_and_keeps_texts() -> None:
    shared = ["a"]

    assert documents.dump({"x": shared, "y": shared, "z": "1\n2\n"}) == "x:\n- a\ny:\n- a\nz: |\n  1\n  2\n"


def test_a_time_in_an_example_stays_a_text() -> None:
    assert documents.load("at: 2026-08-01\nuntil: 2026-08-01T00:00:00Z\n---\n") == [
        {"at": "2026-08-01", "until": "2026-08-01T00:00:00Z"}
    ]
