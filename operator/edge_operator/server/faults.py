"""Faults that tests ask for: answers that come late, wrong, or never, and lists that lag.

A fault is a value with an optional match (`method`, `path` as a regular expression, `skip`, `count`, `probability`);
several may act on one request. `before` means before anything was done, `after` means after the change was committed.
"""

from __future__ import annotations

import random
import re
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from email.utils import format_datetime
from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from edge_operator.server.world import World

_REMEMBERED_BIRTHS: Final = 50_000
_NEEDS: Final = {"latency": ("seconds",), "status": ("status",), "page_size": ("size",)}


class Fault(BaseModel):
    """One fault, as `PUT /_control/faults` takes it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    kind: Literal["latency", "status", "cut", "null", "garbage", "lag", "page_size"]
    """latency: `seconds` more. status: answers `status`. cut: the connection ends without an answer. null: `members` of
    the answer are null. garbage: the answer is broken JSON. lag: lists leave out what was created in the last `seconds`
    or since the last `lists` lists. page_size: pages of at most `size`."""
    when: Literal["before", "after"] = "before"
    """For status and cut: whether the request was carried out."""
    seconds: Annotated[float, Field(ge=0)] | None = None
    lists: Annotated[int, Field(ge=1)] | None = None
    status: Annotated[int, Field(ge=400, le=599)] | None = None
    retry_after: str | None = None
    """Value of a Retry-After header, sent as it is: seconds, or nonsense."""
    retry_after_date_seconds: float | None = None
    """Sends a Retry-After header with the date that is so many seconds ahead."""
    members: tuple[str, ...] = ("id",)
    size: Annotated[int, Field(ge=1, le=100)] | None = None
    method: str | None = None
    path: str | None = None
    """A regular expression, searched for in the path."""
    skip: Annotated[int, Field(ge=0)] = 0
    """So many matching requests pass first."""
    count: Annotated[int, Field(ge=1)] | None = None
    """The fault ends after so many matching requests; None for never."""
    probability: Annotated[float, Field(gt=0, le=1)] = 1.0
    seed: int = 0
    """Where probability is below 1: the same seed makes the same choices."""

    @field_validator("path")
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
        try:
            re.compile(value or "")
        except re.error as error:
            raise ValueError(f"is not a regular expression: {error}") from None
        return value

    @model_validator(mode="after")
    def _complete(self) -> Self:
        for name in _NEEDS.get(self.kind, ()):
            if getattr(self, name) is None:
                raise ValueError(f"{self.kind} needs {name}")
        if self.kind == "lag" and (self.seconds is None) == (self.lists is None):
            raise ValueError("lag needs one of seconds and lists")
        return self

    def matches(self, method: str, path: str) -> bool:
        return (self.method or method) == method and (self.path is None or re.search(self.path, path) is not None)

    def retry_after_header(self, world: World) -> dict[str, str]:
        if self.retry_after_date_seconds is not None:
            moment = world.now() + timedelta(seconds=self.retry_after_date_seconds)
            return {"retry-after": format_datetime(moment, usegmt=True)}
        return {} if self.retry_after is None else {"retry-after": self.retry_after}


@dataclass
class _Armed:
    """A fault with what it has seen so far."""

    fault: Fault
    dice: random.Random
    matched: int = 0
    acted: int = 0

    def acts(self, method: str, path: str) -> bool:
        fault = self.fault
        if not fault.matches(method, path) or (fault.count is not None and self.acted >= fault.count):
            return False
        self.matched += 1
        if self.matched <= fault.skip or (fault.probability < 1 and self.dice.random() >= fault.probability):
            return False
        self.acted += 1
        return True


@dataclass(frozen=True)
class Active:
    """The faults that act on one request."""

    faults: tuple[Fault, ...] = ()

    def of(self, kind: str, when: str | None = None) -> Iterator[Fault]:
        return (f for f in self.faults if f.kind == kind and (when is None or f.when == when))

    @property
    def latency_seconds(self) -> float:
        return sum(fault.seconds or 0.0 for fault in self.of("latency"))

    def page_size(self, otherwise: int) -> int:
        return min((fault.size or otherwise for fault in self.of("page_size")), default=otherwise)

    @property
    def names(self) -> str | None:
        return "+".join(fault.kind for fault in self.faults) or None


@dataclass(frozen=True)
class _Birth:
    id: str
    at: float
    lists: int


@dataclass
class Faults:
    """The faults in force, and the memory that lagging lists need."""

    world: World
    _armed: list[_Armed] = field(default_factory=list)
    _births: dict[str, deque[_Birth]] = field(default_factory=dict)
    _lists: Counter[str] = field(default_factory=Counter)

    def put(self, faults: list[Fault]) -> None:
        """Replaces all faults."""
        self._armed = [_Armed(fault, random.Random(fault.seed)) for fault in faults]  # noqa: S311 - dice, not secrets

    def state(self) -> list[dict[str, object]]:
        return [
            {**armed.fault.model_dump(mode="json", exclude_defaults=True), "acted": armed.acted}
            for armed in self._armed
        ]

    def active(self, method: str, path: str) -> Active:
        """What acts on this request; counts are used up by it."""
        if not self._armed:
            return Active()
        return Active(tuple(armed.fault for armed in self._armed if armed.acts(method, path)))

    def born(self, collection: str, identifier: str) -> None:
        births = self._births.setdefault(collection, deque(maxlen=_REMEMBERED_BIRTHS))
        births.append(_Birth(identifier, self.world.monotonic(), self._lists[collection]))

    def listing(self, collection: str, active: Active, *, first_page: bool) -> frozenset[str]:
        """The ids that this list does not show yet. A list of several pages counts once."""
        if first_page:
            self._lists[collection] += 1
        now, number = self.world.monotonic(), self._lists[collection]
        births = self._births.get(collection, ())
        return frozenset(
            birth.id
            for fault in active.of("lag")
            for birth in births
            if (fault.seconds is not None and now - birth.at < fault.seconds)
            or (fault.lists is not None and number - birth.lists <= fault.lists)
        )
