--- @include "rounds"
-- Gives up a round that is not closed, by one flag. Its groups, the accepted ones too, go to the long-tail queue with all they
-- have, or are dropped; the sweep does it (give-back, cut).
local EVERY_GROUP = '9007199254740991' -- as a number up to which all groups are aborted

-- Returns the number of groups that are given back or dropped.
local function cancel_round(round, mode, reason)
  local hash = key.round(round.job, round.roundId)
  local groups = round.live + round.accepted
  -- Those that are to come into the queue, and those that were and will not.
  local to_come_back = mode == 'requeue' and groups or 0
  local settling = to_come_back - (round.state == 'completed' and round.live or 0)
  redis.call('HSET', hash, 'state', 'cancelled', 'cancelMode', mode, 'cancelReason', reason,
    'cancelledGroups', groups, 'liveGroups', groups, 'acceptedGroups', 0, 'settled', 0)
  if mode == 'drop' then redis.call('HSET', hash, 'abortedUpTo', EVERY_GROUP, 'abortedBy', 'round.cancel') end
  count_settling(round.job, settling)
  redis.call('HDEL', key.job(round.job), 'openRoundId')
  redis.call('SREM', key.openJobs, round.job)
  redis.call('ZREM', key.roundDeadlines, sweep_name(round))
  redis.call('SADD', key.sweeps, sweep_name(round))
  fact('round.cancelled', { job = round.job, roundId = round.roundId, step = round.step, mode = mode, groups = groups })
  round.state, round.cancelMode, round.live, round.accepted, round.settled = 'cancelled', mode, groups, 0, false
  if groups == 0 then mark_settled(round) end
  return groups
end
