--[[ The trainer has trained on the round: one flag; the requests are folded after it, page by page (fold). The cursor
of the last page of results proves that the trainer has read what Redis has.
ARGV[1] JSON: {job, roundId, trainerEpoch, stamp, cursor, groups}: CloseArgs
Reply: CloseRoundReply; a repeat gets the same
Errors: GENERATION_CHANGED, JOB_NOT_FOUND, FENCED, ROUND_NOT_FOUND, ROUND_NOT_COMPLETED, ROUND_CANCELLED,
  ROUND_MISMATCH (nothing was changed). Events: round.closed.
Flags: allow-oom ]]
return function(tx, args)
  local MOST_NAMED = 128
  local round, refused = Trainer.round(tx, args)
  if not round then return refused end
  if round.state == 'cancelled' then return Reply.fail('ROUND_CANCELLED', 'The round was cancelled', 'roundId') end
  local accepted = Format.integer(round.accepted)
  if Rounds.takes_results(round) then
    return Reply.fail('ROUND_NOT_COMPLETED', 'The round has ' .. accepted .. ' of ' .. Format.integer(round.needed)
      .. ' groups', 'roundId', 200)
  end
  local hash, job = tx.key:round(args.job, args.roundId), tx.key:job(args.job)
  local read = ResultsDigest.parse_cursor(round, args.cursor)
  if not read then return Reply.fail('VALIDATION_FAILED', 'cursor: not a cursor of round.results', 'cursor') end

  -- Groups that the round has and the trainer has not read, the reverse, and those that the trainer has read otherwise.
  local function name_differences(details)
    local own, missing, extra, different = {}, {}, {}, {}
    for _, group in ipairs(args.groups) do own[group.groupId] = group.digest end
    local function name(list, group_id)
      if #list < MOST_NAMED then table.insert(list, group_id) end
    end
    for position, group_id in ipairs(redis.call('LRANGE', tx.key:roundAccepted(args.job, args.roundId), 0,
      #args.groups + MOST_NAMED)) do
      local noted = ResultsDigest.noted_at(tx, round, position)
      if not own[group_id] then
        name(missing, group_id)
      elseif not noted or noted.own ~= own[group_id] then
        name(different, group_id)
      end
      own[group_id] = nil
    end
    for group_id in pairs(own) do name(extra, group_id) end
    table.sort(extra)
    details.missing, details.extra, details.different = missing, extra, different
  end

  local is_same = redis.call('HGET', hash, 'trainedDigest') == read.all
  if round.state == 'completed' then
    is_same = read.samples == 0 and read.position == round.accepted
      and ResultsDigest.digest_at(tx, round, round.accepted) == read.all
  end
  if not is_same then
    local details = { acceptedGroups = round.accepted, readGroups = read.position }
    if round.state == 'completed' and args.groups then name_differences(details) end
    local message = 'The round has ' .. accepted .. ' groups, and these are not the ' .. Format.integer(read.position)
      .. ' that were read up to this cursor: read it from its beginning'
    return Reply.fail('ROUND_MISMATCH', message, 'cursor', nil, details)
  end
  local excluded, excluded_requests = Rewards.excluded(tx, round)
  local trained = round.accepted - excluded
  if round.state == 'completed' then
    redis.call('HSET', hash, 'state', 'closed', 'trainedDigest', read.all)
    redis.call('HDEL', job, 'openRoundId')
    -- A cancelled round does not set it: an adaptive policy continues from the last round that was closed.
    local control = redis.call('HGET', hash, 'tailControl')
    if control then redis.call('HSET', job, 'tailControl', control) end
    redis.call('SREM', tx.key.openJobs, args.job)
    redis.call('HINCRBY', job, 'stepsTrained', 1)
    redis.call('HINCRBY', job, 'trainedGroups', trained)
    if excluded > 0 then redis.call('HINCRBY', job, 'excludedGroups', excluded) end
    redis.call('UNLINK', tx.key:lengths(args.job, Format.integer(round.step - Lengths.HISTORY_STEPS)),
      tx.key:roundDigests(args.job, args.roundId))
    redis.call('SADD', tx.key.sweeps, Rounds.sweep_name(round))
    Events.add(tx, 'round.closed', { job = args.job, roundId = args.roundId, step = round.step,
      trainedGroups = trained })
  end
  Trainer.seen(tx, args.job)
  return Generation.reply(tx, { roundId = args.roundId, stepsTrained = round.step, trainedGroups = trained,
    trainedRequests = tonumber(redis.call('HGET', hash, 'acceptedRequests')) - excluded_requests })
end
