--[[ The checkpoints of a job against what they say they hold.
ARGV[1] JSON: {job; numbers: list of string, those of which there are groups; repair: boolean}
Reply: findings    list of {check, where, says, repaired}
       checkpoints list of {number, tag, groups, requests}: the complete ones
Errors: none. Facts: none.
Flags: allow-oom ]]
return function(tx, args)
  local KEPT = 2
  local known, complete = {}, {}
  for _, tag in ipairs(redis.call('ZRANGE', tx.key:checkpoints(args.job), 0, -1)) do
    local number = redis.call('ZSCORE', tx.key:checkpoints(args.job), tag)
    local where = args.job .. '/' .. tag
    known[number] = true
    local held = redis.call('HLEN', tx.key:checkpointPart(args.job, number, Checkpoints.SAVED_GROUPS))
    local header = redis.call('HMGET', tx.key:checkpoint(args.job, number), 'tag', 'groups', 'requests')
    if header[1] ~= tag then Findings.add(tx, 'checkpoint-without-header', where, number)
    elseif tonumber(header[2]) ~= held then
      Findings.add(tx, 'checkpoint-groups', where, string.format('%s groups, %d there', header[2], held))
    else
      table.insert(complete, { number = number, tag = tag, groups = held, requests = tonumber(header[3]) })
    end
  end
  if redis.call('ZCARD', tx.key:checkpoints(args.job)) > KEPT then Findings.add(tx, 'checkpoint-not-retired',
    args.job) end
  known[redis.call('HGET', tx.key:job(args.job), 'saving') or ''] = true
  for _, number in ipairs(args.numbers) do
    local name = args.job .. '/' .. number
    if not known[number] and redis.call('SISMEMBER', tx.key.oldCheckpoints, name) == 0 then
      if args.repair then redis.call('SADD', tx.key.oldCheckpoints, name) end
      Findings.add(tx, 'checkpoint-of-nobody', name, '', args.repair)
    end
  end
  return '{"findings":' .. Reply.list(tx.findings) .. ',"checkpoints":' .. Reply.list(complete) .. '}'
end
