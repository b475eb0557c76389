-- Groups whose rewards are all equal: trained, left out, or replaced by other groups, by the policy of their round.
-- Such groups stay among the accepted groups, so that cursors of results stay valid.
local Rewards = {}

-- Number of accepted groups without known rewards, if the round replaces groups with equal rewards; else 0.
function Rewards.missing(tx, round)
  if round.equalRewards ~= 'replace' then return 0 end
  return math.max(0, round.acceptedGroups - redis.call('HLEN', tx.key:roundRewards(round.job, round.roundId)))
end

-- Outcome of the rewards of a group: 'kept', 'excluded' or 'replaced'; nil if the rewards are not known.
function Rewards.outcome(tx, round, group_id)
  if round.equalRewards == 'keep' then return nil end
  return redis.call('HGET', tx.key:roundRewards(round.job, round.roundId), group_id) or nil
end

function Rewards.is_excluded(tx, round, group_id)
  local outcome = Rewards.outcome(tx, round, group_id)
  return outcome == 'excluded' or outcome == 'replaced'
end

-- Numbers of groups and samples that the round has accepted and does not train.
function Rewards.excluded(tx, round)
  Round.read_rest(tx, round)
  return round.excludedGroups, round.excludedRequests
end

-- True when a replacement is wanted and allowed, and there is a group that no other place needs.
local function may_replace(tx, round, remaining)
  if round.equalRewards ~= 'replace' or not Round.takes_results(round) then return false end
  Round.read_rest(tx, round)
  return round.replacedGroups < round.maxReplacedGroups
    and round.liveGroups + remaining > round.neededGroups - round.acceptedGroups
end

-- Takes the rewards of an accepted group. `remaining`: number of groups that the trainer can still submit. Returns the
-- outcome of the first report.
function Rewards.take(tx, round, group, is_equal, remaining)
  local known = redis.call('HGET', tx.key:roundRewards(round.job, round.roundId), group.groupId)
  if known then return known end
  local outcome = 'kept'
  if is_equal and may_replace(tx, round, remaining) then
    outcome = 'replaced'
    Round.add(tx, round, 'replacedGroups', 1)
    Places.add_replacement(tx, round, group)
  elseif is_equal and round.equalRewards == 'exclude' then
    outcome = 'excluded'
  end
  if outcome ~= 'kept' then
    Round.add(tx, round, 'excludedGroups', 1)
    Round.add(tx, round, 'excludedRequests', group.finished)
    Ledger.count(tx, round, 'waste.equal-rewards', Group.read_made(tx, group).tokens)
  end
  if round.equalRewards ~= 'keep' then
    redis.call('HSET', tx.key:roundRewards(round.job, round.roundId), group.groupId, outcome)
  end
  return outcome
end

-- Forgets the outcome of a group that is no longer accepted.
function Rewards.forget(tx, round, group_id, samples)
  local outcome = Rewards.outcome(tx, round, group_id)
  if not outcome then return end
  redis.call('HDEL', tx.key:roundRewards(round.job, round.roundId), group_id)
  if outcome == 'kept' then return end
  Round.add(tx, round, 'excludedGroups', -1)
  Round.add(tx, round, 'excludedRequests', -samples)
  if outcome == 'replaced' then
    Round.add(tx, round, 'replacedGroups', -1)
    Round.add(tx, round, 'neededGroups', -1)
  end
end

-- Forgets all outcomes of a cancelled round: its groups are given back or dropped, whatever their rewards were.
function Rewards.forget_all(tx, round)
  if round.equalRewards == 'keep' then return end
  redis.call('UNLINK', tx.key:roundRewards(round.job, round.roundId))
  redis.call('HDEL', tx.key:roundLedger(round.job, round.roundId), 'waste.equal-rewards')
  Round.set(tx, round, { excludedGroups = 0, excludedRequests = 0 })
end

return Rewards
