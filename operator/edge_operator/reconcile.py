"""The straight line from a custom resource to its remote object. Read this file first.

    parse → resolve → verify → observe → plan → execute → report → status

Reading happens in `_resolve`, `verify` and `observe`, deciding in `engine`, writing in `execute` and one status patch.
`ports` is all that the line knows of the outside. A resource in sync goes the same way and ends with nothing to write.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pydantic import ValidationError

from edge_operator.deletion import delete
from edge_operator.door import Stopping
from edge_operator.engine import plan, project, references, state
from edge_operator.engine.conditions import Verdict
from edge_operator.engine.healing import Held
from edge_operator.engine.operations import (
    Claim,
    Create,
    Missing,
    Plan,
    Read,
    Restart,
    Stalled,
    Unsupported,
    Waiting,
    shown,
)
from edge_operator.engine.reasons import Ready, Stalls, Waits
from edge_operator.engine.references import Named
from edge_operator.engine.state import Desired, Sight
from edge_operator.execute import Progress, execute
from edge_operator.observe import observe
from edge_operator.policies import Policies
from edge_operator.ports import Outcome, Pass, Resource, Snapshot
from edge_operator.report import WOKEN, held, report, verdict_of
from edge_operator.verify import verify


async def reconcile(line: Pass, resource: Resource, snapshot: Snapshot | None = None) -> Outcome:
    """Take one resource down the line once.

    `snapshot` is the remote object as a list showed it, where a list is why the resource is looked at.

    Raises:
        Restart: the resource changed meanwhile; begin again from a live read.
        NotLeading: this replica may not act, or stops and has done nothing that is to be recorded.
    """
    if resource["metadata"].get("deletionTimestamp"):
        return await delete(line, resource)
    progress = Progress(resource, state.recorded(resource, line.identity.key))
    annotations = resource["metadata"].get("annotations") or {}
    if annotations.get(state.PAUSED) == "true":
        return await report(line, progress, held(progress.recorded), None, None)
    wanted: Desired | None = None
    todo: Plan | None = None
    try:
        wanted = await _resolve(line, _parse(line, resource))
        own, snapshot = await verify(line, resource, progress.recorded, snapshot)
        progress.believe(own)
        sight = await observe(line, wanted, progress.recorded, resource, snapshot)
        progress.see(sight, wanted, line.world.now())
        todo, left = _plan(line, wanted, progress, sight)
        if sight.missing:
            progress.recorded = replace(progress.recorded, id=None, applied={})
        await _carry_out(line, wanted, todo, progress)
        todo = _next_look(wanted, todo, progress)
        verdict = _success(wanted, todo) if left is None else _slowed(left)
    except Stopping:
        if not (progress.fresh or any(not isinstance(o, Claim | Read) for o in progress.done)):
            raise
        left_over = Waiting(Waits.PROGRESSING, "the operator stops; what is left is done after its next start")
        return await report(line, progress, verdict_of(left_over, progress), wanted, todo, left_over)
    except (Waiting, Stalled, Unsupported) as ended:
        if (pause := _patience(line, progress, ended)) > 0:
            return Outcome(ready=False, reason=str(verdict_of(ended, progress).reason), after_seconds=pause)
        return await report(line, progress, verdict_of(ended, progress), wanted, todo, ended)
    except Missing as gone:
        if line.memory.doubted:
            denied = Waiting(Waits.SERVICE_UNAVAILABLE, f"the service returns the object and then denies it: {gone}")
            return await report(line, progress, verdict_of(denied, progress), wanted, todo, denied)
        # Only a read can say so for sure; the next pass makes it, and nothing was changed on this word alone.
        line.memory.doubted = True
        return Outcome(ready=False, reason=f"Missing {gone}", again=True)
    line.memory.doubted, line.memory.waiting_since = False, None
    outcome = await report(line, progress, verdict, wanted, todo)
    return outcome if left is None else _no_later(line, outcome, left)


@dataclass(frozen=True)
class Proposal:
    """What a pass would do, and the id of the object that a new one takes the place of and that goes afterwards."""

    plan: Plan
    replaces: str | None


async def propose(line: Pass, resource: Resource) -> Proposal:
    """What a pass would do, after a look at the remote object; nothing is done.

    Raises:
        Waiting, Stalled, Unsupported: a pass would end so before it did anything.
    """
    recorded = state.recorded(resource, line.identity.key)
    line.memory.doubted = True  # so that the remote object is looked at, and not only what is recorded of it
    wanted = await _resolve(line, _parse(line, resource))
    recorded, seen = await verify(line, resource, recorded)
    sight = await observe(line, wanted, recorded, resource, seen)
    progress = Progress(resource, recorded)
    progress.see(sight, wanted, line.world.now())
    todo = plan.plan(wanted, progress.recorded, sight, line.world.now(), line.identity.nonce(line.world.nonce()))
    anew = any(isinstance(operation, Create) for operation in todo.operations)
    return Proposal(todo, recorded.id if anew and not sight.missing else None)


def _plan(line: Pass, wanted: Desired, progress: Progress, sight: Sight) -> tuple[Plan, Held | None]:
    """What to do, and what is left for now because it was undone again and again. A wish of the user ends that."""
    meta, status = progress.resource["metadata"], progress.recorded.status
    wished = state.requested(meta) not in (None, status.get("lastHandledReconcileAt"))
    if wished or status.get("observedGeneration") != meta.get("generation"):
        line.memory.healing.forget()
    nonce, now = line.identity.nonce(line.world.nonce()), line.world.now()
    todo = plan.plan(wanted, progress.recorded, sight, now, nonce)
    if not todo.operations:
        return todo, None
    left = line.memory.healing.held(todo.drift, line.world.monotonic(), line.resync_seconds)
    if left is not None:
        todo = plan.plan(wanted, progress.recorded, replace(sight, left=left.paths), now, nonce)
    return todo, left


async def _carry_out(line: Pass, wanted: Desired, todo: Plan, progress: Progress) -> None:
    if not todo.operations:
        return
    line.remote.check()
    for operation in todo.operations:
        await execute(line, wanted, operation, progress)
    line.memory.healing.done(todo.drift, line.world.monotonic(), line.world.now())


def _slowed(left: Held) -> Verdict:
    paths = tuple(sorted(left.paths))
    return Verdict(
        Waits.HEALING_SLOWED,
        f"somebody or something keeps changing {', '.join(f'spec.{p}' for p in paths)} in the service; it is set right "
        f"again at {state.stamp(left.at)}, and later each time. Stop the other writer, or put its value into the spec; "
        f"the annotation {state.REQUESTED[0]} sets it right now",
        drift=paths,
    )


def _no_later(line: Pass, outcome: Outcome, left: Held) -> Outcome:
    """The outcome with a look at what is left as soon as its pause is over."""
    wait = max(left.until - line.world.monotonic(), 0.0)
    if outcome.due is not None and (outcome.due - line.world.now()).total_seconds() < wait:
        return outcome
    return replace(outcome, after_seconds=wait)


def _parse(line: Pass, resource: Resource) -> Policies:
    """The spec as a model. What the API server let through and a model refuses is said as plainly as there."""
    try:
        spec: Policies = line.kind.spec.model_validate(resource.get("spec") or {})
    except ValidationError as error:
        found = [
            f"spec.{'.'.join(map(str, e['loc']))}: {e['msg']}"
            for e in error.errors(include_input=False, include_url=False)
        ]
        raise Stalled(Stalls.INVALID_SPEC, shown("; ".join(found), 900)) from None
    written = references.connection(line.identity.namespace, resource.get("spec") or {})
    if (began := state.through(resource) or written) != written:
        raise Stalled(
            Stalls.IMMUTABLE_FIELD_CHANGED,
            f"spec.connectionRef: fixed once a creation has begun, here through {began[0]} {began[2]!r}; "
            "name that one again, or delete and create the resource",
        )
    if spec.external_id is not None and not spec.external_id.startswith(line.kind.api.prefix):
        raise Stalled(
            Stalls.INVALID_SPEC,
            f"spec.externalID: {shown(spec.external_id, 64)!r} should start with {line.kind.api.prefix}",
        )
    return spec


async def _resolve(line: Pass, spec: Policies) -> Desired:
    """References become ids, Secret keys become values."""
    namespace = line.identity.namespace
    try:
        ids = references.ids(spec, lambda named: line.cluster.find(namespace, named))
    except Waiting:
        start: Named = (line.kind.name, line.identity.name)
        if circle := references.cycle(start, lambda named: line.cluster.points_at(namespace, named)):
            named = " → ".join(f"{kind}/{name}" for kind, name in (*circle, start))
            raise Stalled(Stalls.REFERENCE_CYCLE, f"these refer to each other in a circle: {named}") from None
        raise
    values = await line.cluster.values(namespace, references.secret_keys(spec))
    return state.desired(line.kind, spec, line.identity, project.Bindings(ids, values))


PATIENCE_SECONDS = 1.0
"""How long a first wait for a neighbour goes unsaid: applied together, most of them are there by then."""


def _patience(line: Pass, progress: Progress, ended: Waiting | Stalled | Unsupported) -> float:
    """Seconds for which a wait that nobody was told of yet stays unsaid, which saves the write that says so."""
    told = bool(progress.recorded.status.get("conditions"))
    if told or progress.changed or not isinstance(ended, Waiting) or ended.reason not in WOKEN:
        return 0.0
    now = line.world.monotonic()
    if line.memory.waiting_since is None:
        line.memory.waiting_since = now
    return line.memory.waiting_since + PATIENCE_SECONDS - now


def _next_look(wanted: Desired, todo: Plan, progress: Progress) -> Plan:
    """The plan with the renewal of what was made or found while it was carried out.

    Raises:
        Stalled: the certificate would be due before it is valid.
    """
    if not progress.fresh or progress.answer is None:
        return todo
    return replace(todo, due=plan.due(wanted, progress.recorded, Sight(answer=progress.answer)))


def _success(wanted: Desired, todo: Plan) -> Verdict:
    if wanted.spec.management_policy == "Observe":
        text = (
            "differs from the spec; nothing is written under managementPolicy Observe"
            if todo.drift
            else "is as the spec says"
        )
        return Verdict(Ready.OBSERVED, f"the remote object {text}", drift=todo.drift)
    stays = f"; {', '.join(todo.kept)} stays too, because a connection still uses its token" if todo.kept else ""
    return Verdict(Ready.AVAILABLE, f"the remote object is as the spec says{stays}")


__all__ = ["Restart", "reconcile"]
