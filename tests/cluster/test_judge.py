"""The judge of statuses: it sees what stood there for a moment, and tells the operator's writes from a test's."""

from __future__ import annotations

from typing import Any

from cluster.judge import WRITER, Judge
from cluster.running import SOON, World, message
from harness.cluster import MERGE_PATCH
from harness.processes import wait_until


def test_every_status_is_judged_and_those_of_tests_are_not(world: World, judge: Judge) -> None:
    before = judge.judged
    world.make("TCPEdge", "db", {"hostports": ["judge.example.com:1"], "backend": {"ref": {"id": "bkdfo_none"}}})
    world.until("TCPEdge", "db", "InvalidSpec")
    world.change_spec("TCPEdge", "db", {"backend": None})
    found = world.ready("TCPEdge", "db")
    wait_until(lambda: judge.judged >= before + 2, "both statuses to be judged", SOON)
    assert "as the spec says" in message(found)

    illegal = [{**c, "message": ""} for c in found["status"]["conditions"]]
    body: dict[str, Any] = {"status": {"conditions": illegal}}
    world.cluster.request("PATCH", f"{world.path('TCPEdge', 'db')}/status", body, content_type=MERGE_PATCH)
    world.change_spec("TCPEdge", "db", {"description": "once more"})
    wait_until(lambda: world.service.owned(found)[0]["description"] == "once more", "the change", SOON)
    assert judge.found == [], "what the test wrote is its own business"


def test_a_status_that_breaks_a_rule_is_found(judge: Judge) -> None:
    known = len(judge.found)
    conditions = [{"type": "Ready", "status": "True", "reason": "Available", "message": "", "observedGeneration": 1}]
    meta = {"name": "x", "generation": 1, "managedFields": [{"manager": WRITER, "subresource": "status"}]}
    judge._judge({"kind": "TCPEdge", "metadata": meta, "status": {"conditions": conditions}}, {})
    assert [text.partition(":")[0] for text in judge.found[known:]] == ["TCPEdge /x"]
    del judge.found[known:]
