--[[ Deletes one page of the snapshots that are no longer kept. A page ends with the group that brings it to 32
requests.
Reply: more   boolean
Flags: allow-oom ]]
return function(tx)
  local PAGE = 32
  local name = redis.call('SRANDMEMBER', tx.key.oldSnapshots)
  if not name then return Reply.object({ more = false }) end
  local job, number = Job.parse_name(name)
  local saved_groups = Snapshots.groups(tx, job, number)
  local touched = 0
  while touched < PAGE do
    local group_id = redis.call('HRANDFIELD', saved_groups)
    if not group_id then break end
    local saved = cjson.decode(redis.call('HGET', saved_groups, group_id))
    redis.call('HDEL', saved_groups, group_id)
    touched = touched + #saved.requests
    -- A group that is still there names its segments too.
    local is_there = Group.exists(tx, job, group_id)
    KeptRefs.free_payloads_of(tx, job, group_id, saved.group.promptRef,
      is_there and {} or KeptRefs.refs_of_saved(saved))
  end
  if redis.call('EXISTS', saved_groups) == 0 then
    redis.call('UNLINK', tx.key:snapshot(job, number), Snapshots.rounds(tx, job, number))
    for copy in pairs(Snapshots.copies(tx, job, number, 0)) do redis.call('UNLINK', copy) end
    redis.call('SREM', tx.key.oldSnapshots, name)
  end
  return Reply.object({ more = redis.call('EXISTS', tx.key.oldSnapshots) == 1 })
end
