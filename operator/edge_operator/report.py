"""Ends a pass: what to say of it in the status, in an event, and to the queue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from edge_operator.declare import Issued, Token
from edge_operator.engine import conditions, reported, seal, state
from edge_operator.engine import verdict as judging
from edge_operator.engine.conditions import Verdict
from edge_operator.engine.operations import UNANSWERED, Delete, Plan, Stalled, Unsupported, Waiting
from edge_operator.engine.reasons import Events, Ready, Stalls, Waits
from edge_operator.engine.seal import Seal
from edge_operator.engine.state import Desired, Recorded
from edge_operator.execute import Progress
from edge_operator.ports import Outcome, Pass

WOKEN = (Waits.REFERENCE_NOT_READY, Waits.SECRET_NOT_READY, Waits.CONNECTION_NOT_READY)
"""What the index or the connection wakes a resource from; there is nothing to try in between."""


def verdict_of(ended: Waiting | Stalled | Unsupported, progress: Progress) -> Verdict:
    """What to say of a pass that ended early.

    While it is searched for what was refused, the refusal stays said, and in an outage what was said first.
    """
    if isinstance(ended, Unsupported):
        return Verdict(Stalls.OPERATION_UNSUPPORTED, str(ended))
    before = said(progress.recorded)
    if before is not None and before.generation == progress.resource["metadata"].get("generation"):
        reason = before.verdict.reason
        refused = isinstance(reason, Stalls) or reason in (Waits.CONFLICT, Waits.SERVICE_UNAVAILABLE)
        known = before.verdict.ready and progress.recorded.damaged  # only what was edited away is searched for
        if ended.reason is Waits.RECOVERING and (refused or known):
            return before.verdict
        if ended.message == UNANSWERED and reason in (Waits.SERVICE_UNAVAILABLE, Waits.RECOVERING):
            return before.verdict
    return Verdict(ended.reason, ended.message)


@dataclass(frozen=True)
class Said:
    """What Ready says now, and of which generation."""

    verdict: Verdict
    generation: int


def said(recorded: Recorded) -> Said | None:
    """What Ready says now; None where it says nothing known."""
    ready = next((c for c in recorded.status.get("conditions") or () if c["type"] == "Ready"), None)
    words = {str(r): r for family in (Ready, Waits, Stalls) for r in family}
    if ready is None or ready["reason"] not in words:
        return None
    return Said(Verdict(words[ready["reason"]], ready["message"]), ready.get("observedGeneration", -1))


def held(recorded: Recorded) -> Verdict:
    """A paused resource keeps saying what it said."""
    found = said(recorded)
    if found is None:
        return Verdict(Waits.PROGRESSING, "reconciliation is paused by annotation", paused=True)
    return replace(found.verdict, paused=True)


async def report(
    line: Pass,
    progress: Progress,
    verdict: Verdict,
    wanted: Desired | None,
    todo: Plan | None,
    ended: Waiting | Stalled | Unsupported | None = None,
) -> Outcome:
    """Write the status if it says something new, tell what was done, and say when to come back."""
    before = progress.resource.get("status") or {}
    after = _status(line, progress, verdict, wanted, complete=ended is None and todo is not None)
    patch = conditions.difference(before, after)
    if patch:
        await line.cluster.write_status(line.kind, progress.resource, patch)
    if todo is not None and ended is None and todo.event is not None:
        line.cluster.tell(progress.resource, todo.event, _story(todo, after))
    elif patch and isinstance(ended, Stalled | Unsupported):
        line.cluster.tell(progress.resource, verdict.reason, verdict.message, warning=True)
    named = {after.get("id"), *(p["id"] for p in after.get("previous") or ())}
    if patch and (strangers := sorted(progress.strangers - named)):
        text = f"the status named {', '.join(strangers)}: not there, or not marked as this resource's; it is left alone"
        line.cluster.tell(progress.resource, Stalls.OWNERSHIP_CONFLICT, text, warning=True)
    removed = [o.id for o in progress.done if isinstance(o, Delete) and o.id in progress.duplicates]
    if removed:
        text = f"deleted {', '.join(removed)}: marked as this resource's, and neither its object nor a predecessor"
        line.cluster.tell(progress.resource, Events.DUPLICATE_DELETED, text, warning=True)
    if patch and verdict.reason is Waits.HEALING_SLOWED:
        line.cluster.tell(progress.resource, verdict.reason, verdict.message, warning=True)
    kept = todo.kept if todo is not None else ()
    dues = [p.delete_after for p in progress.recorded.previous if p.id not in kept]
    if todo is not None and todo.due is not None:
        dues.append(todo.due)
    after_seconds = ended.after_seconds if isinstance(ended, Waiting) else None
    failed = isinstance(ended, Waiting) and ended.reason not in WOKEN
    return Outcome(
        ready=verdict.ready,
        reason=str(verdict.reason),
        due=min(dues, default=None) if ended is None and not verdict.paused else None,
        after_seconds=after_seconds,
        failed=failed,
        at_most=_at_most(line, progress, failed=failed) if failed or isinstance(ended, Stalled | Unsupported) else None,
        changed=progress.changed or bool(patch),
        event=todo.event if todo is not None and ended is None else None,
        duplicates=len(removed),
    )


LEAST_SECONDS, LEAST_STALLED_SECONDS = 1.0, 60.0
"""However short the life that is left, it is not tried more often."""


def _at_most(line: Pass, progress: Progress, *, failed: bool) -> float | None:
    """How long at most to wait before a certificate is asked for again: an eighth of what is left of its life."""
    until = progress.recorded.status.get("validUntil")
    if not isinstance(line.kind.lifecycle, Issued) or not until:
        return None
    try:
        left = (state.parsed(until) - line.world.now()).total_seconds()
    except ValueError:
        return None
    return max(left / 8, LEAST_SECONDS if failed else LEAST_STALLED_SECONDS) if left > 0 else None


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
    return _sealed(line, now, {k: v for k, v in status.items() if v not in ([], {}, None)})


def _sealed(line: Pass, recorded: Recorded, status: dict[str, Any]) -> dict[str, Any]:
    """The status with its seal. What was not looked at keeps the one that it came with."""
    if not recorded.trusted:
        return status
    who, before = line.identity, seal.connection(recorded.status, line.identity.namespace)
    through = before if recorded.seal is Seal.FITS and before is not None else who.through
    made = seal.of(who.key, who.uid, status, seal.short(through))
    rest = {name: value for name, value in status.items() if name != seal.MEMBER}
    return rest if made is None else {**rest, seal.MEMBER: made}


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
