--[[ Deletes one page of dropped groups that were kept long enough; the counts of the job stay.
A page ends with the group that brings it to 32 requests.
Reply: more   boolean
Flags: allow-oom ]]
return function(tx)
  local PAGE = 32
  local forgotten, touched = 0, 0
  local due = redis.call('ZRANGEBYSCORE', tx.key.droppedGroups, '-inf', Format.integer(tx.now), 'LIMIT', 0, PAGE)
  for _, name in ipairs(due) do
    if touched >= PAGE then break end
    local job, group_id = Job.parse_name(name)
    local group = Group.load(tx, job, group_id)
    -- If the job was deleted, only the name of the group is left.
    local is_lost = not group and redis.call('SISMEMBER', tx.key.jobs, job) == 1
    local launched = group and group.launched or (is_lost and GroupDeletion.MAX_SAMPLES or 0)
    GroupDeletion.delete(tx, job, group_id, launched, group and group.promptRef)
    redis.call('ZREM', tx.key.droppedGroups, name)
    forgotten, touched = forgotten + 1, touched + math.max(1, launched)
  end
  return Reply.object({ more = forgotten < #due or #due == PAGE })
end
