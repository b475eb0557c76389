--[[ Records an abort before its first effect. An aborted round, job or pool gets a number: all its groups up to this
number are aborted at once. Pages of aborts/select select the groups later.
ARGV[1] JSON: {abortId, selector, reason, work, flag, job, roundId, keptMs}: BeginScriptArgs
Reply: selecting   boolean: pages are to be selected
Errors: VALIDATION_FAILED.
Flags: allow-oom ]]
return function(tx, args)
  local known = redis.call('HMGET', tx.key:abort(args.abortId), 'selector', 'work')
  if known[1] then
    if known[1] ~= args.selector then
      return Reply.fail('VALIDATION_FAILED', 'The abortId was used for another abort', 'abortId')
    end
    return Reply.object({ selecting = known[2] and true or false })
  end
  local now = tx.now
  local up_to = redis.call('HGET', tx.key.meta, 'arrivalSequence') or '0'
  Hashes.set(tx.key:abort(args.abortId), { selector = args.selector, reason = args.reason, upTo = up_to,
    work = cjson.encode(args.work), startedAtMs = now })
  redis.call('ZADD', tx.key.aborts, now, args.abortId)
  redis.call('HSET', tx.key.meta, 'abortKeptMs', args.keptMs)
  for _, tombstones in ipairs({ tx.key.abortTombstones, tx.key.abortedAcquires }) do
    redis.call('ZREMRANGEBYSCORE', tombstones, '-inf', now)
  end
  local flag = { abortedUpTo = tonumber(up_to), abortedBy = args.abortId }
  -- A missing round or job gets no flag, because a hash with only a flag would look like a round. A flag is never
  -- lowered: the flag of a cancelled round also aborts groups that are submitted later.
  if args.flag == 'round' then
    local round = Round.load(tx, args.job, args.roundId)
    if round and Round.read_abort_flag(tx, round) <= flag.abortedUpTo then Round.set(tx, round, flag) end
  elseif args.flag == 'job' then
    if Job.exists(tx, args.job) and Job.get(tx, args.job).abortedUpTo <= flag.abortedUpTo then
      Job.set(tx, args.job, flag)
    end
  elseif args.flag and tx.abort_of_pool.abortedUpTo <= flag.abortedUpTo then
    redis.call('HSET', tx.key.meta, 'abortedUpTo', up_to, 'abortedBy', args.abortId)
  end
  return Reply.object({ selecting = true })
end
