"""A connection with a limit: a backlog goes on steadily, and what a person edits meanwhile does not wait behind it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster.running import Installation, Operator, Service, World, clear, says
from harness.cluster import Cluster
from harness.processes import wait_until

KIND = "FailoverBackend"
SPEC = {"backends": [{"id": "bkdtg_1"}]}
BACKLOG = 230
"""More than the quarter of a minute's 600 calls that may go out at once."""


REFUSED_BACKLOG = 120


def waiting(world: World) -> list[str]:
    """Names of the resources that are not made yet."""
    items = world.cluster.request("GET", world.path(KIND))["items"]
    return [item["metadata"]["name"] for item in items if says(item) != "Available"]


def create(world: World, count: int) -> None:
    """Create so many resources in one command."""
    meta = {"apiVersion": "edge-operator.dev/v1alpha1", "kind": KIND}
    items = [{**meta, "metadata": {"name": f"b{n:03}"}, "spec": SPEC} for n in range(count)]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    world.cluster.kubectl("create", "--namespace", world.namespace, "-f", "-", input=text)


@pytest.mark.fault("an edit behind a backlog under a rate limit")
def test_an_edit_goes_before_a_backlog_of_creations(
    installation: Installation, service: Service, key_file: Path, namespace: str, crds: Cluster, tmp_path: Path
) -> None:
    world = World(crds, service, namespace)
    with Operator(installation, service.url, key_file, tmp_path / "slow.log", api_rate="600") as slow:
        slow.lead()
        world.make(KIND, "edited", SPEC)
        world.ready(KIND, "edited")
        mark = service.mark()
        create(world, BACKLOG)
        wait_until(lambda: len(waiting(world)) < BACKLOG, "the backlog to be begun", 30)

        world.change_spec(KIND, "edited", {"description": "by somebody who waits"})
        world.ready(KIND, "edited")

        assert waiting(world), "the edit waited behind the whole backlog"
        wait_until(lambda: not waiting(world), "the backlog to be done", 60, 0.2)
        assert not [call for call in service.calls(mark) if call.endswith(" 429")]
        assert len([call for call in service.calls(mark) if call.startswith("POST")]) == BACKLOG
        assert slow.stop()[0] == 0
    with Operator(installation, service.url, key_file, tmp_path / "quick.log") as quick:
        quick.lead()
        clear(world)
        assert world.left() == []
        assert quick.stop()[0] == 0


@pytest.mark.fault("an edit is refused with 429 amid a backlog")
def test_an_edit_that_was_refused_goes_before_a_backlog_all_the_same(
    installation: Installation, service: Service, key_file: Path, namespace: str, crds: Cluster, tmp_path: Path
) -> None:
    """A 429 teaches a pace at which the rest of the backlog would take minutes."""
    world = World(crds, service, namespace)
    with Operator(installation, service.url, key_file, tmp_path / "refused.log") as refused:
        refused.lead()
        world.make(KIND, "edited", SPEC)
        world.ready(KIND, "edited")
        mark = service.mark()
        service.faults(
            {"kind": "status", "status": 429, "retry_after": "1", "method": "PATCH", "count": 1},
            {"kind": "latency", "seconds": 1.0, "method": "POST"},
        )
        create(world, REFUSED_BACKLOG)
        wait_until(lambda: len(waiting(world)) < REFUSED_BACKLOG - 10, "the backlog to be begun", 30)

        world.change_spec(KIND, "edited", {"description": "by somebody who waits"})
        world.ready(KIND, "edited", within=45)

        tried = [entry for entry in service.journal() if entry["number"] > mark and entry["method"] == "PATCH"]
        assert [entry["status"] for entry in tried] == [429, 200]
        assert len(waiting(world)) > REFUSED_BACKLOG / 4, "the edit waited behind the backlog"
        refused.kill()
    service.faults()
    with Operator(installation, service.url, key_file, tmp_path / "quick.log") as quick:
        quick.lead()
        clear(world)
        assert world.left() == []
        assert quick.stop()[0] == 0
