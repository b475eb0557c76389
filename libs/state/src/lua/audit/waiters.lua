--[[ One page of the parked acquires against their lane and deadline; or one page of a lane or of the deadlines against
the parked acquires.
ARGV[1] JSON: {lane?: string; deadlines?: boolean; cursor: string, '0' to begin; repair: boolean}
Reply: cursor      string, '0' at the end
       findings    list of {check, where, says, repaired}
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/reply"
--- @include "../includes/clock"
--- @include "../routing/includes/waiters"
--- @include "includes/findings"
local PAGE = 128
local args = cjson.decode(ARGV[1])
local lane, page = optional(args.lane), nil

if lane or optional(args.deadlines) then
  local index = lane and key.serverLane(lane) or key.acquireDeadlines
  page = redis.call('ZSCAN', index, args.cursor, 'COUNT', PAGE)
  for position = 1, #page[2], 2 do
    local waiter = waiter_of(page[2][position])
    if not waiter or (lane and waiter.lane ~= lane) then
      if args.repair then redis.call('ZREM', index, page[2][position]) end
      found(lane and 'lane-without-waiter' or 'deadline-without-waiter', page[2][position], lane, args.repair)
    end
  end
else
  page = redis.call('HSCAN', key.acquireWaiters, args.cursor, 'COUNT', PAGE)
  for position = 1, #page[2], 2 do
    local waiter = waiter_of(page[2][position])
    local score = redis.call('ZSCORE', key.serverLane(waiter.lane), waiter.acquireId)
    local deadline = redis.call('ZSCORE', key.acquireDeadlines, waiter.acquireId)
    if not deadline or tonumber(score or nil) ~= tonumber(waiter.score) then
      if args.repair then save_waiter(waiter) end
      found('waiter-not-in-lane', waiter.acquireId, waiter.lane, args.repair)
    end
    if redis.call('HEXISTS', key.leases, waiter.acquireId) == 1 then
      found('waiter-with-lease', waiter.acquireId, waiter.lane)
    end
  end
end
return '{"cursor":' .. cjson.encode(page[1]) .. ',"findings":' .. encode_list(findings) .. '}'
