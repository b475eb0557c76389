--[[ Completes rounds whose deadline has come, with the groups they have; at most 16.
Reply: rounds   list of {job, roundId}
Events: round.completed, round.settled.
Flags: allow-oom ]]
return function(tx)
  local PAGE = 16
  local completed = {}
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', tx.key.roundDeadlines, '-inf', Format.integer(tx.now), 'LIMIT', 0,
    PAGE)) do
    local job, round_id = Job.parse_name(name)
    local round = Round.load(tx, job, round_id)
    if round and round.state == 'open' then
      Rounds.complete(tx, round, 'deadline')
      table.insert(completed, { job = job, roundId = round_id })
    elseif not round or round.state ~= 'opening' then
      redis.call('ZREM', tx.key.roundDeadlines, name)
    end
  end
  return Reply.object({ rounds = completed })
end
