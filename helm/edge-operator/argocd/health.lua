-- derived from operator/edge_operator/derive/health.py by `make derive`; do not edit
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
