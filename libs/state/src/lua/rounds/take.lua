--[[ Takes one page of groups of the long-tail queue into a round that is opening; the last page opens it. Finished
samples stay; the others are pending again, with their tokens unless the round's policy is `regenerate`.
A page ends with the group that makes it 128 requests.
ARGV[1] JSON: {job, roundId}   strings
Reply: state           state of the round; no further page is needed unless it is 'opening'
       takenGroups     number, so far
       discardedRefs   list of payload references nobody names any more
Errors: ROUND_NOT_FOUND. Facts: round.progressed, round.completed, round.settled. ]]
--- @include "../includes/aborts"
local PAGE = 128
local args = cjson.decode(ARGV[1])
local round = load_round(args.job, args.roundId)
if not round then return fail('ROUND_NOT_FOUND', 'There is no round ' .. args.roundId, 'roundId') end
local hash = key.round(args.job, args.roundId)
local field = redis.call('HMGET', hash, 'takeGroups', 'takenGroups')
local take, taken = tonumber(field[1]), tonumber(field[2])

local touched = 0
while round.state == 'opening' and touched < PAGE and taken < take do
  local group_id = redis.call('ZRANGE', key.longtail(args.job), 0, 0)[1]
  -- Only opening takes from the queue, so it holds what was promised, unless a part of that was aborted.
  if not group_id then break end
  redis.call('ZREM', key.longtail(args.job), group_id)
  local group = load_group(args.job, group_id)
  touched = touched + group.samples
  taken = bump(round, 'takenGroups', 1)
  round.live = bump(round, 'liveGroups', 1)
  redis.call('HSET', key.group(args.job, group_id), 'roundId', args.roundId, 'state', 'live')
  redis.call('ZADD', key.roundGroups(args.job, args.roundId), redis.call('HINCRBY', key.meta, 'arrivalSequence', 1), group_id)
  group.state, group.roundId = 'live', args.roundId
  -- An abort flag may have come since the groups were promised.
  local dropped = honour_abort(round, group, {})
  for index = 0, dropped and -1 or group.samples - 1 do
    local request = load_request(request_id(args.job, group_id, index))
    if request.state ~= 'finished' then
      if round.policy == 'regenerate' then waste_tokens(request, round, nil, 0) end
      move_request(request, group, 'pending')
    end
  end
  if not dropped and group.finished == group.samples then accept_group(round, group) end
end
if round.state == 'opening' and (taken >= take or touched < PAGE) then
  redis.call('HSET', hash, 'state', 'open')
  redis.call('SREM', key.sweeps, args.job .. '/' .. args.roundId)
  round.state = 'open'
  review_round(round)
end
return cjson.encode({ state = round.state, takenGroups = taken }):sub(1, -2)
  .. ',"discardedRefs":' .. encode_list(discarded_refs) .. '}'
