"""Something between the operator and the service that turns answers into others."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx

from doubles.rig import Rig
from doubles.wire import Handled

MISSING = object()
"""In place of a value: the member is left out."""
ODD = [None, 7, ["x"], {"x": 1}, MISSING]

Change = Callable[[str, dict[str, Any]], Any]
"""Gets "POST /edges/tls" and the answer; returns the answer to give, a whole response, or raises."""


def named(value: Any) -> str:
    """The name of a test with such a value."""
    return "missing" if value is MISSING else repr(value)


@contextlib.contextmanager
def answering(rig: Rig, change: Change) -> Iterator[None]:
    """Every successful answer of the service goes through `change`, for this process or until the end of the block."""
    exchange, inner = rig.process.client._exchange, rig.process.client._exchange._http

    async def handle(request: httpx.Request) -> httpx.Response:
        answer = await rig.wire.handle_async_request(request)
        if not answer.is_success:
            return answer
        body = json.loads(answer.content) if answer.content else {}
        found = change(f"{request.method} {request.url.path}", body)
        if isinstance(found, Exception):
            raise found
        return found if isinstance(found, httpx.Response) else httpx.Response(200, json=found, request=request)

    exchange._http = httpx.AsyncClient(transport=Handled(handle))
    try:
        yield
    finally:
        exchange._http = inner


def with_member(answer: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    """The answer with another value for a member, or without it."""
    rest = {k: v for k, v in answer.items() if k != name}
    return rest if value is MISSING else {**rest, name: value}
