--[[ Marks jobs whose counts are to be checked after Redis has lost something: all that have requests which are not
folded, or counts that cannot be. With the last page the generation counts as checked.
ARGV[1] JSON: {jobs: list, about 128; generation: string; isLast: boolean}
Reply: marked    number
Flags: allow-oom ]]
return function(tx, args)
  local marked = 0
  for _, job in ipairs(args.jobs) do
    local counts = redis.call('HMGET', tx.key:counts(job), 'submitted', 'trained', 'failed', 'dropped', 'pending',
      'claimed', 'running',
      'cutting', 'unfinished', 'finished')
    local at_rest, left = true, tonumber(counts[1] or 0)
    for position = 2, #counts do
      local count = tonumber(counts[position] or 0)
      left = left - count
      if count < 0 or (position > 4 and count > 0) then at_rest = false end
    end
    if not at_rest or left ~= 0 then marked = marked + redis.call('SADD', tx.key.miscountedJobs, job) end
  end
  if args.isLast then redis.call('HSET', tx.key.meta, 'countsOf', args.generation) end
  return '{"marked":' .. marked .. '}'
end
