-- The breaker, off unless the pool sets `breakerFailures`: so many calls of a server that failed one after the other
-- make it suspect for `breakerOpenMs`, though it answers probes. Then one more failure breaks it again, and a finished
-- call ends the matter. It never leaves fewer than half of the servers that are watched, nor the last one.
local Breaker = {}

local BREAKER_OPEN_MS = 10000

local function failures_of(tx, server)
  local epoch, failures, until_ms = string.match(redis.call('HGET', tx.key.serverFailures, server.id) or '',
    '^(%w+)|(%d+)|(%d+)$')
  if epoch ~= server.epoch then return 0, 0 end
  return tonumber(failures), tonumber(until_ms)
end

function Breaker.is_broken(tx, server)
  if redis.call('EXISTS', tx.key.serverFailures) == 0 then return false end
  local _, until_ms = failures_of(tx, server)
  return until_ms > tx.now
end

-- What a call on this server came to. True when that broke it.
function Breaker.note_outcome(tx, server, outcome)
  local most = Settings.number(tx, 'breakerFailures')
  if not most then return false end
  local failures, until_ms = failures_of(tx, server)
  if outcome == 'finished' then
    if failures > 0 then redis.call('HDEL', tx.key.serverFailures, server.id) end
    return false
  end
  if until_ms > tx.now then return false end
  failures = failures + 1
  local left = redis.call('SCARD', tx.key.usableServers) - 1
  local breaks = failures >= most and server.state == 'ready' and Servers.is_usable(tx, server) and left > 0
    and left * 2 >= redis.call('ZCARD', tx.key.watchedServers)
  if breaks then
    failures = most - 1
    until_ms = tx.now + (Settings.number(tx, 'breakerOpenMs') or BREAKER_OPEN_MS)
    server.state = 'suspect'
    Servers.publish(tx, server)
  end
  redis.call('HSET', tx.key.serverFailures, server.id, string.format('%s|%.0f|%.0f', server.epoch, math.min(failures,
    most), until_ms))
  return breaks
end

return Breaker
