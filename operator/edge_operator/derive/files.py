"""Every derived file, and the derived blocks inside files that people write."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from edge_operator.declare import CustomResource
from edge_operator.derive import chart, commands, crd, documents, health, reference, samples
from edge_operator.derive.documents import header

CHART = "helm/edge-operator"
WHOLLY_DERIVED = ("crds", f"{CHART}/templates/crds", "docs/samples", "docs/samples/companions", "docs/reference")
"""Folders in which nothing else lives; a file that no kind asks for is a left-over."""
_KINDS, _DERIVE = "operator/edge_operator/kinds", "operator/edge_operator/derive"


def files(kinds: Iterable[CustomResource[Any]]) -> dict[str, str]:
    """Path from the root of the repository, and text, of every file that is derived as a whole."""
    kinds = list(kinds)
    found: dict[str, str] = {}
    for kind in kinds:
        source, name = f"{_KINDS}/{kind.spec.__module__.rsplit('.', 1)[1]}.py", kind.name.lower()
        found[f"crds/{kind.plural}.yaml"] = f"# {header([source])}\n{documents.dump(crd.crd(kind))}"
        found[f"{CHART}/templates/crds/{kind.plural}.yaml"] = chart.crd_template(kind, source)
        if samples.shown(kind):
            found[f"docs/samples/{samples.file(kind)}"] = f"# {header([source])}\n{samples.text(kind)}"
        found[f"docs/reference/{name}.md"] = f"<!-- {header([source])} -->\n\n{reference.page(kind, kinds)}"
    found |= _shared(kinds)
    return found


def _shared(kinds: list[CustomResource[Any]]) -> dict[str, str]:
    reasons = "operator/edge_operator/engine/reasons.py"
    index = f"# Reference\n\n{reference.table(kinds, '')}\nWhat the reasons in a status mean: [Reasons](reasons.md).\n"
    return {
        f"{CHART}/templates/_rules.tpl": chart.rules_template(kinds, f"{_DERIVE}/access.py", _KINDS),
        f"{CHART}/argocd/health.lua": f"-- {header([f'{_DERIVE}/health.py'])}\n{health.SCRIPT}",
        f"{CHART}/argocd/argocd-cm.yaml": chart.health_config(kinds, f"{_DERIVE}/health.py", _KINDS),
        "docs/reference/README.md": f"<!-- {header([_KINDS])} -->\n\n{index}",
        "docs/reference/reasons.md": f"<!-- {header([reasons])} -->\n\n{reference.reasons_page()}",
    }


BLOCKS = (
    ("README.md", "kinds"),
    ("docs/operations.md", "values"),
    ("docs/operations.md", "run"),
    ("docs/operations.md", "drain"),
    ("docs/operations.md", "serve-api"),
)
"""Where parts of a file are derived: the path, and the name in the marks around the part."""


def block(root: Path, name: str, kinds: Iterable[CustomResource[Any]]) -> str:
    """One derived part of a file that people write."""
    match name:
        case "kinds":
            return reference.table(kinds, "docs/reference/")
        case "values":
            values = documents.load((root / CHART / "values.yaml").read_text())[0]
            schema = json.loads((root / CHART / "values.schema.json").read_text())
            return chart.values_table(values, schema)
        case command:
            return commands.options(command)


def expected(root: Path, kinds: Iterable[CustomResource[Any]]) -> dict[str, str | None]:
    """What every derived file should be, by its path; None for one that should not be there."""
    kinds = list(kinds)
    found: dict[str, str | None] = dict(files(kinds))
    for path, name in BLOCKS:
        before = found.get(path) or (root / path).read_text()
        found[path] = _filled(before, path, name, block(root, name, kinds))
    for folder in WHOLLY_DERIVED:
        for left in sorted(path for path in (root / folder).glob("*") if path.is_file()):
            found.setdefault(f"{folder}/{left.name}", None)
    return found


def differences(root: Path, wanted: Mapping[str, str | None]) -> list[str]:
    """The paths of files that are not as they should be."""
    return [path for path, text in sorted(wanted.items()) if _read(root / path) != text]


def write(root: Path, wanted: Mapping[str, str | None]) -> list[str]:
    """Make every file as it should be, and return the paths of those that were not."""
    changed = differences(root, wanted)
    for path in changed:
        text = wanted[path]
        if text is None:
            (root / path).unlink()
        else:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
    return changed


def _read(path: Path) -> str | None:
    return path.read_text() if path.is_file() else None


def _filled(text: str, path: str, name: str, part: str) -> str:
    """The text with the part between `<!-- derived: name … -->` and `<!-- /derived: name -->` filled in."""
    pattern = re.compile(rf"(<!-- derived: {name}\b[^\n]*-->\n).*?(<!-- /derived: {name} -->)", re.DOTALL)
    found, count = pattern.subn(lambda match: f"{match[1]}{part}{match[2]}", text)
    if count != 1:
        raise ValueError(f"{path}: expected one block '<!-- derived: {name} -->' with its end, found {count}")
    return found
