--[[ Cancels a round that is not closed, by one flag. Its groups, accepted groups too, go to the long-tail queue with
all their tokens, or are dropped; the sweep moves the groups (give-back, cut). The step is not counted, and another
round may be opened.
ARGV[1] JSON: {job, roundId, trainerEpoch, mode, stamp; reason: kept with dropped groups}: CancelRoundRequest
Reply: CancelRoundReply; a repeat gets the same reply
Errors: GENERATION_CHANGED, JOB_NOT_FOUND, FENCED, ROUND_NOT_FOUND, ROUND_CLOSED, ROUND_CONFLICT (cancelled before in
the other mode).
Events: round.cancelled, round.settled.
Flags: allow-oom ]]
return function(tx, args)
  local round, refused = Trainer.round(tx, args)
  if not round then return refused end
  if round.state == 'closed' then
    return Reply.fail('ROUND_CLOSED', 'The round is closed: its step is trained', 'roundId')
  end
  Trainer.seen(tx, args.job)
  if round.state == 'cancelled' and round.cancelMode ~= args.mode then
    return Reply.fail('ROUND_CONFLICT', 'The round was cancelled with mode ' .. round.cancelMode, 'mode')
  end
  local groups = round.state == 'cancelled'
    and Round.read_rest(tx, round).cancelledGroups
    or Rounds.cancel(tx, round, args.mode, args.reason)
  return Generation.reply(tx, { roundId = args.roundId, state = 'cancelled', mode = args.mode, groups = groups })
end
