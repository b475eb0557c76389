--[[ Deletes one page of the snapshots that are no longer kept. A page ends with the group that makes it 32 requests.
ARGV[1] JSON: {}
Reply: more   boolean
Errors: none. Events: none.
Flags: allow-oom ]]
return function(tx)
  local PAGE = 32
  local name = redis.call('SRANDMEMBER', tx.key.oldSnapshots)
  if not name then return '{"groups":[],"more":false}' end
  local job, number = string.match(name, '^([^/]+)/(.+)$')
  local saved_groups = tx.key:snapshotPart(job, number, Snapshots.SAVED_GROUPS)
  local touched = 0
  while touched < PAGE do
    local group_id = redis.call('HRANDFIELD', saved_groups)
    if not group_id then break end
    local saved = cjson.decode(redis.call('HGET', saved_groups, group_id))
    redis.call('HDEL', saved_groups, group_id)
    touched = touched + #saved.requests
    local prompt, refs = KeptRefs.refs_of_saved(saved)
    -- A group that is still there has its segments itself.
    KeptRefs.free_payloads_of(tx, job, group_id, prompt, redis.call('EXISTS', tx.key:group(job, group_id)) == 0 and refs
      or {})
  end
  if redis.call('EXISTS', saved_groups) == 0 then
    redis.call('UNLINK', tx.key:snapshot(job, number), tx.key:snapshotPart(job, number, Snapshots.SAVED_ROUNDS))
    for back = -1, Snapshots.SAVED_LENGTHS - 1 do redis.call('UNLINK', Snapshots.lengths_part(tx, job, number,
      back)) end
    for part in pairs(Snapshots.COPIED) do redis.call('UNLINK', tx.key:snapshotPart(job, number, part)) end
    redis.call('SREM', tx.key.oldSnapshots, name)
  end
  return '{"more":' .. tostring(redis.call('EXISTS', tx.key.oldSnapshots) == 1) .. '}'
end
