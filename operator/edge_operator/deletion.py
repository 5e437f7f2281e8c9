"""The end of a resource: its remote objects go, or are kept, and then the finalizer goes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from edge_operator.engine import ownership, plan, project, state
from edge_operator.engine import verdict as judging
from edge_operator.engine.operations import Delete, Stalled, Unsupported, Waiting
from edge_operator.engine.reasons import Events, Stalls, Waits
from edge_operator.engine.state import Recorded
from edge_operator.execute import Progress, execute
from edge_operator.observe import recover
from edge_operator.ports import Outcome, Owned, Pass, Resource
from edge_operator.report import report, said, verdict_of
from edge_operator.verify import verify_last


async def delete(line: Pass, resource: Resource) -> Outcome:
    """Delete what is ours, then let the resource go. No reference is waited for: ids come from status and marker."""
    meta, spec = resource["metadata"], resource.get("spec") or {}
    progress = Progress(resource, _known(line, state.recorded(resource, line.identity.key), spec))
    if not progress.recorded.finalizer:
        return Outcome(ready=False, reason=str(Waits.DELETING))
    secret = (spec.get("secretName") or judging.default_secret(line.kind, meta["name"])) if line.kind.outputs else None
    try:
        kept = await _kept(line, resource, progress.recorded)
        theirs: _Farewell | None = None
        ours, found = progress.recorded, tuple[Owned, ...]()
        if kept is None:
            ours, stays = await verify_last(line, resource, ours)
            theirs = (Events.RETAINED, stays) if stays else await _theirs(line, ours, spec)
            if spec.get("externalID") is None:
                found = tuple(await recover(line, ours, None))
            ours = replace(ours, id=None) if theirs else ours
        objects = tuple((o.id, o.path) for o in found)
        for operation in plan.farewell(ours, objects, retain=kept is not None, secret=secret):
            await execute(line, None, operation, progress)
    except (Waiting, Stalled, Unsupported) as ended:
        return await report(line, progress, verdict_of(ended, progress), None, None, ended)
    event, told = kept or theirs or (Events.DELETED, "")
    told = "; ".join(filter(None, (told, _gone(progress, silent=bool(told)))))
    line.cluster.tell(resource, event, told, warning=event is Events.ABANDONED)
    return Outcome(ready=False, reason=str(event), changed=True, gone=True, event=event)


def _known(line: Pass, recorded: Recorded, spec: dict[str, Any]) -> Recorded:
    """What is recorded; where an adoption began and the status does not tell of it, with the object that it is of.

    An adoption makes nothing, so that there is nothing to search for, and the object may carry no marker.
    """
    id_ = spec.get("externalID")
    if id_ is None or recorded.id is not None or recorded.claim is None:
        return recorded
    path: dict[str, str] = {}
    for field in project.fields(line.kind.spec):
        if field.in_path and field.reference:
            ref = spec.get(field.alias) or {}
            named = (field.reference.kinds[0], ref.get("name") or "")
            referent = None if ref.get("id") else line.cluster.find(line.identity.namespace, named)
            parent = ref.get("id") or (referent.id if referent is not None else None)
            if parent is None:
                return recorded
            path[field.in_path] = parent
    return replace(recorded, id=id_, path=path)


_Farewell = tuple[Events, str]
"""What happened, and what to say of it."""


async def _kept(line: Pass, resource: Resource, recorded: Recorded) -> _Farewell | None:
    """Why all remote objects stay, if they do.

    Raises:
        Waiting: something holds the deletion up.
    """
    annotations, spec = resource["metadata"].get("annotations") or {}, resource.get("spec") or {}
    what = _named(recorded)
    if annotations.get(state.ABANDON) == "true":
        return Events.ABANDONED, f"let go as asked; {what} in the account"
    if annotations.get(state.PAUSED) == "true":
        raise Waiting(Waits.DELETION_BLOCKED, "paused by annotation; take it off to go on")
    asked, removal = resource["metadata"]["deletionTimestamp"], await line.cluster.removal(line.kind)
    if removal is not None and asked >= removal:
        return Events.RETAINED, (
            f"{what} in the account, because the CustomResourceDefinition {line.kind.crd} is being removed, and "
            "with it every resource; spec.externalID adopts it again"
        )
    if using := line.cluster.dependants(line.kind, resource):
        more = f" and {len(using) - 5} more" if len(using) > 5 else ""
        raise Waiting(Waits.DELETION_BLOCKED, f"still used by {', '.join(using[:5])}{more}; delete them first")
    if spec.get("deletionPolicy") == "Retain":
        return Events.RETAINED, f"{what} in the account, as deletionPolicy says"
    if spec.get("managementPolicy") == "Observe":
        return Events.RETAINED, (
            f"{what} in the account: under managementPolicy Observe nothing is written or deleted there; with Manage, "
            "deletionPolicy decides"
        )
    return None


def _named(recorded: Recorded) -> str:
    """What stays, with its predecessors, and that it does: `bkdwd_1 stays`."""
    former = [p.id for p in recorded.previous]
    if recorded.id is None:
        what = "a remote object, if there is one"
        return f"{what}, and {', '.join(former)} before it, stay" if former else f"{what}, stays"
    return f"{recorded.id}, and {', '.join(former)} before it, stay" if former else f"{recorded.id} stays"


async def _theirs(line: Pass, recorded: Recorded, spec: dict[str, Any]) -> _Farewell | None:
    """Why the object that is recorded stays, if it is another resource's."""
    id_ = recorded.id
    if id_ is None:
        return None
    holders = [h for h in line.cluster.holders(line.kind, id_) if h.uid != line.identity.uid]
    if spec.get("externalID") is not None:
        first = ownership.elder(line.cluster.holders(line.kind, id_), line.identity.uid)
        if first is None:
            return None
        return Events.RETAINED, f"{id_} stays in the account: it belongs to {line.kind.name} {first.place}"
    ready = said(recorded)
    if all(h.adopts for h in holders) and (ready is None or ready.verdict.reason is not Stalls.OWNERSHIP_CONFLICT):
        return None
    answer = await line.remote.read(line.kind, id_, recorded.path)
    who = ownership.stranger(answer, line.identity) if answer is not None else None
    return (Events.RETAINED, f"{id_} stays in the account: it is marked as that of {who.place}") if who else None


def _gone(progress: Progress, *, silent: bool) -> str:
    """What was deleted; nothing was, where there is something else to say."""
    gone = ", ".join(o.id for o in progress.done if isinstance(o, Delete))
    if not gone and silent:
        return ""
    return f"deleted {gone}" if gone else "deleted; there was no remote object"
