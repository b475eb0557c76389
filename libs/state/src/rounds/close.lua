--[[ Closes a round on which the trainer has trained, by one flag; the requests are folded after it, page by page
(fold). The cursor of the last page of results proves that the trainer has read the groups that Redis has.
ARGV[1] JSON: {job, roundId, trainerEpoch, stamp, cursor, groups}: CloseArgs
Reply: CloseRoundReply; a repeat gets the same reply
Errors: GENERATION_CHANGED, JOB_NOT_FOUND, FENCED, ROUND_NOT_FOUND, ROUND_NOT_COMPLETED, ROUND_CANCELLED,
  ROUND_MISMATCH (nothing was changed). Events: round.closed.
Flags: allow-oom ]]
return function(tx, args)
  local MAX_NAMED = 128
  local round, refused = Trainer.round(tx, args)
  if not round then return refused end
  if round.state == 'cancelled' then return Reply.fail('ROUND_CANCELLED', 'The round was cancelled', 'roundId') end
  local accepted = Format.integer(round.acceptedGroups)
  if Round.takes_results(round) then
    return Reply.fail('ROUND_NOT_COMPLETED', 'The round has ' .. accepted .. ' of '
      .. Format.integer(round.neededGroups) .. ' groups', 'roundId', 200)
  end
  Round.read_rest(tx, round)
  local read = ResultsDigest.parse_cursor(round, args.cursor)
  if not read then return Reply.fail('VALIDATION_FAILED', 'cursor: not a cursor of round.results', 'cursor') end

  -- Adds the ids of groups that the trainer has not read (`missing`), that the round does not have (`extra`), and that
  -- the trainer has read with other contents (`different`).
  local function name_differences(details)
    local own, missing, extra, different = {}, {}, {}, {}
    for _, group in ipairs(args.groups) do own[group.groupId] = group.digest end
    local function name(list, group_id)
      if #list < MAX_NAMED then table.insert(list, group_id) end
    end
    for position, group_id in ipairs(redis.call('LRANGE', tx.key:roundAccepted(args.job, args.roundId), 0,
      #args.groups + MAX_NAMED)) do
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

  local is_same = round.trainedDigest == read.all
  if round.state == 'completed' then
    is_same = read.samples == 0 and read.position == round.acceptedGroups
      and ResultsDigest.digest_at(tx, round, round.acceptedGroups) == read.all
  end
  if not is_same then
    local details = { acceptedGroups = round.acceptedGroups, readGroups = read.position }
    if round.state == 'completed' and args.groups then name_differences(details) end
    local message = 'The round has ' .. accepted .. ' groups, and these are not the ' .. Format.integer(read.position)
      .. ' that were read up to this cursor: read it from its beginning'
    return Reply.fail('ROUND_MISMATCH', message, 'cursor', nil, details)
  end
  local excluded, excluded_requests = Rewards.excluded(tx, round)
  local trained = round.acceptedGroups - excluded
  if round.state == 'completed' then
    Round.set(tx, round, { state = 'closed', trainedDigest = read.all })
    -- A cancelled round does not set the control: an adaptive policy continues from the last round that was closed.
    Job.set(tx, args.job, { openRoundId = false, tailControl = round.tailControl })
    redis.call('SREM', tx.key.openJobs, args.job)
    Job.add(tx, args.job, 'stepsTrained', 1)
    Job.add(tx, args.job, 'trainedGroups', trained)
    if excluded > 0 then Job.add(tx, args.job, 'excludedGroups', excluded) end
    redis.call('UNLINK', tx.key:lengths(args.job, Format.integer(round.step - Lengths.HISTORY_STEPS)),
      tx.key:roundDigests(args.job, args.roundId))
    redis.call('SADD', tx.key.sweeps, Round.format_name(round))
    Events.add(tx, 'round.closed', { job = args.job, roundId = args.roundId, step = round.step,
      trainedGroups = trained })
  end
  Trainer.seen(tx, args.job)
  return Generation.reply(tx, { roundId = args.roundId, stepsTrained = round.step, trainedGroups = trained,
    trainedRequests = round.acceptedRequests - excluded_requests })
end
