--[[ Gives a round up that is not closed: one flag. Its groups, the accepted ones too, go to the long-tail queue with
all they have, or are dropped; the sweep does it (give-back, cut). The step is not counted, and another round may be
opened.
ARGV[1] JSON:
  job, roundId   string
  trainerEpoch   string
  mode           'requeue' | 'drop'
  stamp          of the trainer, or absent
  reason         string: kept with what is dropped
Reply: roundId, state ('cancelled'), mode
       groups   number that were given back or dropped; a repeat gets the same
       stamp    string
Errors: GENERATION_CHANGED, JOB_NOT_FOUND, FENCED, ROUND_NOT_FOUND, ROUND_CLOSED, ROUND_CONFLICT (cancelled before in
the other mode).
Events: round.cancelled, round.settled.
Flags: allow-oom ]]
return function(tx, args)
  local refused = Generation.stamp_error(tx, Reply.optional(args.stamp)) or Trainer.error(tx, args.job,
    args.trainerEpoch)
  if refused then return refused end
  local round = Rounds.load(tx, args.job, args.roundId)
  if not round then return Reply.fail('ROUND_NOT_FOUND', 'There is no round ' .. args.roundId, 'roundId') end
  if round.state == 'closed' then
    return Reply.fail('ROUND_CLOSED', 'The round is closed: its step is trained', 'roundId')
  end
  Trainer.seen(tx, args.job)
  local hash = tx.key:round(args.job, args.roundId)

  local function answer(groups)
    return Generation.stamped(tx, cjson.encode({ roundId = args.roundId, state = 'cancelled', mode = args.mode,
      groups = groups }))
  end
  if round.state == 'cancelled' then
    if round.cancelMode ~= args.mode then
      return Reply.fail('ROUND_CONFLICT', 'The round was cancelled with mode ' .. round.cancelMode, 'mode')
    end
    return answer(tonumber(redis.call('HGET', hash, 'cancelledGroups')))
  end

  return answer(RoundCancellation.cancel(tx, round, args.mode, args.reason))
end
