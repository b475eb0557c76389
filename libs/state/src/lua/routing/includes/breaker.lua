--- @include "servers"
-- The breaker, off unless the pool sets `breakerFailures`: so many calls of a server that failed one after the other make
-- it suspect for `breakerOpenMs`, though it answers probes. Then one more failure breaks it again, and a finished call
-- ends the matter. It never leaves fewer than half of the servers that are watched, nor the last one.
local BREAKER_OPEN_MS = 10000

local function failures_of(server)
  local epoch, failures, until_ms = string.match(redis.call('HGET', key.serverFailures, server.id) or '', '^(%w+)|(%d+)|(%d+)$')
  if epoch ~= server.epoch then return 0, 0 end
  return tonumber(failures), tonumber(until_ms)
end

local function is_broken(server)
  if redis.call('EXISTS', key.serverFailures) == 0 then return false end
  local _, until_ms = failures_of(server)
  return until_ms > script_now()
end

-- What a call on this server came to. True when that broke it.
local function note_outcome(server, outcome)
  local most = number_setting('breakerFailures')
  if not most then return false end
  local failures, until_ms = failures_of(server)
  if outcome == 'finished' then
    if failures > 0 then redis.call('HDEL', key.serverFailures, server.id) end
    return false
  end
  if until_ms > script_now() then return false end
  failures = failures + 1
  local left = redis.call('SCARD', key.usableServers) - 1
  local breaks = failures >= most and server.state == 'ready' and is_usable(server) and left > 0
    and left * 2 >= redis.call('ZCARD', key.watchedServers)
  if breaks then
    failures = most - 1
    until_ms = script_now() + (number_setting('breakerOpenMs') or BREAKER_OPEN_MS)
    server.state = 'suspect'
    publish_state(server)
  end
  redis.call('HSET', key.serverFailures, server.id, string.format('%s|%.0f|%.0f', server.epoch, math.min(failures, most), until_ms))
  return breaks
end
