--[[ Answers parked acquires whose time is over, at most 128.
ARGV[1] JSON: {}
Reply: answers     list: {acquireId, replyTo, error, reason?}: WAIT_TIMEOUT when all that fit are full,
                   NO_SERVER_AVAILABLE when none takes leases or fits, POOL_PAUSED while the pool is paused or its weights
                   change, FENCED when the worker epoch is void meanwhile
       servers     {}
       more        true when there are further ones
       waiting     number: those still parked
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/reply"
--- @include "../includes/clock"
--- @include "includes/waiters"
local PAGE = 128
local now = now_ms()
local answers = {}
local due = redis.call('ZRANGEBYSCORE', key.acquireDeadlines, '-inf', string.format('%.0f', now), 'LIMIT', 0, PAGE)
for _, acquire_id in ipairs(due) do
  local waiter = waiter_of(acquire_id)
  if waiter then
    local code, reason = waiter_error(waiter, now, true)
    remove_waiter(waiter)
    table.insert(answers, { acquireId = acquire_id, replyTo = waiter.replyTo, error = code, reason = reason })
  else
    redis.call('ZREM', key.acquireDeadlines, acquire_id)
  end
end
return '{"answers":' .. encode_list(answers) .. ',"servers":{},"more":' .. tostring(#due == PAGE)
  .. ',"waiting":' .. redis.call('HLEN', key.acquireWaiters) .. '}'
