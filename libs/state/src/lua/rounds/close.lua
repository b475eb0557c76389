--[[ The trainer has trained on the round: one flag; the requests are folded after it, page by page (fold).
ARGV[1] JSON: {job, roundId, trainerEpoch}
Reply: roundId, stepsTrained, trainedGroups, trainedRequests; a repeat gets the same
Errors: JOB_NOT_FOUND, FENCED, ROUND_NOT_FOUND, ROUND_NOT_COMPLETED, ROUND_CANCELLED. Facts: round.closed.
Flags: allow-oom ]]
--- @include "../includes/rounds"
--- @include "../includes/trainer"
local args = cjson.decode(ARGV[1])
local refused = trainer_error(args.job, args.trainerEpoch)
if refused then return refused end
local round = load_round(args.job, args.roundId)
if not round then return fail('ROUND_NOT_FOUND', 'There is no round ' .. args.roundId, 'roundId') end
if round.state == 'cancelled' then return fail('ROUND_CANCELLED', 'The round was cancelled', 'roundId') end
if takes_results(round) then
  return fail('ROUND_NOT_COMPLETED', 'The round has ' .. integer(round.accepted) .. ' of ' .. integer(round.needed) .. ' groups', 'roundId', 200)
end
local hash = key.round(args.job, args.roundId)
saw_trainer(args.job)
if round.state == 'completed' then
  redis.call('HSET', hash, 'state', 'closed')
  redis.call('HDEL', key.job(args.job), 'openRoundId')
  redis.call('SREM', key.openJobs, args.job)
  redis.call('HINCRBY', key.job(args.job), 'stepsTrained', 1)
  redis.call('HINCRBY', key.job(args.job), 'trainedGroups', round.accepted)
  redis.call('UNLINK', key.lengths(args.job, integer(round.step - HISTORY_STEPS)))
  redis.call('SADD', key.sweeps, sweep_name(round))
  fact('round.closed', { job = args.job, roundId = args.roundId, step = round.step, trainedGroups = round.accepted })
end
return cjson.encode({
  roundId = args.roundId, stepsTrained = round.step, trainedGroups = round.accepted,
  trainedRequests = tonumber(redis.call('HGET', hash, 'acceptedRequests')),
})
