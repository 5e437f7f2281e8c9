"""The straight line from a custom resource to its remote object. Read this file first.

    parse → resolve → observe → plan → execute → report → status

Reading happens in `_resolve` and `observe`, deciding in `engine`, writing in `execute` and one status patch.
`ports` is all that the line knows of the outside. A resource in sync goes the same way and ends with nothing to write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from edge_operator.declare import Token
from edge_operator.engine import conditions, plan, project, references, reported, state
from edge_operator.engine import verdict as judging
from edge_operator.engine.conditions import Verdict
from edge_operator.engine.operations import Create, Missing, Plan, Restart, Stalled, Unsupported, Waiting, shown
from edge_operator.engine.reasons import Events, Ready, Stalls, Waits
from edge_operator.engine.references import Named
from edge_operator.engine.state import Desired, Recorded, Sight
from edge_operator.execute import Progress, execute
from edge_operator.observe import observe, recover
from edge_operator.policies import Policies
from edge_operator.ports import Outcome, Owned, Pass, Resource, Snapshot


async def reconcile(line: Pass, resource: Resource, snapshot: Snapshot | None = None) -> Outcome:
    """Take one resource down the line once.

    `snapshot` is the remote object as a list showed it, where a list is why the resource is looked at.

    Raises:
        Restart: the resource changed meanwhile; begin again from a live read.
    """
    if resource["metadata"].get("deletionTimestamp"):
        return await _delete(line, resource)
    progress = Progress(resource, state.recorded(resource, line.identity.key))
    annotations = resource["metadata"].get("annotations") or {}
    if annotations.get(state.PAUSED) == "true":
        return await _report(line, progress, _held(progress.recorded), None, None)
    wanted: Desired | None = None
    todo: Plan | None = None
    try:
        wanted = await _resolve(line, _parse(line, resource))
        sight = await observe(line, wanted, progress.recorded, resource, snapshot)
        progress.see(sight, wanted, line.world.now())
        todo = plan.plan(wanted, progress.recorded, sight, line.world.now(), line.world.nonce())
        if sight.missing:
            progress.recorded = replace(progress.recorded, id=None, applied={})
        if todo.operations:
            line.remote.check()
        for operation in todo.operations:
            await execute(line, wanted, operation, progress)
        todo = _next_look(wanted, todo, progress)
        verdict = _success(wanted, todo)
    except (Waiting, Stalled, Unsupported) as ended:
        if (pause := _patience(line, progress, ended)) > 0:
            return Outcome(ready=False, reason=str(_verdict(ended, progress).reason), after_seconds=pause)
        return await _report(line, progress, _verdict(ended, progress), wanted, todo, ended)
    except Missing as gone:
        if line.memory.doubted and progress.answer is not None:
            denied = Waiting(Waits.SERVICE_UNAVAILABLE, f"the service returns the object and then denies it: {gone}")
            return await _report(line, progress, _verdict(denied, progress), wanted, todo, denied)
        # Only a read can say so for sure; the next pass makes it, and nothing was changed on this word alone.
        line.memory.doubted = True
        return Outcome(ready=False, reason=f"Missing {gone}", again=True)
    line.memory.doubted, line.memory.waiting_since = False, None
    return await _report(line, progress, verdict, wanted, todo)


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
    sight = await observe(line, wanted, recorded, resource, None)
    progress = Progress(resource, recorded)
    progress.see(sight, wanted, line.world.now())
    todo = plan.plan(wanted, progress.recorded, sight, line.world.now(), line.world.nonce())
    anew = any(isinstance(operation, Create) for operation in todo.operations)
    return Proposal(todo, recorded.id if anew and not sight.missing else None)


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
_WOKEN = (Waits.REFERENCE_NOT_READY, Waits.SECRET_NOT_READY, Waits.CONNECTION_NOT_READY)
"""What the index or the connection wakes a resource from; there is nothing to try in between."""


def _patience(line: Pass, progress: Progress, ended: Waiting | Stalled | Unsupported) -> float:
    """Seconds for which a wait that nobody was told of yet stays unsaid, which saves the write that says so."""
    told = bool(progress.recorded.status.get("conditions"))
    if told or progress.changed or not isinstance(ended, Waiting) or ended.reason not in _WOKEN:
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
    return Verdict(Ready.AVAILABLE, "the remote object is as the spec says")


def _verdict(ended: Waiting | Stalled | Unsupported, progress: Progress) -> Verdict:
    """What to say of a pass that ended early. While it is searched for what was refused, the refusal stays said."""
    if isinstance(ended, Unsupported):
        return Verdict(Stalls.OPERATION_UNSUPPORTED, str(ended))
    if ended.reason is Waits.RECOVERING and (said := _said(progress.recorded)) is not None:
        same = said.generation == progress.resource["metadata"].get("generation")
        if same and (isinstance(said.verdict.reason, Stalls) or said.verdict.reason is Waits.CONFLICT):
            return said.verdict
    return Verdict(ended.reason, ended.message)


@dataclass(frozen=True)
class _Said:
    """What Ready says now, and of which generation."""

    verdict: Verdict
    generation: int


def _said(recorded: Recorded) -> _Said | None:
    ready = next((c for c in recorded.status.get("conditions") or () if c["type"] == "Ready"), None)
    words = {str(r): r for family in (Ready, Waits, Stalls) for r in family}
    if ready is None or ready["reason"] not in words:
        return None
    return _Said(Verdict(words[ready["reason"]], ready["message"]), ready.get("observedGeneration", -1))


def _held(recorded: Recorded) -> Verdict:
    """A paused resource keeps saying what it said."""
    said = _said(recorded)
    if said is None:
        return Verdict(Waits.PROGRESSING, "reconciliation is paused by annotation", paused=True)
    return replace(said.verdict, paused=True)


async def _report(
    line: Pass,
    progress: Progress,
    verdict: Verdict,
    wanted: Desired | None,
    todo: Plan | None,
    ended: Waiting | Stalled | Unsupported | None = None,
) -> Outcome:
    """Write the status if it says something new, tell what was done, and say when to come back."""
    before = progress.recorded.status
    after = _status(line, progress, verdict, wanted, complete=ended is None and todo is not None)
    patch = conditions.difference(before, after)
    if patch:
        await line.cluster.write_status(line.kind, progress.resource, patch)
    if todo is not None and ended is None and todo.event is not None:
        line.cluster.tell(progress.resource, todo.event, _story(todo, after))
    elif patch and isinstance(ended, Stalled | Unsupported):
        line.cluster.tell(progress.resource, verdict.reason, verdict.message, warning=True)
    dues = [p.delete_after for p in progress.recorded.previous]
    if todo is not None and todo.due is not None:
        dues.append(todo.due)
    after_seconds = ended.after_seconds if isinstance(ended, Waiting) else None
    return Outcome(
        ready=verdict.ready,
        reason=str(verdict.reason),
        due=min(dues, default=None) if ended is None else None,
        after_seconds=after_seconds,
        failed=isinstance(ended, Waiting) and ended.reason not in _WOKEN,
        changed=progress.changed or bool(patch),
        event=todo.event if todo is not None and ended is None else None,
    )


def _status(
    line: Pass, progress: Progress, verdict: Verdict, wanted: Desired | None, *, complete: bool
) -> dict[str, Any]:
    """The whole status after this pass."""
    meta, now = progress.resource["metadata"], progress.recorded
    status: dict[str, Any] = {**now.status}
    if progress.answer is not None:
        gone = {f.name for f in reported.fields(line.kind) if progress.answer.get(f.wire, f) is None}
        status = {k: v for k, v in status.items() if k not in gone} | reported.values(line.kind, progress.answer)
    if progress.fresh or (complete and now.nonce is None):
        status |= {"nonce": now.claim, "path": dict(now.path)}
    observing = wanted is not None and wanted.spec.management_policy == "Observe"
    if wanted is not None and not observing and (complete or progress.changed):
        status["applied"] = _applied(progress, wanted, complete=complete)
        if complete and line.kind.outputs and not (wanted.adopted and isinstance(line.kind.lifecycle, Token)):
            status["secretName"] = judging.secret_name(wanted)
    status["previous"] = [p.to_status() for p in now.previous]
    if progress.secret is not None:
        status["secretName"] = progress.secret
    if complete and (asked := state.requested(meta)):
        status["lastHandledReconcileAt"] = asked
    if complete and (rotated := state.rotation(meta, now.status)):
        status["lastHandledRotateAt"] = rotated
    generation = meta.get("generation", 1)
    if verdict.paused:  # what is paused has not looked at the newest spec
        generation = max(now.status.get("observedGeneration", -1), 1)
    status["conditions"] = conditions.conditions(
        verdict, now.status.get("conditions") or (), generation, line.world.now()
    )
    status["observedGeneration"] = generation
    return {k: v for k, v in status.items() if v not in ([], {}, None)}


def _applied(progress: Progress, wanted: Desired, *, complete: bool) -> Mapping[str, str]:
    """Digests of what the remote object is known to hold after this pass."""
    if complete:
        return wanted.applied
    return {**progress.recorded.applied, **progress.sent(wanted)}


def _story(todo: Plan, status: Mapping[str, Any]) -> str:
    """What an event says was done: `updated bkdwd_1: backends`."""
    what = {
        Events.CREATED: "created",
        Events.UPDATED: "updated",
        Events.DRIFT_CORRECTED: "undid a change made elsewhere in",
        Events.CERTIFICATE_ISSUED: f"issued into Secret {status.get('secretName')}:",
        Events.TOKEN_ISSUED: f"wrote a token into Secret {status.get('secretName')}:",
        Events.CERTIFICATE_UPLOADED: "uploaded",
        Events.RECOVERED: "found again after an interrupted creation:",
        Events.ADOPTED: "adopted",
        Events.REPLACED: "created in place of one that vanished:",
    }
    detail = ", ".join(todo.drift) or todo.why
    return (
        f"{what.get(todo.event, 'changed') if todo.event else ''} {status.get('id')}{f': {detail}' if detail else ''}"
    )


async def _delete(line: Pass, resource: Resource) -> Outcome:
    """Delete what is ours, then let the resource go. References are not resolved: ids come from status and marker."""
    progress = Progress(resource, state.recorded(resource, line.identity.key))
    if not progress.recorded.finalizer:
        return Outcome(ready=False, reason=str(Waits.DELETING))
    meta, spec = resource["metadata"], resource.get("spec") or {}
    annotations = meta.get("annotations") or {}
    secret = (spec.get("secretName") or judging.default_secret(line.kind, meta["name"])) if line.kind.outputs else None
    abandoned = annotations.get(state.ABANDON) == "true"
    retain = spec.get("deletionPolicy") == "Retain"
    try:
        found: Sequence[Owned] = ()
        if not abandoned:
            _may_go(line, resource)
            found = () if retain else await recover(line, progress.recorded, None)
        objects = tuple((o.id, o.path) for o in found)
        for operation in plan.farewell(progress.recorded, objects, retain=retain or abandoned, secret=secret):
            await execute(line, None, operation, progress)
    except (Waiting, Stalled, Unsupported) as ended:
        return await _report(line, progress, _verdict(ended, progress), None, None, ended)
    event, said = _goodbye(progress.recorded, spec, abandoned=abandoned)
    line.cluster.tell(resource, event, said, warning=abandoned)
    return Outcome(ready=False, reason=str(event), changed=True, gone=True, event=event)


def _may_go(line: Pass, resource: Resource) -> None:
    """Nothing, unless something holds the deletion up."""
    if (resource["metadata"].get("annotations") or {}).get(state.PAUSED) == "true":
        raise Waiting(Waits.DELETION_BLOCKED, "paused by annotation; take it off to go on")
    if using := line.cluster.dependants(line.kind, resource):
        more = f" and {len(using) - 5} more" if len(using) > 5 else ""
        raise Waiting(Waits.DELETION_BLOCKED, f"still used by {', '.join(using[:5])}{more}; delete them first")


def _goodbye(recorded: Recorded, spec: Mapping[str, Any], *, abandoned: bool) -> tuple[Events, str]:
    if abandoned:
        return (
            Events.ABANDONED,
            f"let go as asked; {recorded.id or 'a remote object, if there is one,'} stays in the account",
        )
    if spec.get("deletionPolicy") == "Retain":
        return Events.RETAINED, f"{recorded.id} stays in the account, as deletionPolicy says"
    return Events.DELETED, f"deleted {recorded.id}" if recorded.id else "deleted; there was no remote object"


__all__ = ["Restart", "reconcile"]
