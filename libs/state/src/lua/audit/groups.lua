--[[ Some groups against their requests: the counters, the long-tail queue, the pending queue and what workers hold.
ARGV[1] JSON: {job; groupIds: list; about 128 requests in all; repair: boolean}
Reply: findings    list of {check, where, says, repaired}
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/reply"
--- @include "../includes/settling"
--- @include "includes/findings"
local args = cjson.decode(ARGV[1])
-- The state of a request is the truth; its group's counters and the indexes follow from it.
local function mend(...)
  if args.repair then redis.call(...) end
end
for _, group_id in ipairs(args.groupIds) do
  local group = load_group(args.job, group_id)
  local live, finished = 0, 0
  for index = 0, group and group.launched - 1 or -1 do
    local id = request_id(args.job, group_id, index)
    local request = load_request(id)
    if not request then
      found('request-missing', id)
    else
      if LIVE[request.state] then live = live + 1 end
      if request.state == 'finished' then finished = finished + 1 end
      if HELD[request.state] and redis.call('SISMEMBER', key.workerAttempts(request.workerId, request.workerEpoch),
        id) == 0 then
        mend('SADD', key.workerAttempts(request.workerId, request.workerEpoch), id)
        found('request-not-with-worker', id, request.state, args.repair)
      end
      local queued = redis.call('ZSCORE', key.pending(args.job), id) ~= false
      if queued ~= (request.state == 'pending') then
        if args.repair and queued then redis.call('ZREM', key.pending(args.job), id) end
        if args.repair and not queued then enqueue(args.job, { id }, request.attempt ~= UNCLAIMED) end
        found('request-pending-queue', id, request.state, args.repair)
      end
    end
  end
  if group then
    local where = args.job .. '/' .. group_id
    local says = string.format('live %d, counted %d; finished %d, counted %d', group.live, live, group.finished, finished)
    if group.live ~= live or group.finished ~= finished then
      mend('HSET', key.group(args.job, group_id), 'live', live, 'finished', finished)
      found('group-counters', where, says, args.repair)
    end
    local queued = redis.call('ZSCORE', key.longtail(args.job), group_id) ~= false
    if queued ~= (group.state == 'unfinished') then
      if args.repair and queued then redis.call('ZREM', key.longtail(args.job), group_id) end
      local place = redis.call('HGET', key.group(args.job, group_id), 'longtailSequence')
      if args.repair and not queued and place then
        redis.call('ZADD', key.longtail(args.job), integer(is_whole(group) and place - FINISHED_FIRST or place), group_id)
      end
      found('group-longtail-queue', where, group.state, args.repair)
    end
  elseif redis.call('ZSCORE', key.longtail(args.job), group_id) then
    mend('ZREM', key.longtail(args.job), group_id)
    found('longtail-without-group', args.job .. '/' .. group_id, '', args.repair)
  end
end
return '{"findings":' .. encode_list(findings) .. '}'
