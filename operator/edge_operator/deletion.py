"""The end of a resource: its remote objects go, or are kept, and then the finalizer goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from edge_operator.engine import plan, state
from edge_operator.engine import verdict as judging
from edge_operator.engine.operations import Stalled, Unsupported, Waiting
from edge_operator.engine.reasons import Events, Waits
from edge_operator.engine.state import Recorded
from edge_operator.execute import Progress, execute
from edge_operator.observe import recover
from edge_operator.ports import Outcome, Owned, Pass, Resource
from edge_operator.report import report, verdict_of


async def delete(line: Pass, resource: Resource) -> Outcome:
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
        return await report(line, progress, verdict_of(ended, progress), None, None, ended)
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
