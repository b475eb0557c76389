--[[ Takes the rewards of accepted groups, each once: a group whose rewards are all equal is trained, left out or
replaced, by the policy of the round. An error changes nothing.
ARGV[1] JSON: {job, roundId, trainerEpoch, stamp, remainingGroups, field, groups}: RewardArgs, with how many rewards
  each group has, and whether they are all equal
Reply: RewardAnswer; a repeat gets the same reply
Errors: GENERATION_CHANGED, JOB_NOT_FOUND, FENCED, ROUND_NOT_FOUND, ROUND_CLOSED, ROUND_CANCELLED, GROUP_NOT_FOUND,
  VALIDATION_FAILED.
Events: round.progressed, round.completed, round.settled.
Flags: allow-oom ]]
return function(tx, args)
  local round, refused = Trainer.round(tx, args)
  if not round then return refused end
  if round.state == 'closed' then return Reply.fail('ROUND_CLOSED', 'The round is closed', 'roundId') end
  if round.state == 'cancelled' then return Reply.fail('ROUND_CANCELLED', 'The round was cancelled', 'roundId') end

  local groups = {}
  for position, given in ipairs(args.groups) do
    local group, field = Group.load(tx, args.job, given.groupId), args.field .. '.' .. (position - 1)
    if not group or group.state ~= 'accepted' or group.roundId ~= args.roundId then
      return Reply.fail('GROUP_NOT_FOUND', 'The round has not accepted the group ' .. given.groupId,
        field .. '.groupId')
    end
    if group.finished ~= given.rewards then
      return Reply.fail('VALIDATION_FAILED', field .. '.rewards: ' .. Format.integer(given.rewards) .. ' rewards for '
        .. Format.integer(group.finished) .. ' samples', field .. '.rewards')
    end
    groups[position] = group
  end

  Trainer.seen(tx, args.job)
  local outcomes = {}
  for position, given in ipairs(args.groups) do
    local outcome = Rewards.take(tx, round, groups[position], given.isEqual, args.remainingGroups)
    outcomes[position] = { groupId = given.groupId, outcome = outcome }
  end
  Rounds.review_round(tx, round)
  return Generation.reply(tx, { outcomes = outcomes, completed = round.state == 'completed' })
end
