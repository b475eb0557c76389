--[[ Marks jobs whose counts are to be checked after Redis has lost writes: all jobs with requests that are not folded,
or with impossible counts. With the last page the generation counts as checked.
ARGV[1] JSON: {jobs: list, about 128; generation: string; isLast: boolean}
Reply: marked    number
Flags: allow-oom ]]
return function(tx, args)
  local marked = 0
  for _, job in ipairs(args.jobs) do
    local counts = Hashes.all(tx.key:counts(job))
    local at_rest, left = true, tonumber(counts.submitted or 0)
    for _, state in ipairs(Counts.KEPT) do at_rest = at_rest and tonumber(counts[state] or 0) == 0 end
    for _, state in ipairs(Counts.FOLDED) do
      local count = tonumber(counts[state] or 0)
      at_rest, left = at_rest and count >= 0, left - count
    end
    if not at_rest or left ~= 0 then marked = marked + redis.call('SADD', tx.key.miscountedJobs, job) end
  end
  if args.isLast then redis.call('HSET', tx.key.meta, 'countsOf', args.generation) end
  return '{"marked":' .. marked .. '}'
end
