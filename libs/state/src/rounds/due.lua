--[[ What the sweeper has to do in this pool. Takes rounds that are gone off the list; changes nothing else.
ARGV[1] JSON: {stamp}   the last one this replica has seen of the pool, or absent
Reply: rounds         list of {job, roundId, state}, at most 64, in random order
       expiredEpochs     number of worker epochs whose attempts must be returned
       claimWaiters   number of parked claims
       deadlines      number of rounds whose deadline has come
       aborts         list of abortId whose requests are still being selected, at most 64
       aborting       number of groups and leases whose abort is not confirmed
       leaving        number of groups on their way from an open round to the long-tail queue
       oldSnapshots number of snapshots that are to be deleted
       lostEntries    number of requests ever that an index named and that were not there
       miscounts      number of counts ever that were found to be impossible
       miscounted     list of jobs that are to be counted anew, at most 64
       dropped        number of dropped groups that are to be forgotten
       moving         number of moves, of requests and of leases, that their holders have not confirmed
       stamp          string
       uncheckedGeneration   string: the generation, when the counts of the jobs were not checked since it began; or
                             absent
       renewed        true when the generation of the pool was renewed just now: Redis was restarted or set back
       weightSync     boolean: the weights change just now
Errors: none. Events: none.
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 64
  local now, _, renewed = Generation.current(tx, Reply.optional(args.stamp))
  local rounds = {}
  for _, name in ipairs(redis.call('SRANDMEMBER', tx.key.sweeps, PAGE)) do
    local job, round_id = string.match(name, '^([^/]+)/(.+)$')
    local state = redis.call('HGET', tx.key:round(job, round_id), 'state')
    if state then
      table.insert(rounds, { job = job, roundId = round_id, state = state })
    else
      redis.call('SREM', tx.key.sweeps, name)
    end
  end
  return Generation.stamped(tx, cjson.encode({
    renewed = renewed or nil,
    uncheckedGeneration = redis.call('HGET', tx.key.meta, 'countsOf') ~= now and now or nil,
    expiredEpochs = redis.call('SCARD', tx.key.expiredAttemptEpochs),
    claimWaiters = redis.call('HLEN', tx.key.claimWaiters),
    deadlines = redis.call('ZCOUNT', tx.key.roundDeadlines, '-inf', Format.integer(tx.now)),
    aborting = redis.call('ZCARD', tx.key.abortingGroups) + redis.call('ZCARD', tx.key.abortingLeases),
    leaving = redis.call('ZCARD', tx.key.leavingGroups),
    oldSnapshots = redis.call('SCARD', tx.key.oldSnapshots),
    lostEntries = tonumber(redis.call('HGET', tx.key.meta, 'lostEntries') or 0),
    miscounts = tonumber(redis.call('HGET', tx.key.meta, 'miscounts') or 0),
    dropped = redis.call('ZCOUNT', tx.key.droppedGroups, '-inf', Format.integer(tx.now)),
    moving = redis.call('ZCARD', tx.key.movingRequests) + redis.call('HLEN', tx.key.movingLeases),
    weightSync = redis.call('EXISTS', tx.key.weightSync) == 1,
  }):sub(1, -2) .. ',"aborts":' .. Reply.list(redis.call('ZRANGE', tx.key.aborts, 0, PAGE - 1)) .. ',"rounds":'
    .. Reply.list(rounds)
    .. ',"miscounted":' .. Reply.list(redis.call('SRANDMEMBER', tx.key.miscountedJobs, PAGE)) .. '}')
end
