--[[ Deletes one page of the checkpoints that are no longer kept. A page ends with the group that makes it 32 requests.
ARGV[1] JSON: {}
Reply: more   boolean
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/checkpoints"
local PAGE = 32
local name = redis.call('SRANDMEMBER', key.oldCheckpoints)
if not name then return '{"groups":[],"more":false}' end
local job, number = string.match(name, '^([^/]+)/(.+)$')
local saved_groups = key.checkpointPart(job, number, SAVED_GROUPS)
local touched = 0
while touched < PAGE do
  local group_id = redis.call('HRANDFIELD', saved_groups)
  if not group_id then break end
  local saved = cjson.decode(redis.call('HGET', saved_groups, group_id))
  redis.call('HDEL', saved_groups, group_id)
  touched = touched + #saved.requests
  local prompt, refs = refs_of_saved(saved)
  -- A group that is still there has its segments itself.
  free_payloads_of(job, group_id, prompt, redis.call('EXISTS', key.group(job, group_id)) == 0 and refs or {})
end
if redis.call('EXISTS', saved_groups) == 0 then
  redis.call('UNLINK', key.checkpoint(job, number), key.checkpointPart(job, number, SAVED_ROUNDS))
  for back = -1, SAVED_LENGTHS - 1 do redis.call('UNLINK', lengths_part(job, number, back)) end
  for part in pairs(COPIED) do redis.call('UNLINK', key.checkpointPart(job, number, part)) end
  redis.call('SREM', key.oldCheckpoints, name)
end
return '{"more":' .. tostring(redis.call('EXISTS', key.oldCheckpoints) == 1) .. '}'
