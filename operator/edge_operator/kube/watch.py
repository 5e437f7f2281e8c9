"""Watches objects by their metadata alone: Secrets come and go and change, and their content is never received.

What is kept is the resourceVersion of each, so that after a gap a new list tells the differences only.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Protocol

from edge_operator.kube import errors, paths

_log = logging.getLogger(__name__)
JSON = dict[str, Any]
LOUD_FAILURES = 3
"""After so many failures in a row it is worth a warning, once."""
OnChange = Callable[[str, str, Mapping[str, Any] | None], None]
"""Told of namespace, name and metadata of what appeared or changed, and None of what is gone. It must not wait."""


class Collections(Protocol):
    """What is needed of the API."""

    def pages(self, path: str, *, metadata_only: bool, **query: str) -> AsyncGenerator[JSON]:
        """The pages of a list."""

    def watch(
        self, path: str, *, resource_version: str, metadata_only: bool, **query: str
    ) -> AsyncGenerator[tuple[str, JSON]]:
        """Events after a version."""


@dataclass(frozen=True)
class Pauses:
    """How long to wait before another attempt, in seconds; each with jitter of up to a half."""

    first_seconds: float = 0.5
    """After a broken connection; it doubles with each that follows."""
    ceiling_seconds: float = 30.0
    forbidden_seconds: float = 60.0
    """After RBAC said no."""
    useful_seconds: float = 5.0
    """A watch that ends sooner, and without an event, counts as broken."""


@dataclass
class _Scope:
    """One namespace, or the whole cluster."""

    namespace: str
    path: str
    known: dict[tuple[str, str], str] = field(default_factory=dict)
    """The resourceVersion of each object by (namespace, name)."""
    version: str = ""
    """Where to watch from; empty when a list is needed."""
    failures: int = 0
    refused: bool = False
    listed: asyncio.Event = field(default_factory=asyncio.Event)


class MetadataWatch:
    """Tells `on_change` of every object of a collection, by a list and a watch for each namespace, or one for all."""

    def __init__(
        self,
        api: Collections,
        on_change: OnChange,
        *,
        namespaces: Sequence[str] = (),
        group: str = "",
        version: str = "v1",
        plural: str = "secrets",
        selector: str = "",
        pauses: Pauses | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        source: random.Random | None = None,
    ) -> None:
        self._api = api
        self._on_change = on_change
        self._plural = plural
        self._query = {"labelSelector": selector} if selector else {}
        self._pauses = pauses or Pauses()
        self._monotonic = monotonic
        self._sleep = sleep
        self._random = source or random.Random()  # noqa: S311  # jitter
        self._scopes = [
            _Scope(namespace, paths.resource(group, version, plural, namespace)) for namespace in namespaces or ("",)
        ]

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            for scope in self._scopes:
                group.create_task(self._follow(scope))

    async def synced(self) -> None:
        """Wait until everything that may be read has been told once."""
        for scope in self._scopes:
            await scope.listed.wait()

    def known(self, namespace: str, name: str) -> str | None:
        """The resourceVersion of an object as it was last seen; None if there was none."""
        return next((v for s in self._scopes if (v := s.known.get((namespace, name))) is not None), None)

    async def _follow(self, scope: _Scope) -> None:
        while True:
            try:
                if not scope.version:
                    await self._list(scope)
                if not await self._watch(scope):
                    await self._pause(scope)
            except errors.Gone:
                scope.version = ""
                await self._pause(scope)
            except errors.Forbidden as error:
                await self._wait_for_rights(scope, error)
            except errors.KubeError as error:
                level = logging.WARNING if scope.failures == LOUD_FAILURES else logging.DEBUG
                _log.log(level, "%s cannot be watched %s for now: %s", self._plural, _where(scope), error)
                await self._pause(scope)

    async def _list(self, scope: _Scope) -> None:
        """Tell what differs from what is known, page by page, and then what is gone."""
        seen: set[tuple[str, str]] = set()
        version = ""
        async with aclosing(self._api.pages(scope.path, metadata_only=True, **self._query)) as pages:
            async for page in pages:
                version = page["metadata"]["resourceVersion"]
                for item in page.get("items") or ():
                    seen.add(self._note(scope, item["metadata"]))
        for key in scope.known.keys() - seen:
            self._note_gone(scope, key)
        scope.version = version
        if scope.refused:
            scope.refused = False
            _log.info("%s can be watched %s now", self._plural, _where(scope))
        scope.listed.set()

    async def _watch(self, scope: _Scope) -> bool:
        """Tell what changes, until the watch ends; whether it was of use, so that the next may begin at once."""
        began, useful = self._monotonic(), False
        watch = self._api.watch(scope.path, resource_version=scope.version, metadata_only=True, **self._query)
        try:
            async with aclosing(watch) as events:
                async for type_, item in events:
                    metadata = item["metadata"]
                    if type_ == "DELETED":
                        self._note_gone(scope, (metadata.get("namespace", ""), metadata["name"]))
                    elif type_ != "BOOKMARK":
                        self._note(scope, metadata)
                    scope.version = metadata["resourceVersion"]
                    useful = True
        finally:
            useful = useful or self._monotonic() - began >= self._pauses.useful_seconds
            if useful:
                scope.failures = 0
        return useful

    def _note(self, scope: _Scope, metadata: JSON) -> tuple[str, str]:
        key = (metadata.get("namespace", ""), metadata["name"])
        if scope.known.get(key) != metadata["resourceVersion"]:
            scope.known[key] = metadata["resourceVersion"]
            self._tell(key, metadata)
        return key

    def _note_gone(self, scope: _Scope, key: tuple[str, str]) -> None:
        if scope.known.pop(key, None) is not None:
            self._tell(key, None)

    def _tell(self, key: tuple[str, str], metadata: JSON | None) -> None:
        try:
            self._on_change(*key, metadata)
        except Exception as error:  # noqa: BLE001  # one listener's defect must not blind all others
            where = "".join(traceback.format_tb(error.__traceback__))
            _log.error("a change of %s %s/%s raised %s, at\n%s", self._plural, *key, type(error).__name__, where)

    async def _wait_for_rights(self, scope: _Scope, error: errors.Forbidden) -> None:
        """Say once that we may not look, and look again now and then. What was known stays known: no is not gone."""
        if not scope.refused:
            scope.refused = True
            _log.warning("%s cannot be watched %s, and changes go unnoticed: %s", self._plural, _where(scope), error)
        scope.version = ""
        scope.listed.set()
        await self._sleep(self._pauses.forbidden_seconds * self._random.uniform(1, 1.5))

    async def _pause(self, scope: _Scope) -> None:
        scope.failures += 1
        seconds = self._pauses.first_seconds * 2.0 ** min(scope.failures - 1, 16)
        await self._sleep(min(seconds, self._pauses.ceiling_seconds) * self._random.uniform(0.5, 1))


def _where(scope: _Scope) -> str:
    return f"in namespace {scope.namespace}" if scope.namespace else "in the whole cluster"
