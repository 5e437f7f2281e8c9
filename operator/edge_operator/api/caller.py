"""Calls the service: translates names, awaits the gate, repeats by `retry`, reports each attempt."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from edge_operator.api import errors, retry
from edge_operator.api.exchange import Answer, Exchange, Outgoing
from edge_operator.api.profiles import Profile
from edge_operator.api.wire import Body, Collection

Gate = Callable[[str, str], Awaitable[None]]
"""Awaited with method and path before every attempt, repetitions included. What it raises ends the call, unchanged."""


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One attempt that has ended, for metrics. `number` counts from 1; `error` is None where it succeeded."""

    method: str
    path: str
    collection: str | None
    number: int
    seconds: float
    error: errors.APIError | None


Observer = Callable[[Attempt], None]


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call in neutral names. `reads` is whether a success has to be a JSON object where it has a body."""

    method: str
    url: httpx.URL
    path: str
    body: Body | Mapping[str, Any] | None = None
    collection: Collection[Any] | None = None
    module: str | None = None
    reads: bool = True


@dataclass(frozen=True, kw_only=True)
class Caller:
    """What all collections of one client share. `sleep` waits some seconds; `jitter` gives a number from 0 to 1."""

    exchange: Exchange
    profile: Profile
    policy: retry.RetryPolicy
    gate: Gate | None
    observer: Observer | None
    sleep: Callable[[float], Awaitable[None]]
    jitter: Callable[[], float]

    async def call(self, call: Call) -> Answer | None:
        """The answer in neutral names, None for a success without a body.

        Raises:
            APIError: what the last attempt ended in.
            Misuse: the body cannot be written as JSON.
        """
        outgoing = self._outgoing(call)
        number = 0
        while True:
            number += 1
            if self.gate is not None:
                await self.gate(call.method, call.path)
            try:
                answer = await self._attempt(call, outgoing, number)
            except errors.APIError as error:
                delay = retry.delay_seconds(call.method, number, error, self.policy, self.jitter())
                if delay is None:
                    raise
            else:
                return self._decoded(call, answer)
            await self.sleep(delay)

    async def _attempt(self, call: Call, outgoing: Outgoing, number: int) -> Answer | None:
        started = time.monotonic()
        try:
            answer = await self.exchange.once(outgoing)
        except errors.APIError as error:
            self._report(call, number, started, error)
            raise
        self._report(call, number, started, None)
        return answer

    def _report(self, call: Call, number: int, started: float, error: errors.APIError | None) -> None:
        if self.observer is None:
            return
        self.observer(
            Attempt(
                method=call.method,
                path=call.path,
                collection=call.collection.name if call.collection else None,
                number=number,
                seconds=time.monotonic() - started,
                error=error,
            )
        )

    def _outgoing(self, call: Call) -> Outgoing:
        body = call.body
        if isinstance(body, Body):
            body = body.model_dump(mode="json", exclude_unset=True)
        content: bytes | None = None
        if body is not None:
            wire = self.profile.encode(call.collection, body, module=call.module)
            content = _json(wire, call)
        return Outgoing(method=call.method, url=call.url, path=call.path, content=content, body=body, reads=call.reads)

    def _decoded(self, call: Call, answer: Answer | None) -> Answer | None:
        if answer is None:
            return None
        neutral: Answer = self.profile.decode(call.collection, answer, module=call.module)
        return neutral


def _json(body: Any, call: Call) -> bytes:
    plain = body if isinstance(body, dict) else dict(body)
    try:
        text = json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        # The reason would quote the value, and the value may be a secret.
        raise errors.Misuse(f"{call.method} {call.path}: the body cannot be written as JSON") from error
