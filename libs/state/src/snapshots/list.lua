--[[ The complete snapshots of a job, oldest first. Writes nothing.
ARGV[1] JSON: {job}
Reply: job
       snapshots   list of {tag, step, groups, requests, savedAtMs}
       saving, restoring   tag of one that is under way, or absent
Errors: JOB_NOT_FOUND. Events: none.
Flags: no-writes ]]
return function(tx, args)
  local field = redis.call('HMGET', tx.key:job(args.job), 'saving', 'restoring', 'trainerEpoch')
  if not field[3] then return Reply.fail('JOB_NOT_FOUND', 'There is no job ' .. args.job, 'job') end
  local snapshots = {}
  for _, tag in ipairs(redis.call('ZRANGE', tx.key:snapshots(args.job), 0, -1)) do
    table.insert(snapshots, Snapshots.json(tx, args.job, redis.call('ZSCORE', tx.key:snapshots(args.job), tag)))
  end
  local function tag_of(number) return number and redis.call('HGET', tx.key:snapshot(args.job, number), 'tag')
    or nil end
  return '{"snapshots":' .. Reply.list(snapshots) .. ','
    .. string.sub(cjson.encode({ job = args.job, saving = tag_of(field[1]), restoring = tag_of(field[2]) }), 2)
end
