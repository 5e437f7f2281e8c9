"""kopf, as we use it: one `on.event` for each kind, which hands the object on and returns at once.

No other handler: kopf's own bookkeeping on objects costs writes, and it writes after the handler, which would lose an
id. It gives discovery, watches with resume and reconnection, credentials and their renewal, and the life cycle.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import kopf

from edge_operator.declare import GROUP, VERSION, CustomResource
from edge_operator.kube.credentials import Credentials
from edge_operator.ports import Resource

_WATCHER = "watcher for "
"""How the names of the tasks begin in which kopf watches."""
OnEvent = Callable[[CustomResource[Any], str | None, Resource], None]


def registry(
    kinds: Mapping[str, CustomResource[Any]], credentials: Credentials, on_event: OnEvent
) -> kopf.OperatorRegistry:
    """What kopf is to watch, and with whose credentials."""
    found = kopf.OperatorRegistry()

    async def login(**_: Any) -> kopf.ConnectionInfo:
        return await credentials.kopf_connection()

    async def seen(*, event: Any, param: Any = None, **_: Any) -> None:
        on_event(param, event["type"], event["object"])

    kopf.on.login(registry=found)(login)
    for kind in kinds.values():
        kopf.on.event(GROUP, VERSION, kind.plural, registry=found, param=kind, id=f"see-{kind.plural}")(seen)
    return found


class _NoDiffBase(kopf.DiffBaseStorage):
    """Remembers nothing and extracts nothing: without change handlers nobody compares, and copies cost."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        return kopf.BodyEssence()

    def fetch(self, **_: Any) -> None:
        return None

    def store(self, **_: Any) -> None:
        pass


class _NoProgress(kopf.ProgressStorage):
    """Remembers nothing: without change handlers there is no progress."""

    def fetch(self, **_: Any) -> None:
        return None

    def store(self, **_: Any) -> None:
        pass

    def purge(self, **_: Any) -> None:
        pass

    def touch(self, **_: Any) -> None:
        pass

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        return essence


def settings() -> kopf.OperatorSettings:
    """Kopf without what costs and is not used: no posting, no peering, no scanning, no storages, short idle workers."""
    out = kopf.OperatorSettings()
    out.posting.enabled = False
    out.peering.standalone = True
    out.scanning.disabled = True
    out.persistence.diffbase_storage = _NoDiffBase()
    out.persistence.progress_storage = _NoProgress()
    out.queueing.idle_timeout = 0.5
    out.queueing.exit_timeout = 1.0
    out.process.ultimate_exiting_timeout = 30
    return out


class WatchFailed(Exception):
    """kopf gave a watch up, and would go on without it."""


async def guard(interval_seconds: float = 2.0) -> None:
    """Look after the tasks in which kopf watches, for ever.

    Raises:
        WatchFailed: one ended with an error. Nobody would hear of those resources again.
    """
    watchers = set[asyncio.Task[Any]]()
    while True:
        watchers |= {task for task in asyncio.all_tasks() if task.get_name().startswith(_WATCHER)}
        for task in [task for task in watchers if task.done()]:
            watchers.discard(task)
            if not task.cancelled() and (error := task.exception()) is not None:
                raise WatchFailed(f"{task.get_name()}: {error!r}") from error
        await asyncio.sleep(interval_seconds)


async def watch(
    found: kopf.OperatorRegistry, namespaces: tuple[str, ...], *, stop: asyncio.Event, ready: asyncio.Event
) -> None:
    """Watch until `stop` is set. `ready` is set once the watches are about to begin."""
    await kopf.operator(
        registry=found,
        settings=settings(),
        standalone=True,
        clusterwide=not namespaces,
        namespaces=namespaces,
        stop_flag=stop,
        ready_flag=ready,
    )
