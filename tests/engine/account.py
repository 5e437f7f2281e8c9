"""A remote object as a value: what a service would return, and what the operations of a plan make of it."""

from __future__ import annotations

import copy
import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import UnionType
from typing import Any, Union, get_args, get_origin

from derive.specs import merge
from doubles.world import key_pair
from edge_operator.api.wire import Ref, SentAs, Wire
from edge_operator.declare import Body, Issued, Kind, SecretKeyRef
from edge_operator.derive import samples
from edge_operator.engine import plan, references, state
from edge_operator.engine.operations import (
    Claim,
    Create,
    Delete,
    DeleteModule,
    KeyPair,
    KeyRequest,
    Operation,
    Path,
    Plan,
    Publish,
    PutModule,
    Read,
    Update,
)
from edge_operator.engine.project import Bindings
from edge_operator.engine.state import Desired, Identity, Published, Recorded, Sight, stamp
from edge_operator.kinds import KINDS

NOW = datetime(2026, 1, 1, tzinfo=UTC)
IDENTITY = Identity("cluster-1", "default", "example", "uid-1", b"digest key")


@functools.cache
def _manifests(name: str) -> list[dict[str, Any]]:
    return samples.manifests(KINDS[name])


def wanted(kind: Kind[Any], change: Mapping[str, Any] | None = None, identity: Identity = IDENTITY) -> Desired:
    """The kind's example with a merge patch on it, every pointer resolved."""
    manifests = _manifests(kind.name)
    spec = kind.spec.model_validate(merge(manifests[-1]["spec"], change or {}))
    held = {m["metadata"]["name"]: m["stringData"] for m in manifests[:-1] if m["kind"] == "Secret"}
    named = [p.named for p in references.pointers(spec) if p.named]
    values: dict[SecretKeyRef, str] = {
        ref: held.get(ref.name, {}).get(ref.key, f"value of {ref.name}/{ref.key}")
        for ref in references.secret_keys(spec)
    }
    ids = {(k, n): f"{KINDS[k].api.prefix}{n}" for k, n in named}
    return state.desired(kind, spec, identity, Bindings(ids, values))


# What a service returns ----------------------------------------------------------------------


def echo(shape: type[Wire], body: Mapping[str, Any], *, generous: bool = False) -> Body:
    """A body in the form of an answer: references as objects, secrets left out, the rest filled in by the service.

    `generous`: what was left open is filled with anything at all, where the shape has a place for it.
    """
    out: Body = {}
    for name, info in shape.model_fields.items():
        sent = next((m.name for m in info.metadata if isinstance(m, SentAs)), name)
        if not info.repr:
            continue
        if body.get(sent) is not None:
            out[name] = _answered(info.annotation, body[sent], generous=generous)
        elif generous:
            out[name] = _anything(info.annotation)
        else:
            out[name] = _plain(info.get_default(call_default_factory=True)) if not info.is_required() else None
    return out


def _answered(annotation: Any, value: Any, *, generous: bool) -> Any:
    inner = _wire(annotation)
    if inner is Ref:
        refs = [
            {"id": v, "uri": f"https://api.example.com/{v}"} for v in ([value] if isinstance(value, str) else value)
        ]
        return refs[0] if isinstance(value, str) else refs
    if inner is not None and isinstance(value, Mapping):
        return echo(inner, value, generous=generous)
    return copy.deepcopy(value)


def _anything(annotation: Any) -> Any:
    """A value that fits the annotation and is not its default."""
    inner = _wire(annotation)
    if inner is not None:
        some = {"id": "bkdhr_service", "uri": ""} if inner is Ref else echo(inner, {}, generous=True)
        return [some] if get_origin(annotation) is list else some
    options = [a for a in (_members(annotation)) if a is not type(None)]
    origin = get_origin(options[0]) or options[0]
    return {str: "filled", int: 7, float: 0.5, bool: True, list: ["filled"], dict: {"filled": "in"}}[origin]


def _plain(value: Any) -> Any:
    return value.model_dump() if isinstance(value, Wire) else copy.deepcopy(value)


