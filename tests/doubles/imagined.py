"""A remote object as a value: what plans do to it, without a service. For properties of the engine alone."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from pydantic import BaseModel

from doubles.world import START, key_pair
from edge_operator.api.wire import Ref, SentAs, Wire
from edge_operator.declare import Kind, SecretKeyRef
from edge_operator.derive import samples
from edge_operator.engine import plan as planning
from edge_operator.engine import project, references, state
from edge_operator.engine.operations import (
    Claim,
    Create,
    Delete,
    DeleteModule,
    KeyPair,
    Operation,
    Plan,
    Publish,
    PutModule,
    Read,
    Update,
)
from edge_operator.engine.state import Desired, Identity, Published, Recorded, Sight

IDENTITY = Identity("cluster-1", "default", "example", "uid-1", b"k" * 32)
LATER = START + timedelta(hours=1)


def desired(kind: Kind[Any], spec: Mapping[str, Any] | None = None) -> Desired:
    """The kind's example, or that spec, with every pointer resolved to something."""
    model = kind.spec.model_validate(samples.spec(kind) if spec is None else spec)
    ids = {p.named: f"{p.mark.ids[0]}{p.named[1]}" for p in references.pointers(model) if p.named}
    values = {ref: _value(kind, ref) for ref in references.secret_keys(model)}
    return state.desired(kind, model, IDENTITY, project.Bindings(ids, values))


def _value(kind: Kind[Any], ref: SecretKeyRef) -> str:
    for need in samples.manifests(kind)[:-1]:
        if need["kind"] == "Secret" and need["metadata"]["name"] == ref.name:
            return str(need["stringData"].get(ref.key, f"value of {ref.key}"))
    return f"value of {ref.key}"


@dataclass(frozen=True)
class Imagined:
    """A resource and its remote object after some plans. `sent` is the object in the form that requests have."""

    kind: Kind[Any]
    sent: Mapping[str, Any] | None = None
    recorded: Recorded = field(default_factory=Recorded)
    published: Published | None = None
    done: tuple[Operation, ...] = ()

    def plan(self, want: Desired, *, seen: bool, now: Any = LATER, nonce: str = "fresh") -> Plan:
        """The plan towards `want`; `seen` is whether the object was looked at."""
        answer = self.answer if seen and self.sent is not None else None
        sight = Sight(answer=answer, missing=seen and self.sent is None and self.recorded.id is not None)
        return planning.plan(want, self.recorded, replace(sight, published=self.published), now, nonce)

    def after(self, want: Desired, todo: Plan) -> Imagined:
        """All of it carried out without a fault, and recorded."""
        now = self
        for operation in todo.operations:
            now = now._after(want, operation)
        recorded = replace(now.recorded, applied=dict(want.applied), nonce=now.recorded.claim)
        return replace(now, recorded=recorded, done=todo.operations)

    @property
    def answer(self) -> dict[str, Any]:
        """The object as the service returns it."""
        return {"id": self.recorded.id or "?", **answered(self.kind.api.read, self.sent or {})}

    def _after(self, want: Desired, operation: Operation) -> Imagined:
        sent = dict(self.sent or {})
        match operation:
            case Claim(nonce):
                return replace(self, recorded=replace(self.recorded, claim=nonce, finalizer=True))
            case Create(body, path):
                number = len(self.recorded.previous) + int((self.recorded.id or "_1").rsplit("_", 1)[1]) + 1
                id_ = f"{self.kind.api.prefix}{number}"
                validity = {"valid_after": state.stamp(LATER), "valid_until": "2027-01-01T00:00:00Z"}
                extra = validity if "valid_after" in self.kind.api.read.model_fields else {}
                return replace(self, sent={**extra, **body}, recorded=self.recorded.succeeded_by(id_, path, LATER))
            case Update(_, body, _):
                return replace(self, sent={**sent, **body})
            case PutModule(_, segment, body, _):
                return replace(self, sent={**sent, segment: body})
            case DeleteModule(_, segment, _):
                return replace(self, sent={**sent, segment: None})
            case Delete(id_, _):
                return replace(self, recorded=self.recorded.without_previous(frozenset({id_})))
            case Publish():
                keys = frozenset(o.key for o in self.kind.outputs if not o.source.startswith("previous."))
                pair = KeyPair(key_pair().public, "private")
                return replace(self, published=Published(True, self.recorded.id, keys, pair, "a token"))
            case Read():
                return self
        raise AssertionError(operation)


def answered(shape: type[Wire], sent: Mapping[str, Any]) -> dict[str, Any]:
    """What was sent, in the form that answers have: `backend_id: x` becomes `backend: {id: x, uri: ...}`."""
    out: dict[str, Any] = {}
    for name, info in shape.model_fields.items():
        wire = next((mark.name for mark in info.metadata if isinstance(mark, SentAs)), name)
        if wire in sent:
            out[name] = _answered(info.annotation, sent[wire])
    return out


def _answered(annotation: Any, value: Any) -> Any:
    inner = _wire(annotation)
    if value is None or inner is None:
        return value
    if isinstance(value, list):
        return [_answered(inner, item) for item in value]
    if issubclass(inner, Ref):
        return {"id": value, "uri": f"https://api.test/{value}"}
    return answered(inner, value)


def _wire(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for arg in typing.get_args(annotation) if (found := _wire(arg))), None)
