"""Carries out a plan, operation by operation. Nothing is decided here; what was done so far is kept in `Progress`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, assert_never

from edge_operator.declare import Body, Issued, Token
from edge_operator.engine import compare, project, ssh, state
from edge_operator.engine import token as tokens
from edge_operator.engine.operations import (
    SEARCHED,
    Claim,
    Create,
    Delete,
    DeleteModule,
    Disown,
    KeyPair,
    KeyRequest,
    Missing,
    Operation,
    Publish,
    PutModule,
    Read,
    Release,
    Restart,
    Stalled,
    TakeOver,
    Unsupported,
    Update,
    Waiting,
)
from edge_operator.engine.reasons import Stalls, Waits
from edge_operator.engine.references import pointers
from edge_operator.engine.state import OVERDUE, Desired, Published, Recorded, Sight
from edge_operator.kinds import KINDS
from edge_operator.ports import Pass, Resource


@dataclass
class Progress:
    """What is so after the operations done so far; status is written from it, however the pass ends."""

    resource: Resource
    recorded: Recorded
    answer: Body | None = field(default=None, repr=False)
    key: KeyPair | None = field(default=None, repr=False)
    fresh: bool = False
    """Whether the object was created or found in this pass, so that its id and nonce are news."""
    authority: str = ""
    """The signing authority's public key, known before anything is signed."""
    secret: str | None = None
    published: Published | None = None
    """The output Secret as it was seen, or written since."""
    duplicates: frozenset[str] = frozenset()
    """Further objects of the resource, which go."""
    strangers: frozenset[str] = frozenset()
    """What the status named and is not the resource's."""
    done: list[Operation] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.before = self.recorded

    def believe(self, recorded: Recorded) -> None:
        """Go on with what of the record is this resource's."""
        self.strangers = self.recorded.ids - recorded.ids
        self.recorded = self.before = recorded

    def see(self, sight: Sight, wanted: Desired, now: datetime) -> None:
        """Take in what was looked at. An object that was found becomes the one to go on with."""
        self.answer, self.published = sight.answer, sight.published
        self.duplicates = frozenset(id_ for id_, _ in sight.duplicates)
        if sight.found:
            token = isinstance(wanted.kind.lifecycle, Token)
            span = tokens.leave(wanted, self.recorded, sight) if token else timedelta()
            end = now + span if span else OVERDUE
            self.recorded = replace(self.recorded.succeeded_by(sight.found, wanted.path, end), id=None)
            self.fresh = True

    def drop(self, id_: str) -> None:
        """The object is deleted; if it was the one at hand, all is as before."""
        if (self.answer or {}).get("id") == id_:
            self.recorded = replace(self.before, claim=self.recorded.claim, finalizer=self.recorded.finalizer)
            self.answer, self.fresh = None, False
            self.done = [o for o in self.done if not isinstance(o, Create)]
        self.recorded = self.recorded.without_previous(frozenset({id_}))
        self.before = self.before.without_previous(frozenset({id_}))

    @property
    def changed(self) -> bool:
        """Whether anything was written to the service or the cluster."""
        return any(not isinstance(o, Read) for o in self.done)

    def sent(self, wanted: Desired) -> dict[str, str]:
        """Digests of the fields that were sent, by their names in the spec."""
        wires: set[str] = set()
        for operation in self.done:
            match operation:
                case Create():
                    return dict(wanted.applied)
                case Update(body=body):
                    wires |= body.keys()
                case PutModule(segment=segment):
                    wires.add(segment)
        names = {f.alias for f in project.fields(type(wanted.spec)) if f.wire in wires}
        return {alias: digest for alias, digest in wanted.applied.items() if alias in names}


