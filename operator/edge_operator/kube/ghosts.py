"""Finds resources in the index that are gone: a watch that expired lists again, and does not say what went meanwhile.

One request for each kind and round asks how many there are. Only where that differs are names listed, without bodies.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Protocol

from edge_operator.declare import Kind
from edge_operator.kube.client import JSON
from edge_operator.kube.cluster import path
from edge_operator.kube.errors import KubeError
from edge_operator.kube.index import Index, Key

_log = logging.getLogger(__name__)

SETTLE_SECONDS = 2.0
"""How long doubts are gathered: most resolve by themselves, as events that are under way."""
FAILED_SECONDS = 30.0


class Collections(Protocol):
    """What is needed of the API."""

    def pages(self, path: str, *, metadata_only: bool, **query: str) -> AsyncGenerator[JSON]:
        """The pages of a list."""


class Ghosts:
    """Tells `gone` of each resource, with its uid, that the index has and the cluster has not."""

    def __init__(
        self,
        api: Collections,
        kinds: Mapping[str, Kind[Any]],
        index: Index,
        gone: Callable[[Key, str], None],
        *,
        namespaces: Sequence[str] = (),
        interval_seconds: float,
        settle_seconds: float = SETTLE_SECONDS,
    ) -> None:
        self._api, self._kinds, self._index, self._gone = api, kinds, index, gone
        self._namespaces = tuple(namespaces) or ("",)
        self._interval, self._settle = interval_seconds, settle_seconds
        self._doubted: set[str] = set()
        self._news = asyncio.Event()

    def doubt(self, kinds: Iterable[str]) -> None:
        """Look at these kinds soon: a list was begun anew, or something waits for resources that may be gone."""
        self._doubted.update(kinds)
        if self._doubted:
            self._news.set()

    async def run(self) -> None:
        """Look at what is in doubt, and now and then at every kind, for ever."""
        while True:
            jitter = 1 + (random.random() - 0.5) / 5  # noqa: S311 - spreads load, guards nothing
            try:
                await asyncio.wait_for(self._news.wait(), self._interval * jitter)
            except TimeoutError:
                self._doubted.update(self._kinds)
            await asyncio.sleep(self._settle)
            self._news.clear()
            doubted, self._doubted = self._doubted, set()
            if failed := [kind for kind in self._kinds if kind in doubted and not await self._looked(kind)]:
                await asyncio.sleep(FAILED_SECONDS)
                self.doubt(failed)

    async def _looked(self, kind: str) -> bool:
        try:
            await self.look(kind)
        except KubeError as error:
            _log.info("whether %s went unnoticed is asked again later: %s", self._kinds[kind].plural, error)
            return False
        return True

    async def look(self, kind: str) -> None:
        """Forget what the index has of a kind and the cluster has not.

        A list shows how things stand when it begins or later, so nothing that was known before can be missing in it.

        Raises:
            KubeError: the API server does not answer, or refuses.
        """
        known = {entry.key: entry.uid for entry in self._index.entries(kind)}
        if not known or await self._count(kind) == len(known):
            return
        known = {entry.key: entry.uid for entry in self._index.entries(kind)}
        seen = await self._uids(kind)
        for key, uid in known.items():
            if uid not in seen:
                _log.info("%s went unnoticed, while its kind was not watched", "/".join(key))
                self._gone(key, uid)

    async def _count(self, kind: str) -> int | None:
        """How many there are, by a page of one; None where the API server does not say."""
        count = 0
        for namespace in self._namespaces:
            pages = self._api.pages(path(self._kinds[kind], namespace), metadata_only=True, limit="1")
            async with aclosing(pages):
                page = await anext(pages)
            meta = page["metadata"]
            rest = meta.get("remainingItemCount", None if meta.get("continue") else 0)
            if rest is None:
                return None
            count += len(page.get("items") or ()) + rest
        return count

    async def _uids(self, kind: str) -> set[str]:
        found: set[str] = set()
        for namespace in self._namespaces:
            async with aclosing(self._api.pages(path(self._kinds[kind], namespace), metadata_only=True)) as pages:
                async for page in pages:
                    found |= {item["metadata"]["uid"] for item in page.get("items") or ()}
        return found
