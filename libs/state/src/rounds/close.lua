--[[ The trainer has trained on the round: one flag; the requests are folded after it, page by page (fold). The cursor
of the last page of results proves that it has read just what Redis has.
ARGV[1] JSON:
  job, roundId          string
  trainerEpoch, stamp   of the trainer; stamp may be absent
  cursor                string of the last page of results
  groups                list of {groupId, digest}, at most 1024: what was read, to be told what differs; or absent
Reply: roundId, stepsTrained, trainedGroups, trainedRequests, stamp; a repeat gets the same
Errors: GENERATION_CHANGED, JOB_NOT_FOUND, FENCED, ROUND_NOT_FOUND, ROUND_NOT_COMPLETED, ROUND_CANCELLED,
  ROUND_MISMATCH (nothing was changed). Events: round.closed.
Flags: allow-oom ]]
return function(tx, args)
  local MOST_NAMED = 128
  local refused = Generation.stamp_error(tx, Reply.optional(args.stamp)) or Trainer.error(tx, args.job,
    args.trainerEpoch)
  if refused then return refused end
  local round = Rounds.load(tx, args.job, args.roundId)
  if not round then return Reply.fail('ROUND_NOT_FOUND', 'There is no round ' .. args.roundId, 'roundId') end
  if round.state == 'cancelled' then return Reply.fail('ROUND_CANCELLED', 'The round was cancelled', 'roundId') end
  if Rounds.takes_results(round) then
    return Reply.fail('ROUND_NOT_COMPLETED', 'The round has ' .. Format.integer(round.accepted) .. ' of '
      .. Format.integer(round.needed) .. ' groups', 'roundId', 200)
  end
  local hash = tx.key:round(args.job, args.roundId)
  local read = ResultsDigest.parse_cursor(round, args.cursor)
  if not read then return Reply.fail('VALIDATION_FAILED', 'cursor: not a cursor of round.results', 'cursor') end

  -- What the round has and was not read, what was read and the round has not, and what was read otherwise.
  local function differences(groups)
    local own, missing, extra, different = {}, {}, {}, {}
    for _, group in ipairs(groups) do own[group.groupId] = group.digest end
    local function name(list, group_id)
      if #list < MOST_NAMED then table.insert(list, group_id) end
    end
    for position, group_id in ipairs(redis.call('LRANGE', tx.key:roundAccepted(args.job, args.roundId), 0,
      #groups + MOST_NAMED)) do
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
    return ',"missing":' .. Reply.list(missing) .. ',"extra":' .. Reply.list(extra) .. ',"different":'
      .. Reply.list(different)
  end
  local function mismatch(accepted)
    local refusal = Reply.fail('ROUND_MISMATCH', 'The round has ' .. Format.integer(accepted)
      .. ' groups, and these are not the '
      .. Format.integer(read.position) .. ' that were read up to this cursor: read it from its beginning', 'cursor')
    local groups = round.state == 'completed' and Reply.optional(args.groups)
    return string.sub(refusal, 1, -3) .. ',"details":{"acceptedGroups":' .. Format.integer(accepted) .. ',"readGroups":'
      .. Format.integer(read.position) .. (groups and differences(groups) or '') .. '}}}'
  end

  if round.state == 'completed' then
    if read.samples > 0 or read.position ~= round.accepted or ResultsDigest.digest_at(tx, round,
      round.accepted) ~= read.all then
      return mismatch(round.accepted)
    end
    redis.call('HSET', hash, 'state', 'closed', 'trainedDigest', read.all)
    redis.call('HDEL', tx.key:job(args.job), 'openRoundId')
    redis.call('SREM', tx.key.openJobs, args.job)
    redis.call('HINCRBY', tx.key:job(args.job), 'stepsTrained', 1)
    redis.call('HINCRBY', tx.key:job(args.job), 'trainedGroups', round.accepted)
    redis.call('UNLINK', tx.key:lengths(args.job, Format.integer(round.step - Lengths.HISTORY_STEPS)),
      tx.key:roundDigests(args.job, args.roundId))
    redis.call('SADD', tx.key.sweeps, Rounds.sweep_name(round))
    Events.add(tx, 'round.closed', { job = args.job, roundId = args.roundId, step = round.step,
      trainedGroups = round.accepted })
  elseif redis.call('HGET', hash, 'trainedDigest') ~= read.all then
    return mismatch(round.accepted)
  end
  Trainer.seen(tx, args.job)
  return Generation.stamped(tx, cjson.encode({
    roundId = args.roundId, stepsTrained = round.step, trainedGroups = round.accepted,
    trainedRequests = tonumber(redis.call('HGET', hash, 'acceptedRequests')),
  }))
end
