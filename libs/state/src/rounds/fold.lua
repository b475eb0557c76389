--[[ Folds one page of a closed round into the counts: accepted groups are counted into
the ledger, then they are trained and deleted, as are the failed ones.
A cancelled round has given its accepted groups back before; only the failed ones are left.
Of a group that is gone, what is left of its requests goes with it.
A page ends with the group that makes it 32 requests. The summaries of the last 16 rounds are kept.
ARGV[1] JSON: {job, roundId}
Reply: done     true when nothing is left to fold
       waiting  true when the next group has a surplus sample that is not confirmed: come again later
Errors: none. Events: request.lost.
Flags: allow-oom ]]
return function(tx, args)
  local PAGE, MOST_SAMPLES = 32, 128
  local SUMMARIES_KEPT = 16
  local round = Rounds.load(tx, args.job, args.roundId)
  if not round or Rounds.takes_results(round) or round.state == 'completed' then
    return '{"done":true,"waiting":false}'
  end

  local touched, waiting = 0, false
  -- Deletes the requests of a group, those that are there; `count` is called with each before. Returns their
  -- references.
  local function unlink_requests(group_id, launched, count)
    local refs = {}
    for index = 0, launched - 1 do
      local request = Requests.load(tx, Requests.id_of(args.job, group_id, index))
      if request then
        for _, segment in ipairs(cjson.decode(request.segments)) do table.insert(refs, segment.ref) end
        count(request)
        redis.call('UNLINK', tx.key:request(request.id))
      end
    end
    redis.call('UNLINK', tx.key:group(args.job, group_id))
    touched = touched + launched
    return refs
  end
  local function fold_group(group, trained)
    local refs = unlink_requests(group.groupId, group.launched, function(request)
      if request.state == 'finished' then Counts.count_again(tx, request, 'finished', 'trained') end
    end)
    if trained then
      Counts.add_requests(tx, args.job, 'finished', -group.samples)
      Counts.add_requests(tx, args.job, 'trained', group.samples)
      redis.call('ZADD', tx.key:trainedGroups(args.job), round.step, group.groupId)
    end
    KeptRefs.free_payloads_of(tx, args.job, group.groupId, group.promptRef, refs)
  end
  -- Nobody knows how many samples it had.
  local function fold_rest_of(group_id, trained)
    Counts.note_lost(tx, args.job, args.job .. '/' .. group_id)
    local group = { live = 0, finished = 0 }
    local refs = unlink_requests(group_id, MOST_SAMPLES, function(request)
      Requests.move(tx, request, group, trained and request.state == 'finished' and 'trained' or 'dropped')
    end)
    if trained then redis.call('ZADD', tx.key:trainedGroups(args.job), round.step, group_id) end
    KeptRefs.free_payloads_of(tx, args.job, group_id, nil, refs)
  end
  local function fold_list(list, trained)
    while touched < PAGE do
      local group_id = redis.call('LINDEX', list, 0)
      if not group_id then return end
      -- A worker still has a surplus sample: it is told, again and again, by the sweep of aborts.
      local group = Rounds.load_group(tx, args.job, group_id)
      waiting = group ~= nil and group.live > 0
      if waiting then return end
      redis.call('LPOP', list)
      if group then fold_group(group, trained) else fold_rest_of(group_id, trained) end
    end
  end
  local accepted, failed = tx.key:roundAccepted(args.job, args.roundId), tx.key:roundFailed(args.job, args.roundId)
  -- First the ledger: it needs what is deleted here.
  if not TrainedLedger.count_accepted(tx, args.job, args.roundId) then return '{"done":false,"waiting":false}' end
  if round.state == 'closed' then fold_list(accepted, true) end
  fold_list(failed, false)

  -- The ledger of the round becomes a part of the job's, and stays with its summary.
  local function fold_ledger()
    if redis.call('HSETNX', tx.key:round(args.job, args.roundId), 'ledgerFolded', 1) == 0 then return end
    local flat, counters = redis.call('HGETALL', tx.key:roundLedger(args.job, args.roundId)), {}
    for position = 1, #flat, 2 do
      counters[flat[position]] = tonumber(flat[position + 1])
      if Ledger.passes_on(flat[position], round.state == 'cancelled') then
        redis.call('HINCRBY', tx.key:jobLedger(args.job), flat[position], flat[position + 1])
      end
    end
    if not counters['trained.samples'] or round.state == 'cancelled' then return end
    local mean = math.floor(counters['trained.tokens'] / counters['trained.samples'] + 0.5)
    redis.call('HINCRBY', tx.key:jobLedger(args.job), 'batch.count', 1)
    redis.call('HINCRBY', tx.key:jobLedger(args.job), 'batch.sum', Format.integer(mean))
    redis.call('HINCRBY', tx.key:jobLedger(args.job), 'batch.squares', Format.integer(mean * mean))
  end

  local done = redis.call('EXISTS', accepted, failed) == 0
  if done and round.settled then
    fold_ledger()
    redis.call('SREM', tx.key.sweeps, Rounds.sweep_name(round))
    redis.call('HSET', tx.key:round(args.job, args.roundId), 'folded', 1)
    redis.call('UNLINK', tx.key:roundHeld(args.job, args.roundId), tx.key:roundPlaces(args.job, args.roundId),
      tx.key:roundDigests(args.job, args.roundId))
    local rounds = tx.key:rounds(args.job)
    local surplus = redis.call('ZCARD', rounds) - SUMMARIES_KEPT
    if surplus > 0 then
      for _, old in ipairs(redis.call('ZRANGE', rounds, 0, surplus - 1)) do
        local kept = redis.call('HMGET', tx.key:round(args.job, old), 'folded', 'leavingGroups')
        if kept[1] ~= '1' or tonumber(kept[2] or 0) > 0 then break end
        redis.call('UNLINK', tx.key:round(args.job, old), tx.key:roundLedger(args.job, old))
        redis.call('ZREM', rounds, old)
      end
      -- Groups trained before are forgotten with their rounds.
      redis.call('ZREMRANGEBYSCORE', tx.key:trainedGroups(args.job), '-inf', '(' .. redis.call('ZRANGE', rounds, 0, 0,
        'WITHSCORES')[2])
    end
  end
  return '{"done":' .. tostring(done) .. ',"waiting":' .. tostring(waiting) .. '}'
end
