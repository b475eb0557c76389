--[[ Gives back one page of the accepted groups of a cancelled round: to the long-tail queue, or dropped.
A page ends with the group that makes it 32 requests.
ARGV[1] JSON: {job, roundId}
Reply: aborts          list of {requestId, attempt, workerId, workerEpoch}
       more            boolean
Errors: none. Facts: longtail.requeued, group.dropped, round.settled, request.lost.
Flags: allow-oom ]]
--- @include "../includes/lost"
local PAGE = 32
local args = cjson.decode(ARGV[1])
local round = load_round(args.job, args.roundId)
local accepted = key.roundAccepted(args.job, args.roundId)
local aborts, touched = {}, 0
while round and round.state == 'cancelled' and touched < PAGE do
  local group_id = redis.call('LPOP', accepted)
  if not group_id then break end
  local group = load_group(args.job, group_id)
  touched = touched + (group and group.launched or 1)
  if not group then
    lose_live_group(round, group_id)
  else
    redis.call('HSET', key.group(args.job, group_id), 'state', 'live')
    redis.call('ZADD', key.roundGroups(args.job, args.roundId), group.arrival, group_id)
    group.state = 'live'
    if not honour_abort(round, group, aborts) and group.live == 0 then settle_group(round, group) end
  end
end
return '{"aborts":' .. encode_list(aborts) .. ',"more":' .. tostring(touched >= PAGE)
  .. '}'
