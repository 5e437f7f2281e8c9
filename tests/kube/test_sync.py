"""Nobody acts before the watches have told of everything that was there at the start."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from edge_operator.kinds import KINDS
from edge_operator.kube import errors
from edge_operator.kube.client import JSON
from edge_operator.kube.index import Index
from edge_operator.kube.sync import PATIENCE_SECONDS, InitialSync

KIND = KINDS["FailoverBackend"]


def resource(name: str) -> JSON:
    meta = {"namespace": "a", "name": name, "uid": name, "resourceVersion": "1", "generation": 1}
    return {"kind": KIND.name, "metadata": meta, "spec": {"backends": [{"id": "bkdtg_1"}]}}


class Names:
    """An API server with these backends, in pages of one."""

    def __init__(self, *names: str) -> None:
        self.names = [*names]
        self.asked: list[str] = []

    async def pages(self, path: str, *, metadata_only: bool) -> AsyncGenerator[JSON]:
        assert metadata_only
        for name in self.names if path.endswith(f"/{KIND.plural}") else ():
            yield {"items": [{"metadata": {"namespace": "a", "name": name}}]}

    async def get(self, path: str, *, metadata_only: bool) -> JSON:
        assert metadata_only
        name = path.rpartition("/")[2]
        self.asked.append(name)
        if name not in self.names:
            raise errors.NotFound(path)
        return {"metadata": {"name": name}}


class Clock:
    """Sleeps take no time; after each, the next of these things happens."""

    def __init__(self, *then: Any) -> None:
        self.then, self.slept = [*then], 0.0

    async def sleep(self, seconds: float) -> None:
        self.slept += seconds
        if self.then:
            self.then.pop(0)()


def sync(api: Any, index: Index, clock: Clock) -> InitialSync:
    return InitialSync(api, KINDS, lambda key: index.get(key) is not None, sleep=clock.sleep)


async def test_it_is_done_once_the_index_has_all_that_was_there() -> None:
    index = Index(KINDS)
    clock = Clock(lambda: index.observe(KIND, resource("x")), lambda: index.observe(KIND, resource("y")))
    found = sync(Names("x", "y"), index, clock)

    await found.note(())
    await found.done()

    assert len(index) == 2
    assert clock.then == []


async def test_an_empty_cluster_is_done_at_once() -> None:
    clock = Clock()
    found = sync(Names(), Index(KINDS), clock)

    await found.note(("a", "b"))
    await found.done()

    assert clock.slept == 0


async def test_what_went_before_the_watches_began_is_not_waited_for() -> None:
    """After a while in which nothing is told, it is looked for by its name."""
    index, api = Index(KINDS), Names("stays", "goes")
    clock = Clock(lambda: index.observe(KIND, resource("stays")), lambda: api.names.remove("goes"))
    found = sync(api, index, clock)

    await found.note(())
    await found.done()

    assert api.asked == ["goes"]
    assert clock.slept >= PATIENCE_SECONDS


async def test_what_is_there_and_was_not_told_of_is_waited_for() -> None:
    index, api = Index(KINDS), Names("late")
    clock = Clock(*[lambda: None] * 100, lambda: index.observe(KIND, resource("late")))
    found = sync(api, index, clock)

    await found.note(())
    await found.done()

    assert {*api.asked} == {"late"}
    assert clock.then == []