async def execute(  # noqa: C901, PLR0912 - one case for each operation, in one place
    line: Pass, desired: Desired | None, operation: Operation, progress: Progress
) -> None:
    """Carry out one operation. `desired` is None while deleting."""
    match operation:
        case Claim(nonce):
            if progress.recorded.foreign is not None:
                await _forget(line, progress)
            progress.resource = await line.cluster.claim(line.kind, progress.resource, nonce)
            progress.recorded = replace(progress.recorded, claim=nonce, finalizer=True)
            line.memory.claim_seen[nonce] = line.world.monotonic()
        case Create():
            if desired is None:
                raise RuntimeError("nothing is created while deleting")
            await _create(line, desired, operation, progress)
        case Update(id_, body, path):
            progress.answer = await line.remote.update(line.kind, id_, path, body)
        case PutModule(id_, segment, body, path):
            module = await line.remote.put_module(line.kind, id_, path, segment, body)
            progress.answer = {**(progress.answer or {}), segment: module}
        case DeleteModule(id_, segment, path):
            await _remove_module(line, id_, segment, path, progress)
        case Read(id_, path):
            progress.answer = await line.remote.read(line.kind, id_, path)
            if progress.answer is None:
                raise Missing(id_)
        case Publish(key=key):
            progress.key = progress.key or key
            await _publish(line, desired, operation, progress)
        case Delete(id_, path):
            if progress.fresh and (progress.answer or {}).get("id") == id_:
                progress.drop(id_)  # before the call: what is to go must not be recorded, whatever becomes of the call
            await line.remote.delete(line.kind, id_, path)
            progress.drop(id_)
        case Disown(secret):
            await line.cluster.disown(line.kind, progress.resource, secret)
        case TakeOver(secret):
            seen = progress.published
            progress.published = await line.cluster.take_over(line.kind, progress.resource, secret, seen)
        case Release():
            await line.cluster.release(line.kind, progress.resource)
        case unreachable:
            assert_never(unreachable)
    if not isinstance(operation, Claim | Publish | Disown | TakeOver | Release | Read):
        line.memory.wrote_at = line.world.monotonic()
    progress.done.append(operation)


async def _forget(line: Pass, progress: Progress) -> None:
    """Clear what a copied or restored status says of another resource's objects: under a claim of its own this one
    would be taken at its word.

    Raises:
        Restart: there was something to clear.
    """
    if patch := {name: None for name in state.REMEMBERED if name in progress.recorded.status}:
        await line.cluster.write_status(line.kind, progress.resource, patch)
        raise Restart


async def _create(line: Pass, desired: Desired, operation: Create, progress: Progress) -> None:
    """POST under the claim that was taken. A predecessor is recorded with its successor, in one status write."""
    before, nonce = progress.recorded, progress.recorded.claim
    if nonce is None:
        raise RuntimeError("a POST needs a claim")
    body, lifecycle = operation.body, line.kind.lifecycle
    if isinstance(lifecycle, Issued):
        progress.authority = await _authority_key(line, desired, lifecycle.authority)
    if operation.key is not None:
        key = operation.key
        progress.key = await line.world.key_pair(key) if isinstance(key, KeyRequest) else key
        body = {**body, "public_key": progress.key.public}
    # Whatever was seen before: an object that is made now can be in no list of then.
    line.memory.settled, line.memory.claim_seen = None, {nonce: line.world.monotonic()}
    try:
        answer = await line.remote.create(line.kind, operation.path, body)
    except (Waiting, Stalled, Unsupported) as refusal:
        if isinstance(refusal, Stalled) or not refusal.unsettled:
            line.memory.settled = nonce
        elif isinstance(refusal, Unsupported) and line.memory.denied != nonce:
            line.memory.denied = nonce
            raise Waiting(Waits.RECOVERING, SEARCHED, after_seconds=0, unsettled=True) from refusal
        raise
    progress.answer, progress.fresh = answer, True
    line.memory.made = (answer["id"], line.world.monotonic())
    progress.recorded = before.succeeded_by(answer["id"], operation.path, line.world.now() + operation.overlap)


async def _remove_module(line: Pass, id_: str, segment: str, path: Any, progress: Progress) -> None:
    """DELETE the module; where the service does not offer that, leave it switched off."""
    try:
        await line.remote.delete_module(line.kind, id_, path, segment)
    except Unsupported:
        answer = await line.remote.read(line.kind, id_, path)
        if answer is None:
            raise Missing(id_) from None
        module = compare.held(line.kind, answer).get(segment)
        if module is not None and module.get("enabled"):
            progress.answer = await line.remote.update(line.kind, id_, path, {segment: {**module, "enabled": False}})
        return
    progress.answer = {**(progress.answer or {}), segment: None}