def _members(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def _wire(annotation: Any) -> type[Wire] | None:
    if isinstance(annotation, type) and issubclass(annotation, Wire):
        return annotation
    return next((w for a in get_args(annotation) if (w := _wire(a)) is not None), None)


# What operations make of it ------------------------------------------------------------------


@dataclass(frozen=True)
class Account:
    """One resource and its remote objects, in the state that a series of plans left them in."""

    kind: Kind[Any]
    recorded: Recorded = field(default_factory=Recorded)
    objects: Mapping[str, Body] = field(default_factory=dict)
    published: Published | None = None
    made: int = 0
    now: datetime = NOW
    lifetime: timedelta = timedelta(hours=24)
    """What the service gives a certificate that no end was asked for."""
    generous: bool = False

    @property
    def answer(self) -> Body:
        """The current object."""
        return self.objects[self.recorded.id or ""]

    def sight(self, **seen: Any) -> Sight:
        """The current object, looked at."""
        missing = self.recorded.id is not None and self.recorded.id not in self.objects
        answer = self.objects.get(self.recorded.id or "")
        return replace(Sight(answer=answer, missing=missing, published=self.published), **seen)

    def unseen(self, **seen: Any) -> Sight:
        """Nothing but the Secret, which is read with every pass."""
        return replace(Sight(published=self.published), **seen)

    def plan(self, desired: Desired, sight: Sight | None = None) -> Plan:
        """What a pass would do after a look at everything."""
        nonce = f"nonce{self.made + 1}"
        return plan.plan(desired, self.recorded, self.sight() if sight is None else sight, self.now, nonce)

    def reconciled(self, desired: Desired, sight: Sight | None = None) -> Account:
        """The account after one whole pass."""
        return self.apply(desired, self.plan(desired, sight))

    def apply(self, desired: Desired, todo: Plan) -> Account:
        """The account after all operations, and the status as a pass that went well leaves it."""
        after, key = self, None
        for operation in todo.operations:
            after, key = after._step(desired, operation, key)
        recorded = replace(after.recorded, applied=desired.applied, nonce=after.recorded.claim)
        return replace(after, recorded=replace(recorded, status=self._status(after, recorded)))

    def _status(self, after: Account, recorded: Recorded) -> dict[str, Any]:
        answer = after.objects.get(recorded.id or "", {})
        told = {"createdAt": "created_at", "validAfter": "valid_after", "validUntil": "valid_until"}
        return {name: answer[wire] for name, wire in told.items() if answer.get(wire)}

    def _step(self, desired: Desired, operation: Operation, key: KeyPair | None) -> tuple[Account, KeyPair | None]:
        match operation:
            case Claim(nonce):
                return replace(self, recorded=replace(self.recorded, claim=nonce, finalizer=True)), key
            case Create(body, path, wish, overlap):
                return self._created(body, path, wish, overlap)
            case Update(id_, body):
                shape = self.kind.api.read
                sent = echo(shape, {**_bare(shape, self.objects[id_]), **body}, generous=False)
                changed = {n: v for n, v in sent.items() if _sent_name(shape, n) in body}
                return self._with(id_, {**self.objects[id_], **changed}), key
            case PutModule(id_, segment, body):
                module = echo(self.kind.api.modules[segment].read, body, generous=self.generous)
                return self._with(id_, {**self.objects[id_], segment: module}), key
            case DeleteModule(id_, segment):
                return self._with(id_, {**self.objects[id_], segment: None}), key
            case Publish(_, kept, material):
                return self._publish(key or kept, material), key
            case Delete(id_):
                left = {k: v for k, v in self.objects.items() if k != id_}
                return replace(self, objects=left, recorded=self.recorded.without_previous(frozenset({id_}))), key
            case Read():
                return self, key
            case _:
                raise AssertionError(operation)

    def _created(
        self, body: Body, path: Path, wish: KeyRequest | KeyPair | None, overlap: timedelta
    ) -> tuple[Account, KeyPair | None]:
        id_ = f"{self.kind.api.prefix}{self.made + 1}"
        key = key_pair(wish.algorithm, wish.size, self.made) if isinstance(wish, KeyRequest) else wish
        answer = echo(self.kind.api.read, body, generous=self.generous) | dict(path)
        answer |= {"id": id_, "uri": f"https://api.example.com/{id_}", "created_at": stamp(self.now)}
        if isinstance(self.kind.lifecycle, Issued):
            answer["valid_after"] = body.get("valid_after") or stamp(self.now)
            answer["valid_until"] = body.get("valid_until") or stamp(self.now + self.lifetime)
            answer["public_key"] = key.public if key else body["public_key"]
        recorded = self.recorded.succeeded_by(id_, path, self.now + overlap)
        if self.recorded.id not in self.objects:
            recorded = recorded.without_previous(frozenset({self.recorded.id or ""}))
        return replace(self._with(id_, answer), recorded=recorded, made=self.made + 1), key

    def _with(self, id_: str, answer: Body) -> Account:
        return replace(self, objects={**self.objects, id_: answer})

    def _publish(self, key: KeyPair | None, material: Mapping[str, str]) -> Account:
        values = {"token": f"token of {self.recorded.id}", "id": "id", "certificate": "c", "public_key": "p"}
        values |= {"authority.public_key": "a", **material}
        if key is not None and key.private:
            values["private_key"] = key.private
        keys = frozenset(o.key for o in self.kind.outputs if values.get(o.source))
        return replace(self, published=Published(True, self.recorded.id, keys, key, values["token"]))


def _bare(shape: type[Wire], answer: Mapping[str, Any]) -> Body:
    return {_sent_name(shape, n): None for n in answer}


def _sent_name(shape: type[Wire], name: str) -> str:
    info = shape.model_fields.get(name)
    return next((m.name for m in (info.metadata if info else ()) if isinstance(m, SentAs)), name)


@functools.cache
def _example(name: str, change: str) -> tuple[Account, Desired]:
    desired = wanted(KINDS[name], json.loads(change))
    return Account(KINDS[name]).reconciled(desired), desired


def settled(kind: Kind[Any], change: Mapping[str, Any] | None = None, **account: Any) -> tuple[Account, Desired]:
    """The example, made and in sync."""
    if not account:
        return _example(kind.name, json.dumps(change or {}))
    desired = wanted(kind, change)
    return Account(kind, **account).reconciled(desired), desired


def drifting(account: Account, path: Iterable[str], value: Any) -> Account:
    """The same account after somebody changed one member of the current object."""
    answer = copy.deepcopy(account.answer)
    *outer, last = path
    at: Any = answer
    for step in outer:
        at = at[step]
    at[last] = value
    return account._with(account.recorded.id or "", answer)
