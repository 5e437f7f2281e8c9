"""Tells Argo CD how a resource is, by the rules of kstatus: one Lua script for every kind.

Argo CD knows no health of custom resources by itself. Its Lua has no `string` library, so the script does without.
Source: kstatus; Argo CD, Resource health.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from edge_operator.declare import GROUP, CustomResource

SCRIPT = """\
local function answer(status, message)
  return { status = status, message = message or "" }
end

if obj.metadata.deletionTimestamp ~= nil then
  return answer("Progressing", "being deleted")
end
local status = obj.status
if status == nil or status.observedGeneration == nil or status.observedGeneration ~= obj.metadata.generation then
  return answer("Progressing", "waiting for the operator to look at this generation")
end

local found = {}
for _, condition in ipairs(status.conditions or {}) do
  found[condition.type] = condition
end
local ready, stalled, reconciling = found["Ready"], found["Stalled"], found["Reconciling"]
if reconciling ~= nil and reconciling.status == "True" then
  return answer("Progressing", reconciling.message)
end
if stalled ~= nil and stalled.status == "True" then
  return answer("Degraded", stalled.message)
end
if ready ~= nil and ready.status == "True" then
  return answer("Healthy", ready.message)
end
return answer("Progressing", ready and ready.message)
"""


def config_map(kinds: Iterable[CustomResource[Any]]) -> dict[str, Any]:
    """A patch of Argo CD's own ConfigMap: one member for each kind, so that it merges with what is there."""
    members = {f"resource.customizations.health.{GROUP}_{kind.name}": SCRIPT for kind in kinds}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "argocd-cm", "namespace": "argocd"},
        "data": members,
    }
