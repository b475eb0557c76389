-- Deletes groups: when they are folded, forgotten or lost, or when their job is restored from a snapshot.
local GroupDeletion = {}

GroupDeletion.MAX_SAMPLES = 128 -- samples whose keys are removed when the number of samples is lost

-- Deletes a group with its requests and frees their payloads. `visit`, or nil, gets each request before; the request
-- stays if `visit` returns true.
function GroupDeletion.delete(tx, job, group_id, launched, prompt_ref, visit)
  local refs = {}
  for index = 0, launched - 1 do
    local request = Request.load(tx, Request.format_id(job, group_id, index))
    if request and not (visit and visit(request)) then
      for _, segment in ipairs(cjson.decode(request.segments)) do table.insert(refs, segment.ref) end
      Request.delete(tx, request.id)
    end
  end
  Group.delete(tx, job, group_id)
  KeptRefs.free_payloads_of(tx, job, group_id, prompt_ref, refs)
end

return GroupDeletion