async def _publish(line: Pass, desired: Desired | None, operation: Publish, progress: Progress) -> None:
    """Write the outputs of the object at hand to the Secret."""
    if desired is None:
        raise RuntimeError("nothing is published while deleting")
    match line.kind.lifecycle:
        case Issued():
            values = await _certificate(line, desired, line.kind.lifecycle, progress)
        case Token():
            values = {**(progress.answer or {}), **operation.material}
            if not isinstance(values.get("token"), str) or not values["token"]:
                await _discard(line, desired, progress)
                raise Waiting(Waits.SERVICE_UNAVAILABLE, "the service returned no token; another one is asked for")
        case _:
            raise RuntimeError(f"{line.kind.name} has nothing to publish")
    data = {o.key: _ended(values[o.source], o.source) for o in line.kind.outputs if values.get(o.source) is not None}
    try:
        progress.published = await line.cluster.publish(
            line.kind, progress.resource, operation.secret, values["id"], data, progress.published
        )
    except Waiting:  # no Secret can be made: a token that nobody can read must not be left behind
        await _discard(line, desired, progress)
        raise
    progress.secret = operation.secret


async def _certificate(line: Pass, desired: Desired, lifecycle: Issued, progress: Progress) -> dict[str, Any]:
    """Values to publish, verified; a certificate that is not what was asked for is deleted and not published."""
    answer = progress.answer
    if answer is None:
        raise RuntimeError("no certificate at hand")
    public = progress.key.public if progress.key else desired.plain["public_key"]
    authority = progress.authority or await _authority_key(line, desired, lifecycle.authority)
    wish = ssh.Wish(
        host=lifecycle.host,
        public_key=public,
        principals=desired.plain.get("principals") or [],
        authority=authority,
        critical_options=desired.plain.get("critical_options"),
        extensions=desired.plain.get("extensions"),
    )
    try:
        ssh.verify(answer.get("certificate"), wish, line.world.now())
    except Stalled:
        await _discard(line, desired, progress)
        raise
    return {
        "id": answer["id"],
        "certificate": answer["certificate"],
        "public_key": public,
        "private_key": progress.key.private if progress.key else None,
        "authority.public_key": authority,
    }


async def _discard(line: Pass, desired: Desired, progress: Progress) -> None:
    """Delete what was made in this pass and cannot be used. An adopted object, or an older one, stays."""
    id_ = (progress.answer or {}).get("id")
    if id_ is None or not progress.fresh or desired.adopted:
        return
    progress.drop(id_)  # before the call: it must not be recorded, whatever becomes of the call
    await line.remote.delete(line.kind, id_, desired.path)
    line.memory.settled = progress.recorded.claim


_LINES = frozenset({"certificate", "public_key", "private_key", "authority.public_key"})


def _ended(text: str, source: str) -> str:
    """The value as its users expect it: what OpenSSH reads ends with a line end, a token does not."""
    return f"{text.rstrip()}\n" if source in _LINES else text


async def _authority_key(line: Pass, desired: Desired, field_name: str) -> str:
    """The authority's public key: from the status of the resource that is named, else from the service."""
    at = next(f for f in project.fields(type(desired.spec)) if f.name == field_name)
    pointer = next(p for p in pointers(desired.spec) if p.at == f"spec.{at.alias}")
    if pointer.named is not None:
        key = (await line.cluster.status_of(line.identity.namespace, pointer.named)).get("publicKey")
    else:
        signer = await line.remote.read(KINDS[pointer.mark.kinds[0]], str(pointer.ref.id), {})
        if signer is None:
            raise Stalled(Stalls.INVALID_REFERENCE, f"{pointer.at}: the service has no authority {pointer.ref.id}")
        key = signer.get("public_key")
    if not isinstance(key, str) or not key:
        raise Waiting(Waits.REFERENCE_NOT_READY, f"{pointer.at}: the authority's public key is not known yet")
    return key
