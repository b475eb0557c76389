-- Gives up a round that is not closed, by one flag. Its groups, the accepted ones too, go to the long-tail queue with
-- all they have, or are dropped; the sweep does it (give-back, cut).
local RoundCancellation = {}

local EVERY_GROUP = '9007199254740991' -- as a number up to which all groups are aborted

-- Returns the number of groups that are given back or dropped.
function RoundCancellation.cancel(tx, round, mode, reason)
  local hash = tx.key:round(round.job, round.roundId)
  local groups = round.live + round.accepted
  -- Those that are to come into the queue, and those that were and will not.
  local to_come_back = mode == 'requeue' and groups or 0
  local settling = to_come_back - (round.state == 'completed' and round.live or 0)
  redis.call('HSET', hash, 'state', 'cancelled', 'cancelMode', mode, 'cancelReason', reason,
    'cancelledGroups', groups, 'liveGroups', groups, 'acceptedGroups', 0, 'settled', 0)
  if mode == 'drop' then redis.call('HSET', hash, 'abortedUpTo', EVERY_GROUP, 'abortedBy', 'round.cancel') end
  Counts.add_settling(tx, round.job, settling)
  redis.call('HDEL', tx.key:job(round.job), 'openRoundId')
  redis.call('SREM', tx.key.openJobs, round.job)
  redis.call('ZREM', tx.key.roundDeadlines, Rounds.sweep_name(round))
  redis.call('SADD', tx.key.sweeps, Rounds.sweep_name(round))
  Events.add(tx, 'round.cancelled', { job = round.job, roundId = round.roundId, step = round.step, mode = mode,
    groups = groups })
  round.state, round.cancelMode, round.live, round.accepted, round.settled = 'cancelled', mode, groups, 0, false
  if groups == 0 then Rounds.mark_settled(tx, round) end
  return groups
end

return RoundCancellation
