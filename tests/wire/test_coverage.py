"""Nothing of the document is left out: every operation and every rule has a transcript or a test."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from wire import document, rules, shapes, transcript
from wire.transcript import ABSENT

TRANSCRIPTS = transcript.read_all()


def _place(path: str) -> str:
    """`/edges/tcp/{edge}/backend?limit=1` as `/edges/tcp/{}/backend`."""
    return re.sub(r"\{[^}]*\}", "{}", path.partition("?")[0])


def _cited() -> Iterator[str]:
    for conversation in TRANSCRIPTS:
        yield from conversation.cites
    for file in Path(__file__).parent.glob("test_*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "cites":
                yield from (ast.literal_eval(argument) for argument in node.args)


def test_every_rule_of_the_document_is_shown() -> None:
    assert set() == rules.RULES.keys() - set(_cited())


def test_no_rule_is_cited_that_the_document_does_not_have() -> None:
    assert set() == set(_cited()) - rules.RULES.keys()


def test_every_operation_succeeds_in_a_transcript() -> None:
    shown = {(e.method, _place(e.path), e.status) for t in TRANSCRIPTS for e in t.exchanges}
    assert [] == [str(o) for o in document.OPERATIONS if (o.method, _place(o.path), o.status) not in shown]


def test_every_answer_is_judged_to_its_last_member() -> None:
    shown = {
        (e.method, _place(e.path)) for t in TRANSCRIPTS for e in t.exchanges if e.shape or e.expected is not ABSENT
    }
    assert [] == [str(o) for o in document.OPERATIONS if o.answer and (o.method, _place(o.path)) not in shown]


def test_every_member_of_every_body_is_sent() -> None:
    """In transcripts, with any value, at any depth."""
    sent = {
        (e.method, _place(e.path), member)
        for t in TRANSCRIPTS
        for e in t.exchanges
        if isinstance(e.body, dict) and e.status < 300
        for member in e.body
    }
    assert [] == [
        f"{operation}: {member}"
        for operation in document.OPERATIONS
        for member in operation.sent or {}
        if operation.method != "PATCH" and (operation.method, _place(operation.path), member) not in sent
    ]


def test_every_shape_is_answered_somewhere() -> None:
    """Directly, or inside another one."""
    named = {e.shape for t in TRANSCRIPTS for e in t.exchanges if e.shape}
    while True:
        inside = {kind.strip("[]?") for shape in named for kind in shapes.ANSWERED[shape].values()}
        if inside & shapes.ANSWERED.keys() <= named:
            break
        named |= inside & shapes.ANSWERED.keys()
    assert set() == shapes.ANSWERED.keys() - named


def test_every_transcript_has_an_exchange_and_a_rule() -> None:
    assert [] == [str(t) for t in TRANSCRIPTS if not t.exchanges or not t.cites]


def test_titles_are_unique() -> None:
    titles = [t.title for t in TRANSCRIPTS]
    assert len(titles) == len(set(titles))
