"""The operations of one collection, over the catalog: the same code for all of them, typed or raw."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar, cast

import httpx
from pydantic import ValidationError

from edge_operator.api import address, errors
from edge_operator.api.caller import Call, Caller
from edge_operator.api.exchange import Answer
from edge_operator.api.wire import Body, Collection, Empty, Module, Wire

A = TypeVar("A")
"""What an item becomes: its wire model, or the plain JSON object."""
M = TypeVar("M")
"""What a module becomes."""

Payload = Body | Mapping[str, Any]
"""A body: a write model, of which only what was set is sent (None as null), or a JSON object, sent as it is."""

PAGES_LIMIT: Final = 50_000
"""A list of more pages is taken for one without an end."""

_REASONS: Final = 3


class CollectionClient(Generic[A, M]):
    """One collection's operations. Those that it does not have raise Misuse.

    Ids of parents are named as in the collection's path: `client.https_routes.get("edghtsrt_1", edge_id="edghts_1")`.
    `raw` has the same operations with plain JSON objects as answers.
    """

    def __init__(
        self,
        caller: Caller,
        base: address.BaseURL,
        collection: Collection[Any],
        read: Callable[[type[Wire], Answer], Any],
    ) -> None:
        self.collection = collection
        self._caller = caller
        self._base = base
        self._read = read

    def __repr__(self) -> str:
        return f"<{self.collection.name} at {self._base}>"

    @property
    def raw(self) -> CollectionClient[Answer, Answer]:
        """The same collection; answers are JSON objects in neutral names, checked for an id and nothing else."""
        return CollectionClient(self._caller, self._base, self.collection, as_object)

    async def create(self, body: Payload, **path_ids: str) -> A:
        """POST. An answer that gives no id is OutcomeUnknown: the resource may exist."""
        self._require("create")
        self._check(body, self.collection.create)
        call = self._call("POST", self._path(path_ids), body)
        return self._item(call, await self._caller.call(call))

    async def get(self, item_id: str, /, **path_ids: str) -> A:
        self._require("get")
        call = self._call("GET", self._item_path(item_id, path_ids))
        return self._item(call, await self._caller.call(call))

    async def update(self, item_id: str, body: Payload, /, **path_ids: str) -> A:
        """PATCH: members that are left out stay. Where the service answers without a body, the resource is read.

        Source: API document, Event destinations: the answer of its update is not shown.
        """
        self._require("update")
        self._check(body, self.collection.update)
        call = self._call("PATCH", self._item_path(item_id, path_ids), body)
        answer = await self._caller.call(call)
        return await self.get(item_id, **path_ids) if answer is None else self._item(call, answer)

    async def delete(self, item_id: str, /, **path_ids: str) -> None:
        """DELETE. One that is gone already raises NotFound; whether that is good news is for the caller to say."""
        self._require("delete")
        await self._caller.call(self._call("DELETE", self._item_path(item_id, path_ids), reads=False))

    async def command(self, item_id: str, command: str, /, **path_ids: str) -> None:
        """POST of an agent command, never repeated on an unknown outcome. Source: API document, Agent command rules."""
        if command not in self.collection.commands:
            raise self._no(f"command {command!r}", self.collection.commands)
        path = f"{self._item_path(item_id, path_ids)}/{command}"
        await self._caller.call(self._call("POST", path, Empty(), reads=False))

    async def put_module(self, item_id: str, segment: str, body: Payload, /, **path_ids: str) -> M:
        """PUT: replaces the whole module."""
        module = self._module(segment)
        self._check(body, module.write)
        call = self._call("PUT", self._module_path(item_id, module, path_ids), body, module=segment)
        answer = await self._caller.call(call)
        return await self.get_module(item_id, segment, **path_ids) if answer is None else self._part(call, answer)

    async def get_module(self, item_id: str, segment: str, /, **path_ids: str) -> M:
        """GET. Assumed: a module that is not set raises NotFound."""
        module = self._module(segment)
        call = self._call("GET", self._module_path(item_id, module, path_ids), module=segment)
        return self._part(call, await self._caller.call(call))

    async def delete_module(self, item_id: str, segment: str, /, **path_ids: str) -> None:
        module = self._module(segment)
        path = self._module_path(item_id, module, path_ids)
        await self._caller.call(self._call("DELETE", path, module=segment, reads=False))

    def pages(
        self, *, limit: int | None = None, before_id: str | None = None, **path_ids: str
    ) -> AsyncIterator[Sequence[A]]:
        """Every page, in the service's order, each read when it is asked for.

        Assumed: `limit` (items in a page, 1 to 100) and `before_id` (only what is older); neither is sent unless given.

        Raises:
            ForeignAddress: the service links to a page on another origin.
            PagingLoop: the service links to a page that was read already.
        """
        self._require("list")
        query = {name: value for name, value in (("limit", limit), ("before_id", before_id)) if value is not None}
        path = self._path(path_ids)
        return self._pages(self._base.at(path, query), path)

    async def list(
        self, *, limit: int | None = None, before_id: str | None = None, **path_ids: str
    ) -> AsyncIterator[A]:
        """Every item of every page; arguments and errors as for `pages`."""
        async for page in self.pages(limit=limit, before_id=before_id, **path_ids):
            for item in page:
                yield item

    async def _pages(self, url: httpx.URL, path: str) -> AsyncIterator[Sequence[A]]:
        seen = {url}
        for _ in range(PAGES_LIMIT):
            call = self._call("GET", path, url=url)
            answer = self._answered(call, await self._caller.call(call))
            yield self._items(call, answer)
            link = answer.get("next_page_uri")
            if link in (None, ""):
                return
            if not isinstance(link, str):
                raise self._unreadable(call, "next_page_uri is neither a string nor null")
            url = self._base.follow(link, url)
            if url in seen:
                raise errors.PagingLoop("next_page_uri leads back to a page that was read", method="GET", path=path)
            seen.add(url)
        raise errors.PagingLoop(f"has more than {PAGES_LIMIT} pages", method="GET", path=path)

    def _items(self, call: Call, answer: Answer) -> Sequence[A]:
        found = answer.get(self.collection.items)
        if not isinstance(found, list):
            raise self._unreadable(call, f"the list has no array {self.collection.items!r}")
        return tuple(self._item(call, item) for item in found)

    def _item(self, call: Call, answer: Any) -> A:
        item = self._answered(call, answer)
        if not address.is_segment(item.get("id")):
            raise self._unreadable(call, "the answer has no id")
        if not isinstance(item.get("metadata"), str | None):  # it may hold the owner's mark
            raise self._unreadable(call, "metadata is neither a string nor null")
        return cast(A, self._typed(call, self.collection.read, item))

    def _part(self, call: Call, answer: Answer | None) -> M:
        module = self.collection.modules[cast(str, call.module)]
        return cast(M, self._typed(call, module.read, self._answered(call, answer)))

    def _answered(self, call: Call, answer: Any) -> Answer:
        if not isinstance(answer, dict):
            raise self._unreadable(call, "the answer is empty" if answer is None else "an item is not a JSON object")
        return answer

    def _typed(self, call: Call, model: type[Wire], answer: Answer) -> Any:
        try:
            return self._read(model, answer)
        except ValidationError as error:
            reasons = error.errors(include_url=False, include_context=False, include_input=False)[:_REASONS]
            found = "; ".join(f"{'.'.join(map(str, reason['loc']))}: {reason['msg']}" for reason in reasons)
            raise self._unreadable(call, f"the answer does not fit: {found}") from error

    def _unreadable(self, call: Call, why: str) -> errors.Unreadable:
        return errors.Unreadable(why, method=call.method, path=call.path)

    def _call(
        self,
        method: str,
        path: str,
        body: Payload | None = None,
        *,
        url: httpx.URL | None = None,
        module: str | None = None,
        reads: bool = True,
    ) -> Call:
        return Call(
            method=method,
            url=url or self._base.at(path),
            path=path,
            body=body,
            collection=self.collection,
            module=module,
            reads=reads,
        )

    def _path(self, path_ids: Mapping[str, str]) -> str:
        return address.expand(self.collection.path, path_ids)

    def _item_path(self, item_id: str, path_ids: Mapping[str, str]) -> str:
        return f"{self._path(path_ids)}/{address.segment(item_id)}"

    def _module_path(self, item_id: str, module: Module, path_ids: Mapping[str, str]) -> str:
        return f"{self._item_path(item_id, path_ids)}/{module.segment}"

    def _module(self, name: str) -> Module:
        if name not in self.collection.modules:
            raise self._no(f"module {name!r}", self.collection.modules)
        return self.collection.modules[name]

    def _require(self, verb: str) -> None:
        if verb not in self.collection.verbs:
            raise self._no(verb, sorted(self.collection.verbs))

    def _no(self, what: str, known: Any) -> errors.Misuse:
        return errors.Misuse(f"{self.collection.name} has no {what}; it has: {', '.join(known) or 'none'}")

    def _check(self, body: Payload, model: type[Body] | None) -> None:
        if isinstance(body, Body) and model is not None and not isinstance(body, model):
            raise errors.Misuse(f"{self.collection.name}: {type(body).__name__} should be {model.__name__}")
        if not isinstance(body, Body | Mapping):
            raise errors.Misuse(f"{self.collection.name}: {type(body).__name__} should be a write model or a mapping")


def as_model(model: type[Wire], answer: Answer) -> Wire:
    return model.model_validate(answer)


def as_object(_model: type[Wire], answer: Answer) -> Answer:
    return answer
