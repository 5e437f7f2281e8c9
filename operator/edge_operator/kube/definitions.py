"""Says whether the CRD of a kind is being removed, by a live read: then resources go and their objects stay."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from edge_operator.declare import GROUP, VERSION, Kind
from edge_operator.kube import errors, paths
from edge_operator.kube.client import KubeAPI

LONG_AGO = "0001-01-01T00:00:00Z"
"""Said of a CRD that is gone, or of which it is not known since when it goes."""


class Definitions:
    """Live reads that who asks at one time shares: an answer is good for those who asked before it was sent for."""

    def __init__(self, api: KubeAPI, monotonic: Callable[[], float], *, readable: bool = True) -> None:
        """`readable`: whether this account has the right to read CRDs, or is to ask discovery from the start."""
        self._api, self._monotonic, self._readable = api, monotonic, readable
        self._answers: dict[str, tuple[float, str | None]] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def removal(self, kind: Kind[Any]) -> str | None:
        """When the CRD's removal was asked for, in RFC 3339; None while nobody asked.

        Raises:
            KubeError: it cannot be told.
        """
        asked = self._monotonic()
        async with self._locks.setdefault(kind.crd, asyncio.Lock()):
            known = self._answers.get(kind.crd)
            if known is None or known[0] < asked:
                began = self._monotonic()
                known = self._answers[kind.crd] = (began, await self._read(kind))
            return known[1]

    async def _read(self, kind: Kind[Any]) -> str | None:
        if not self._readable:
            return await self._discover(kind)
        at = paths.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", name=kind.crd)
        try:
            found = await self._api.get(at, metadata_only=True)
        except errors.NotFound:
            return LONG_AGO
        except errors.Forbidden:
            return await self._discover(kind)
        removal: str | None = found["metadata"].get("deletionTimestamp")
        return removal

    async def _discover(self, kind: Kind[Any]) -> str | None:
        """The same by discovery, which every account may read, a moment later: a kind that goes offers no creation."""
        try:
            found = await self._api.get(f"/apis/{GROUP}/{VERSION}")
        except errors.NotFound:
            return LONG_AGO
        verbs = next((r["verbs"] for r in found.get("resources") or () if r["name"] == kind.plural), ())
        return None if "create" in verbs else LONG_AGO
