"""The closed lists of reasons."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import edge_operator
from edge_operator.engine import reasons

FAMILIES = (reasons.Ready, reasons.Waits, reasons.Stalls, reasons.Events)
EVERY = [reason for family in FAMILIES for reason in family]
CODE = [file for file in Path(edge_operator.__file__).parent.rglob("*.py") if file.name != "reasons.py"]


def test_every_reason_has_a_meaning_that_is_a_sentence() -> None:
    assert set(EVERY) == set(reasons.MEANINGS)
    assert [] == [text for text in reasons.MEANINGS.values() if not re.fullmatch(r"[A-Z][^\n]*[^.]\.", text)]


def test_one_word_stands_in_one_family_only() -> None:
    """It decides which conditions are true, and meanings are found by the word."""
    words = [str(reason) for reason in EVERY]

    assert sorted(set(words)) == sorted(words)


def test_every_reason_is_a_word_that_kubernetes_takes() -> None:
    """Source: Kubernetes API conventions, reason: CamelCase, at most 1,024 characters."""
    assert [] == [reason for reason in EVERY if not re.fullmatch(r"[A-Z][A-Za-z]{2,40}", str(reason))]


def test_every_reason_is_used_somewhere() -> None:
    """A word that nothing says is a promise that nothing keeps."""
    used = {
        f"{node.value.attr if isinstance(node.value, ast.Attribute) else node.value.id}.{node.attr}"
        for file in CODE
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute)
    }

    assert [] == [f"{type(r).__name__}.{r.name}" for r in EVERY if f"{type(r).__name__}.{r.name}" not in used]
