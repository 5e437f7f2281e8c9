"""The Kubernetes API in plain dicts: a method for each verb, our own errors, pages and watches as async iterators.

It stands on the official client's configuration and REST layer, below the typed models, which take a third more CPU for
each request.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import aiohttp

from edge_operator.kube import errors, transport
from edge_operator.kube.credentials import Credentials
from edge_operator.kube.transport import Call, Request

JSON = dict[str, Any]
PLAIN = "application/json"
METADATA_ITEM = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
BUSY_ATTEMPTS = 4
"""How often a call is sent in all while the API server answers 429, which means that it did nothing."""


@dataclass(frozen=True)
class Options:
    """How the API server is talked to."""

    request_timeout_seconds: float = 15.0
    """The longest that a call takes in all, waiting for a connection and for a busy API server included."""
    connect_timeout_seconds: float = 5.0
    """The longest that opening a connection takes."""
    max_connections: int = 50
    """Watches count: one connection each."""
    page_size: int = 500
    """Objects in one page of a list."""
    watch_seconds: int = 290
    """How long the API server is asked to keep a watch open."""
    watch_silence_seconds: float = 120.0
    """A watch in which nothing, not even a bookmark, arrives for so long is ended on our side."""


@dataclass(frozen=True)
class Listing:
    """All objects of a collection, and the version of the collection that they are."""

    items: Sequence[JSON]
    resource_version: str


class KubeAPI:
    """The API of one cluster. Bodies and tokens are never logged and are in no message."""

    def __init__(
        self,
        credentials: Credentials,
        options: Options | None = None,
        *,
        on_call: Callable[[Call], None] = lambda _: None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.credentials = credentials
        self.options = options or Options()
        self._sleep = sleep
        self._transport = transport.Transport(credentials, self.options.max_connections, on_call)
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=self.options.connect_timeout_seconds)

    @classmethod
    async def connect(
        cls,
        kubeconfig: Path | None = None,
        options: Options | None = None,
        *,
        on_call: Callable[[Call], None] = lambda _: None,
    ) -> Self:
        """A client by the named kubeconfig, else the pod's service account, else `KUBECONFIG` or `~/.kube/config`.

        No request is made yet.

        Raises:
            NotConfigured: there is none of them, or it is unusable.
        """
        return cls(await Credentials.load(kubeconfig), options, on_call=on_call)

    async def close(self) -> None:
        """Close all connections; watches end."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def get(self, path: str, *, metadata_only: bool = False) -> JSON:
        """The object at a path.

        Raises:
            NotFound: there is none.
        """
        return await self._call(Request("GET", path, accept=METADATA_ITEM if metadata_only else PLAIN))

    async def pages(self, path: str, *, metadata_only: bool = False, **query: str) -> AsyncGenerator[JSON]:
        """The pages of a collection, each a List object; a watch can begin at the resourceVersion of any.

        Further parameters go into the query, for example `labelSelector="a=b"`.

        Raises:
            Gone: the API server forgot where the list began; start again.
        """
        accept = METADATA_LIST if metadata_only else PLAIN
        query = {"limit": str(self.options.page_size), **query}
        while True:
            page = await self._call(Request("GET", path, query=query, accept=accept))
            yield page
            token = page["metadata"].get("continue")
            if not token:
                return
            query = {**query, "continue": token}

    async def list(self, path: str, *, metadata_only: bool = False, **query: str) -> Listing:
        """A whole collection, read in pages; begun anew once, should the API server forget where it began."""
        try:
            return await self._list(path, metadata_only, query)
        except errors.Gone:
            return await self._list(path, metadata_only, query)

    async def create(self, path: str, body: JSON) -> JSON:
        """The object that was created in a collection.

        Raises:
            AlreadyExists: there is one of that name.
        """
        return await self._call(Request("POST", path, body))

    async def replace(self, path: str, body: JSON, *, subresource: str = "") -> JSON:
        """The object after it was replaced as a whole; `metadata.resourceVersion` guards it.

        Raises:
            Conflict: somebody wrote since that version.
        """
        return await self._call(Request("PUT", _below(path, subresource), body))

    async def merge_patch(self, path: str, body: JSON, *, subresource: str = "") -> JSON:
        """The object after a merge patch; null removes a key; `metadata.resourceVersion` in the patch guards it.

        Raises:
            Conflict: somebody wrote since that version.
        """
        return await self._call(Request("PATCH", _below(path, subresource), body, content_type=MERGE_PATCH))

    async def json_patch(self, path: str, operations: Sequence[JSON], *, subresource: str = "") -> JSON:
        """The object after a JSON patch.

        Raises:
            Invalid: a `test` operation failed, or the result breaks a rule.
        """
        return await self._call(Request("PATCH", _below(path, subresource), [*operations], content_type=JSON_PATCH))

    async def delete(self, path: str, *, uid: str = "", resource_version: str = "", propagation: str = "") -> JSON:
        """What the API server says of a deletion: the object, while finalizers keep it, or a Status.

        Raises:
            Conflict: the object has another uid or version than asked for.
            NotFound: there is none.
        """
        guards = {"uid": uid, "resourceVersion": resource_version}
        wishes = {"preconditions": {k: v for k, v in guards.items() if v}, "propagationPolicy": propagation}
        return await self._call(Request("DELETE", path, {k: v for k, v in wishes.items() if v} or None))

    async def watch(
        self, path: str, *, resource_version: str, metadata_only: bool = False, **query: str
    ) -> AsyncGenerator[tuple[str, JSON]]:
        """Events after a version, as (type, object); the types are ADDED, MODIFIED, DELETED and BOOKMARK.

        It ends when the API server ends it or falls silent: go on from the last version seen. Close it by `aclosing`.

        Raises:
            Gone: the version is too old; list again.
            KubeError: anything else that ended it, a broken connection included.
        """
        request = Request("GET", path, accept=METADATA_ITEM if metadata_only else PLAIN, query={
            **query, "watch": "true", "allowWatchBookmarks": "true",
            "resourceVersion": resource_version, "timeoutSeconds": str(self.options.watch_seconds),
        })  # fmt: skip
        answer = await self._open(request)
        try:
            with transport.translated(request):
                async for line in transport.lines(answer):
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        status = event["object"]
                        raise errors.from_status(f"WATCH {path}", int(status.get("code") or 500), status)
                    yield event["type"], event["object"]
        except errors.Unreachable as error:
            if not isinstance(error.__cause__, aiohttp.SocketTimeoutError):
                raise
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise errors.Unreachable(f"WATCH {path}: an event is not what it should be", sent=True) from error
        finally:
            answer.close()

    async def _open(self, request: Request) -> transport.Answer:
        """The answer to a watch request, whose events are still to be read."""
        silence = aiohttp.ClientTimeout(
            total=None,
            sock_connect=self.options.connect_timeout_seconds,
            sock_read=self.options.watch_silence_seconds,
        )
        try:
            async with asyncio.timeout(self.options.request_timeout_seconds):
                return await self._transport.send(request, silence)
        except TimeoutError as error:
            raise self._overdue(request) from error

    async def _list(self, path: str, metadata_only: bool, query: dict[str, str]) -> Listing:
        items: list[JSON] = []
        version = ""
        async with aclosing(self.pages(path, metadata_only=metadata_only, **query)) as pages:
            async for page in pages:
                items += page.get("items") or []
                version = page["metadata"]["resourceVersion"]
        return Listing(items, version)

    async def _call(self, request: Request) -> JSON:
        """The decoded answer to one call, which takes no longer than the time-out in all."""
        try:
            async with asyncio.timeout(self.options.request_timeout_seconds):
                answer = await self._patiently(request)
                with transport.translated(request):
                    result = json.loads(await answer.read())
        except TimeoutError as error:
            raise self._overdue(request) from error
        except ValueError as error:
            raise errors.Unreachable(f"{request}: the answer is not JSON", sent=True) from error
        if not isinstance(result, dict):
            raise errors.Unreachable(f"{request}: the answer is no JSON object", sent=True)
        return result

    async def _patiently(self, request: Request) -> transport.Answer:
        """The answer to a request that is sent again as long as the API server is too busy for it, within reason."""
        for _ in range(BUSY_ATTEMPTS - 1):
            try:
                return await self._transport.send(request, self._timeout)
            except errors.TooManyRequests as busy:
                if busy.retry_after_seconds > self.options.request_timeout_seconds / 2:
                    raise
                await self._sleep(busy.retry_after_seconds)
        return await self._transport.send(request, self._timeout)

    def _overdue(self, request: Request) -> errors.Unreachable:
        return errors.Unreachable(f"{request}: no answer in {self.options.request_timeout_seconds:g} s", sent=True)


def _below(path: str, subresource: str) -> str:
    return f"{path}/{subresource}" if subresource else path
