--[[ Ends one page of the sessions of a job; a scan (Pages.scan). A session is of the job if its id or its family begins
with one of the prefixes. A session with leases is forgotten with its last lease. Waiters get the memory that this frees
when load-balancer grants room the next time.
ARGV[1] JSON: {prefixes, cursor}: texts; cursor: string
Reply: finished    number
       cursor      string
Flags: allow-oom ]]
local function begins_with_one(text, prefixes)
  for _, prefix in ipairs(prefixes) do
    if text and string.sub(text, 1, #prefix) == prefix then return true end
  end
  return false
end

return function(tx, args)
  local PAGE = 128
  local page, cursor = Pages.scan('HSCAN', tx.key.sessions, args.cursor, PAGE)
  local finished = 0
  for index = 1, #page, 2 do
    local session_id, binding = page[index], BindingRecord.unpack(page[index + 1])
    if begins_with_one(session_id, args.prefixes) or begins_with_one(binding.family, args.prefixes) then
      Sessions.finish(tx, session_id, binding)
      finished = finished + 1
    end
  end
  Leases.save(tx)
  return Reply.object({ finished = finished, cursor = cursor })
end
