--- @include "keys"
-- The clock by which parked acquires and claims wait: it stands still while the pool is paused or its weights change, so
-- that their deadline starts (or goes on) afterwards, and none of them has to be touched for that. It stands still for
-- MOST_PAUSE_MS at most: then acquires are answered POOL_PAUSED and claims get nothing, since nothing waits for ever.
local MOST_PAUSE_MS = 300000
local known_waiting_ms

local function pause_so_far(paused_at, now)
  return paused_at and math.min(MOST_PAUSE_MS, math.max(0, now - paused_at)) or 0
end

local function waiting_ms(now)
  if not known_waiting_ms then
    local field = redis.call('HMGET', key.meta, 'pausedAtMs', 'pausedForMs')
    known_waiting_ms = now - (tonumber(field[2] or nil) or 0) - pause_so_far(tonumber(field[1] or nil), now)
  end
  return known_waiting_ms
end

-- By hand, or while the weights change: nothing is granted and nothing is claimed.
local function pool_stands_still()
  local field = redis.call('HMGET', key.settings, 'paused', 'syncing')
  return (field[1] or field[2]) and true or false
end

local function stop_waiting_clock(now)
  redis.call('HSETNX', key.meta, 'pausedAtMs', string.format('%.0f', now))
  known_waiting_ms = nil
end

-- To be called after one of the reasons has gone; the other one may keep it standing.
local function start_waiting_clock(now)
  if pool_stands_still() then return end
  local paused_at = tonumber(redis.call('HGET', key.meta, 'pausedAtMs') or nil)
  if not paused_at then return end
  redis.call('HINCRBY', key.meta, 'pausedForMs', string.format('%.0f', pause_so_far(paused_at, now)))
  redis.call('HDEL', key.meta, 'pausedAtMs')
  known_waiting_ms = nil
end
