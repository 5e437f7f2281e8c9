"""Knows when the watches have told of everything that was there at the start.

Before that a reference that is not in the index may be there all the same, and so may a dependant: nobody acts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any

from edge_operator.declare import CustomResource
from edge_operator.kube import errors
from edge_operator.kube.client import KubeAPI
from edge_operator.kube.cluster import path
from edge_operator.kube.index import Key

_log = logging.getLogger(__name__)

LOOK_SECONDS = 0.05
PATIENCE_SECONDS = 2.0
"""When the watches have told nothing for so long, what is still expected is looked for by name: it may be gone."""


class InitialSync:
    """Call `note` before the watches begin, and await `done` before anything is acted upon."""

    def __init__(
        self,
        api: KubeAPI,
        kinds: Mapping[str, CustomResource[Any]],
        known: Callable[[Key], bool],
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._api, self._kinds, self._known, self._sleep = api, kinds, known, sleep
        self._expected: set[Key] = set()

    async def note(self, namespaces: tuple[str, ...]) -> None:
        """Note the names of all resources that there are; their bodies are not received."""
        for kind in self._kinds.values():
            for namespace in (namespaces if kind.namespaced else ()) or ("",):
                async with aclosing(self._api.pages(path(kind, namespace), metadata_only=True)) as pages:
                    async for page in pages:
                        metas = (item["metadata"] for item in page.get("items") or ())
                        self._expected |= {(kind.name, meta.get("namespace", ""), meta["name"]) for meta in metas}

    async def done(self) -> None:
        """Wait until they are all known."""
        waited = 0.0
        while self._expected:
            before = len(self._expected)
            self._expected = {key for key in self._expected if not self._known(key)}
            waited = waited + LOOK_SECONDS if len(self._expected) == before else 0.0
            if waited >= PATIENCE_SECONDS:
                waited = 0.0
                await self._look_for_the_rest()
            elif self._expected:
                await self._sleep(LOOK_SECONDS)

    async def _look_for_the_rest(self) -> None:
        for key in sorted(self._expected):
            kind, namespace, name = key
            try:
                await self._api.get(path(self._kinds[kind], namespace, name), metadata_only=True)
            except errors.NotFound:
                self._expected.discard(key)
            except errors.KubeError as error:
                _log.warning("waiting for the watches to tell of %s: %s", "/".join(key), error)
                return
