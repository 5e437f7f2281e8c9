"""The image, as far as it can be judged without a container engine."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from chart.chart import ROOT

TEXT = (ROOT / "Dockerfile").read_text()


def test_hadolint_finds_nothing_to_complain_of() -> None:
    hadolint = Path(sys.executable).parent / "hadolint"
    done = subprocess.run([hadolint, ROOT / "Dockerfile"], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_runs_as_the_user_that_the_chart_asks_for() -> None:
    assert re.findall(r"^USER (.+)$", TEXT, re.MULTILINE) == ["65532:65532"]


def test_both_stages_stand_on_a_base_that_can_be_chosen() -> None:
    assert re.findall(r"^FROM (\S+)", TEXT, re.MULTILINE) == ["${PYTHON_IMAGE}", "${PYTHON_IMAGE}"]


def test_the_image_is_built_from_the_lock_with_the_uv_of_the_makefile() -> None:
    (uv,) = re.findall(r"^UV_VERSION := (\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)

    assert f"ARG UV_VERSION={uv}\n" in TEXT
    assert all("--frozen --no-dev" in line for line in re.findall(r"^RUN uv sync.*$", TEXT, re.MULTILINE))


def test_everything_that_is_copied_is_let_through() -> None:
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {word for line in re.findall(r"^COPY (?!--from)(.+) \S+$", TEXT, re.MULTILINE) for word in line.split()}

    assert copied == allowed
    assert all((ROOT / name).exists() for name in allowed)
