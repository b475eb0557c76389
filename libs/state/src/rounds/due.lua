--[[ Lists the work of the sweeper in this pool. Removes rounds that are gone from the list, and renews the generation
of the pool if Redis was set back; changes nothing else.
ARGV[1] JSON: {stamp}   the last stamp that this replica has seen of the pool, or absent
Reply: DueWork; at most 64 of each list, rounds in random order
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 64
  local generation, _, renewed = Generation.current(tx, args.stamp)
  local rounds = {}
  for _, name in ipairs(redis.call('SRANDMEMBER', tx.key.sweeps, PAGE)) do
    local job, round_id = Job.parse_name(name)
    local state = Round.read_state(tx, job, round_id)
    if state then
      table.insert(rounds, { job = job, roundId = round_id, state = state })
    else
      redis.call('SREM', tx.key.sweeps, name)
    end
  end
  local meta = redis.call('HMGET', tx.key.meta, 'countsOf', 'lostEntries', 'miscounts')
  local now = Format.integer(tx.now)
  return Generation.reply(tx, {
    renewed = renewed or nil, uncheckedGeneration = meta[1] ~= generation and generation or nil,
    expiredEpochs = redis.call('SCARD', tx.key.expiredAttemptEpochs),
    deadlines = redis.call('ZCOUNT', tx.key.roundDeadlines, '-inf', now),
    aborting = redis.call('ZCARD', tx.key.abortingGroups) + redis.call('ZCARD', tx.key.abortingLeases),
    leaving = redis.call('ZCARD', tx.key.leavingGroups),
    oldSnapshots = redis.call('SCARD', tx.key.oldSnapshots),
    lostEntries = tonumber(meta[2] or 0), miscounts = tonumber(meta[3] or 0),
    dropped = redis.call('ZCOUNT', tx.key.droppedGroups, '-inf', now),
    moving = redis.call('ZCARD', tx.key.movingRequests) + redis.call('HLEN', tx.key.movingLeases),
    weightSync = redis.call('EXISTS', tx.key.weightSync) == 1,
    aborts = redis.call('ZRANGE', tx.key.aborts, 0, PAGE - 1), rounds = rounds,
    miscounted = redis.call('SRANDMEMBER', tx.key.miscountedJobs, PAGE),
  })
end
