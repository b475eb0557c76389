--[[ Adds new groups to a round, with all their requests pending. With `check`, only answers whether the page may be
added. If a part of a page was stored before the round was completed, the rest is stored too, and is cut like other
groups.
ARGV[1] JSON: {job, roundId, trainerEpoch, stamp, room, check, groups}: SubmitScriptArgs
  check    at most 128 groups, with groupId, digest, samples, maxTokens, promptRef and promptHash; nothing is stored.
           Without `check`, about 32 launched requests in all
  room     only with `check`: the live samples and the samples of the page, each with its maxTokens, must fit
Reply: SubmitAnswer, with check also `fresh`: list of groupId that are not there yet, and, if the round has another
  order than arrival, `dispatchOrder` and `known`: the entries of their prompts in the prompt memory
Errors: GENERATION_CHANGED, JOB_NOT_FOUND, FENCED, ROUND_NOT_FOUND, ROUND_CLOSED, ROUND_NOT_OPEN, DUPLICATE_GROUP,
  VALIDATION_FAILED, PAYLOAD_STORE_FULL, PAYLOAD_NOT_FOUND.
Events: round.submitted, round.progressed, round.completed, round.settled. ]]
return function(tx, args)
  local round, refused = Trainer.round(tx, args)
  if not round then return refused end
  if round.state == 'closed' then return Reply.fail('ROUND_CLOSED', 'The round is closed', 'roundId') end

  local fresh, fresh_ids, repeated = {}, {}, 0
  for _, group in ipairs(args.groups) do
    local digest, first_round_id = Group.read_submit(tx, args.job, group.groupId)
    if not digest then
      table.insert(fresh, group)
      table.insert(fresh_ids, group.groupId)
    elseif digest == group.digest and first_round_id == args.roundId then
      repeated = repeated + 1
    else
      return Reply.fail('DUPLICATE_GROUP', 'Group ' .. group.groupId
        .. ' is known with other contents or of another round', 'groupId')
    end
  end
  local completed = not Round.takes_results(round)
  if #fresh > 0 then
    refused = NewGroups.refusal(tx, round, fresh, fresh_ids, args.check)
    if refused then return refused end
    if round.state == 'opening' or (completed and args.check and repeated == 0) then
      return Reply.fail('ROUND_NOT_OPEN', 'The round is ' .. round.state .. ' and accepts no more groups', 'roundId')
    end
    local places = Round.count_coming(round) + (completed and 0 or Round.count_shortfall(round))
    if #fresh > places then
      return Reply.fail('VALIDATION_FAILED', 'The round accepts ' .. Format.integer(places) .. ' more groups', 'groups')
    end
  end

  Trainer.seen(tx, args.job)
  if args.check and args.room and #fresh > 0 and not completed then
    refused = NewGroups.room_error(tx, round, fresh, args.room)
    if refused then return refused end
  end
  if not args.check and #fresh > 0 then
    for _, group in ipairs(fresh) do NewGroups.add(tx, round, group) end
    Job.add(tx, args.job, 'submittedGroups', #fresh)
    Round.add(tx, round, 'submittedGroups', #fresh)
    Round.add(tx, round, 'liveGroups', #fresh)
    Events.add(tx, 'round.submitted', { job = args.job, roundId = args.roundId, groups = #fresh })
    if completed then
      if round.cancelMode ~= 'drop' then Counts.add_settling(tx, args.job, #fresh) end
      Round.set(tx, round, { settled = false })
      redis.call('SADD', tx.key.sweeps, Round.format_name(round))
    else
      Rounds.review_round(tx, round)
    end
    if redis.call('EXISTS', tx.key.abortTombstones) == 1 then
      for _, id in ipairs(fresh_ids) do NewGroups.end_aborted(tx, round, Group.load(tx, args.job, id)) end
    end
  end
  Round.read_rest(tx, round)
  local known
  if args.check and round.dispatchOrder ~= 'arrival' then
    local hashes = {}
    for _, group in ipairs(fresh) do table.insert(hashes, group.promptHash) end
    known = PromptLengths.known(tx, hashes)
  end
  return Generation.reply(tx, { added = #fresh, repeated = repeated,
    roundGroups = round.takenGroups + round.submittedGroups, completed = completed,
    launchFactor = round.sampleOverProvision, fresh = args.check and fresh_ids or nil,
    dispatchOrder = known and round.dispatchOrder or nil, known = known })
end
