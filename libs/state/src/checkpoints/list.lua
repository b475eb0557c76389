--[[ The complete checkpoints of a job, oldest first. Writes nothing.
ARGV[1] JSON: {job}
Reply: job
       checkpoints   list of {tag, step, groups, requests, savedAtMs}
       saving, restoring   tag of one that is under way, or absent
Errors: JOB_NOT_FOUND. Events: none.
Flags: no-writes ]]
return function(tx, args)
  local field = redis.call('HMGET', tx.key:job(args.job), 'saving', 'restoring', 'trainerEpoch')
  if not field[3] then return Reply.fail('JOB_NOT_FOUND', 'There is no job ' .. args.job, 'job') end
  local checkpoints = {}
  for _, tag in ipairs(redis.call('ZRANGE', tx.key:checkpoints(args.job), 0, -1)) do
    table.insert(checkpoints, Checkpoints.json(tx, args.job, redis.call('ZSCORE', tx.key:checkpoints(args.job), tag)))
  end
  local function tag_of(number) return number and redis.call('HGET', tx.key:checkpoint(args.job, number), 'tag')
    or nil end
  return '{"checkpoints":' .. Reply.list(checkpoints) .. ','
    .. string.sub(cjson.encode({ job = args.job, saving = tag_of(field[1]), restoring = tag_of(field[2]) }), 2)
end
