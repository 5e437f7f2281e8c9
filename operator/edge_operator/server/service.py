"""Carries out one operation inside one transaction: the same few functions for every collection and module.

Source: API document, Endpoints, Edge update rule; Conventions, 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from edge_operator.api.catalog import COLLECTIONS
from edge_operator.api.wire import Module
from edge_operator.server import agents, problems
from edge_operator.server.keys import Keyring
from edge_operator.server.operations import Operation
from edge_operator.server.paging import Page
from edge_operator.server.present import View
from edge_operator.server.problems import Problem, not_found, shown
from edge_operator.server.rules.every import RULES
from edge_operator.server.rules.rule import Context, Doc, Place, Rules, Sent
from edge_operator.server.store import Stored
from edge_operator.server.world import World, timestamp

_ROUTES: Final = "https_routes"
_EDGES_WITH_ROUTES: Final = "https_edges"


@dataclass(frozen=True)
class Call:
    """A request that has passed every check that needs no transaction."""

    operation: Operation
    ids: tuple[str, ...]
    context: Context
    view: View
    keyring: Keyring
    sent: Sent
    page: Page
    """Which part of a list is asked for; not used by other operations."""
    unlisted: frozenset[str] = frozenset()
    """Ids that a lagging list does not show yet."""


def slow_work(operation: Operation, world: World, sent: Sent, place: Place) -> Callable[[], Any] | None:
    """What a create does before its transaction begins, None where there is nothing: making a key takes a second."""
    prepare = RULES[operation.collection.name].prepare if operation.verb == "create" else None
    return (lambda: prepare(world, sent, place)) if prepare else None


def carry_out(call: Call) -> dict[str, Any] | None:
    """Does what was asked and returns the answer's JSON, None where there is none.

    Raises:
        Problem: a refusal; the caller undoes the transaction.
    """
    operation = call.operation
    match operation.verb:
        case "create":
            return _create(call)
        case "list":
            return _list(call)
        case "command":
            context = call.context
            agents.obey(context.tx, context.ids, context.now, _item(call), operation.command or "")
            return None
        case "put" | "get" | "delete" | "update":
            return _on_module(call, operation.module) if operation.module else _on_item(call)
    raise AssertionError(operation.verb)


def _create(call: Call) -> dict[str, Any]:
    collection = call.operation.collection
    rules = RULES[collection.name]
    parent = _parent(call)
    context = replace(call.context, item_id=call.context.ids.new(collection.prefix))
    doc: Doc = {
        "id": context.item_id,
        "created_at": timestamp(context.now),
        "description": "",
        "metadata": "",
        **rules.defaults,
        **({"edge_id": parent} if parent else {}),
    }
    _give(context, rules, doc, call.sent)
    hidden = rules.complete(context, doc) if rules.complete else None
    _settle(call, rules, Stored(doc["id"], collection.name, doc, hidden, parent), new=True)
    answer = _present(call, doc)
    if rules.token:
        answer["token"] = context.ids.token()
        call.keyring.add(context.tx, answer["token"], doc["id"])
    return answer


def _list(call: Call) -> dict[str, Any]:
    collection, page = call.operation.collection, call.page
    found = call.context.tx.page(collection.name, page.before, page.limit + 1 + len(call.unlisted))
    visible = [item for item in found if item.id not in call.unlisted]
    shown_items = visible[: page.limit]
    address = f"{call.view.base}{collection.path}"
    more = page.link(address, shown_items[-1].id) if len(visible) > page.limit else None
    return {
        collection.items: [_present(call, item.doc) for item in shown_items],
        "uri": address,
        "next_page_uri": more,
    }


def _on_item(call: Call) -> dict[str, Any] | None:
    item = _item(call)
    match call.operation.verb:
        case "get":
            return _present(call, item.doc)
        case "update":
            rules = RULES[item.kind]
            doc = dict(item.doc)
            _give(replace(call.context, item_id=item.id), rules, doc, call.sent)
            _settle(call, rules, replace(item, doc=doc))
            return _present(call, doc)
        case _:
            user = call.context.tx.used_by(item.id)
            if user is not None:
                raise Problem(problems.IN_USE, f"{item.id} is in use by {user}; delete or change that first")
            call.context.tx.delete(item.id)
            return None


def _on_module(call: Call, module: Module) -> dict[str, Any] | None:
    item, name = _item(call), module.segment
    rules = RULES[item.kind]
    match call.operation.verb:
        case "get":
            if item.doc.get(name) is None:
                raise not_found(f"{item.id} has no {name} module")
            return call.view.module(module.read, item.doc[name])
        case "put":
            context = replace(call.context, item_id=item.id)
            doc = {**item.doc, name: rules.fields[name](context, call.sent, context.place)}
            _settle(call, rules, replace(item, doc=doc))
            return call.view.module(module.read, doc[name])
        case _:
            if item.doc.get(name) is not None:
                _settle(call, rules, replace(item, doc={**item.doc, name: None}))
            return None


def _parent(call: Call) -> str | None:
    """The id of the edge in the path, which must exist."""
    if call.operation.collection.name != _ROUTES:
        return None
    edge_id = call.ids[0]
    if call.context.tx.get(_EDGES_WITH_ROUTES, edge_id) is None:
        raise not_found(f"no HTTPS edge has the id {shown(edge_id)}")
    return edge_id


def _item(call: Call) -> Stored:
    parent = _parent(call)
    item = call.context.tx.get(call.operation.collection.name, call.ids[-1])
    if item is None or item.parent != parent:
        where = call.operation.collection.path.format(edge_id=parent)
        raise not_found(f"no resource at {where} has the id {shown(call.ids[-1])}")
    return item


def _give(context: Context, rules: Rules, doc: Doc, sent: Mapping[str, Any]) -> None:
    """Writes each given member into the document, as its rule wants it stored."""
    for name, value in sent.items():
        rule = rules.fields.get(name)
        doc[name] = rule(context, value, context.place / name) if rule else value


def _settle(call: Call, rules: Rules, item: Stored, *, new: bool = False) -> None:
    """Checks the document as a whole and stores it."""
    tx = call.context.tx
    if rules.check:
        rules.check(call.context, item.doc)
    claims = list(rules.claims(item.doc))
    for claimed in claims:
        owner = tx.claimed_by(claimed.claim)
        if owner is not None and owner != item.id:
            where = replace(call.context.place, path=claimed.place)
            raise Problem(problems.TAKEN, f"{where}: {shown(claimed.shown)} is taken by {owner}")
    write = tx.insert if new else tx.replace
    write(item, [claimed.claim for claimed in claims], sorted(set(rules.uses(item.doc))))


def _present(call: Call, doc: Doc) -> dict[str, Any]:
    collection = call.operation.collection
    derived = RULES[collection.name].derived
    answer = call.view.resource(collection, {**doc, **derived(call.context, doc)} if derived else doc)
    if collection.name == _EDGES_WITH_ROUTES:
        routes = (item for item in call.context.tx.children(doc["id"]) if item.id not in call.unlisted)
        answer["routes"] = [call.view.resource(COLLECTIONS[_ROUTES], item.doc) for item in routes]
    return answer
