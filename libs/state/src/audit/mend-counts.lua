--[[ Sets the counts of a job to the sums of its recount, after all requests were counted; the sums include changes of
requests during the recount. Requests that were folded are gone, so the counts of their states stay, but a count below
zero becomes 0. The job stays marked until audit/end-recount.
ARGV[1] JSON: {job; id: of the recount}
Reply: goesOn    boolean; false: the recount was given up
       seen      object: all fields of the counts before; numbers
       found     object: requests by state
       mended    boolean: the counts were wrong
Flags: allow-oom ]]
return function(tx, args)
  local hash, recount = tx.key:counts(args.job), tx.key:recount(args.job)
  local function numbers_of(name)
    local numbers = Hashes.all(name)
    for field, text in pairs(numbers) do numbers[field] = tonumber(text) end
    return numbers
  end
  if redis.call('HGET', recount, 'id') ~= args.id or Counts.is_recount_outdated(tx, args.job) then
    return '{"goesOn":false,"mended":false}'
  end
  local seen, found = numbers_of(hash), numbers_of(recount)

  local sum, mended = 0, false
  local function set(state, count)
    if (seen[state] or 0) == count then return end
    mended = true
    redis.call('HSET', hash, state, Format.integer(count))
  end
  for _, state in ipairs(Counts.KEPT) do
    set(state, found[state] or 0)
    sum = sum + (found[state] or 0)
  end
  for _, state in ipairs(Counts.FOLDED) do
    local count = math.max(0, seen[state] or 0)
    set(state, count)
    sum = sum + count
  end
  set('submitted', sum)
  found.id, found.generation, found.again = nil, nil, nil
  return cjson.encode({ goesOn = true, mended = mended, seen = seen, found = found })
end
