--[[ Voids worker epochs without a heartbeat for their time to live, at most 128. Nothing expires for one more time to
live after an outage (nobody ran this script for `gapMs`, so nobody could be heard), and when at least two and more
than 30 % of the live workers would expire together.
ARGV[1] JSON: {gapMs}
Reply: expired     list of workerId
       held        'outage' | 'mass' while nothing expires: an alarm; absent otherwise
       more        true when there are further ones
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/reply"
--- @include "../includes/clock"
--- @include "includes/workers"
local PAGE = 128
local MASS_SHARE = 0.3
local args = cjson.decode(ARGV[1])
local now = now_ms()
local meta = redis.call('HMGET', key.meta, 'reaperTickMs', 'holdUntilMs', 'holdReason')
local last_tick, hold_until = tonumber(meta[1]), tonumber(meta[2])
redis.call('HSET', key.meta, 'reaperTickMs', string.format('%.0f', now))

local due = redis.call('ZRANGEBYSCORE', key.workers, '-inf', string.format('%.0f', now), 'LIMIT', 0, PAGE)

-- Until the longest time to live of those that come next is over.
local function hold(reason)
  local longest = 0
  for _, worker_id in ipairs(redis.call('ZRANGE', key.workers, 0, PAGE - 1)) do
    longest = math.max(longest, tonumber(redis.call('HGET', key.worker(worker_id), 'ttlMs')) or 0)
  end
  redis.call('HSET', key.meta, 'holdUntilMs', string.format('%.0f', now + longest), 'holdReason', reason)
  return '{"expired":[],"more":false,"held":"' .. reason .. '"}'
end

if last_tick and now - last_tick > args.gapMs then return hold('outage') end
if hold_until and now < hold_until then return '{"expired":[],"more":false,"held":"' .. meta[3] .. '"}' end
if #due == 0 then
  -- The alarm is over: those who were late have been heard again, or are gone.
  if hold_until then redis.call('HDEL', key.meta, 'holdUntilMs', 'holdReason') end
  return '{"expired":[],"more":false}'
end
if not hold_until then
  local late = redis.call('ZCOUNT', key.workers, '-inf', string.format('%.0f', now))
  if late >= 2 and late > MASS_SHARE * redis.call('ZCARD', key.workers) then return hold('mass') end
end
for _, worker_id in ipairs(due) do
  local epoch = redis.call('HGET', key.worker(worker_id), 'liveEpoch')
  if epoch then
    void_worker_epoch(worker_id, epoch)
  else
    redis.call('ZREM', key.workers, worker_id)
  end
end
return '{"expired":' .. encode_list(due) .. ',"more":' .. tostring(#due == PAGE) .. '}'
