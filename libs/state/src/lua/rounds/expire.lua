--[[ Completes rounds whose deadline has come, with the groups they have; at most 16.
ARGV[1] JSON: {}
Reply: rounds   list of {job, roundId}
Errors: none. Facts: round.completed, round.settled.
Flags: allow-oom ]]
--- @include "../includes/rounds"
local PAGE = 16
local completed = {}
for _, name in ipairs(redis.call('ZRANGEBYSCORE', key.roundDeadlines, '-inf', integer(now_ms()), 'LIMIT', 0, PAGE)) do
  local job, round_id = string.match(name, '^([^/]+)/(.+)$')
  local round = load_round(job, round_id)
  if round and round.state == 'open' then
    complete_round(round, 'deadline')
    table.insert(completed, { job = job, roundId = round_id })
  elseif not round or round.state ~= 'opening' then
    redis.call('ZREM', key.roundDeadlines, name)
  end
end
return '{"rounds":' .. encode_list(completed) .. '}'
