"""Weighted and failover backends. Source: API document, WeightedBackend, FailoverBackend; Limits."""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge, Le

from edge_operator.api.wire import Described, Entity

Weight = Annotated[int, Ge(0), Le(10_000)]


class WeightedBackend(Entity):
    """Child backend ids and their weights."""

    backends: dict[str, int] = {}


class WeightedBackendCreate(Described):
    """`{"bkdhr_1": 90, "bkdtg_2": 10}`."""

    backends: dict[str, Weight] | None = None


class WeightedBackendUpdate(WeightedBackendCreate):
    """Assumed: `backends` left out stays as it is; some services empty it, so callers should always send it."""


class FailoverBackend(Entity):
    """Child backend ids, first choice first."""

    backends: list[str] = []


class FailoverBackendCreate(Described):
    """`["bkdhr_1", "bkdtg_2"]`."""

    backends: list[str] | None = None


class FailoverBackendUpdate(FailoverBackendCreate):
    """Assumed: `backends` left out stays as it is."""
