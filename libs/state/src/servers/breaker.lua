-- The breaker: what failed calls and busy answers of a server mean for its next leases. The record of the server, which
-- every choice reads, holds it (`trouble`), so that a server without trouble costs no call of Redis.
-- busy: no new leases for the time that the engine names, else for BUSY_MS, twice as long with each busy answer in a
--   row.
-- failed: after `breakerFailures` in a row the server is suspect for `breakerOpenMs`, though it answers probes, unless
--   fewer than half of the servers that are watched would be left, or none.
-- After either time the server gets one lease; if that has not ended badly within TRIAL_MS, it gets others. One more
-- failure then breaks it again. A finished call ends the matter.
local Breaker = {}

local FAILURES, OPEN_MS = 5, 10000
local BUSY_MS, MAX_BUSY_MS = 1000, 30000
local TRIAL_MS = 1000

local function save(tx, server, trouble)
  server.trouble = trouble
  ServerHash.change(tx, server.id, { trouble = trouble or false })
  -- Upkeep of servers in slow start gives it room again (servers/warm).
  if trouble and trouble.untilMs > tx.now then
    redis.call('ZADD', tx.key.warmingServers, 'GT', Format.integer(trouble.untilMs), server.id)
  end
  server.most = nil
  Servers.rescore_later(tx, server)
end

-- A lease was granted on a server with trouble: the first one after its pause has to show that it serves again.
function Breaker.note_grant(tx, server)
  local trouble = server.trouble
  if not trouble.isUntried then return end
  trouble.isUntried, trouble.untilMs = false, tx.now + TRIAL_MS
  save(tx, server, trouble)
end

local function note_busy(tx, server, trouble, retry_after_ms)
  -- Calls that were sent together are refused together: only the first makes the next pause longer.
  local is_paused = trouble.isUntried and trouble.untilMs > tx.now
  if is_paused and not retry_after_ms then return end
  if not is_paused then trouble.refusals = trouble.refusals + 1 end
  local pause_ms = retry_after_ms or math.min(BUSY_MS * 2 ^ math.min(trouble.refusals - 1, 10), MAX_BUSY_MS)
  trouble.untilMs, trouble.isUntried = math.max(trouble.untilMs, tx.now + pause_ms), true
  save(tx, server, trouble)
end

-- True when the failure broke it.
local function note_failure(tx, server, trouble, most)
  -- The call is from before its pause.
  if trouble.isUntried and trouble.untilMs > tx.now then return false end
  trouble.failures = math.min(trouble.failures + 1, most)
  local left = redis.call('SCARD', tx.key.usableServers) - 1
  local breaks = trouble.failures >= most and server.state == 'ready' and Servers.is_usable(tx, server) and left > 0
    and left * 2 >= redis.call('ZCARD', tx.key.watchedServers)
  if breaks then
    trouble.failures, trouble.isUntried = most - 1, true
    trouble.untilMs = tx.now + (Settings.number(tx, 'breakerOpenMs') or OPEN_MS)
    server.state = 'suspect'
    Servers.publish(tx, server)
  end
  save(tx, server, trouble)
  return breaks
end

-- What a call on this server came to; `retry_after_ms` is that of a busy one, or nil. True when that broke it.
function Breaker.note_outcome(tx, server, outcome, retry_after_ms)
  local trouble = server.trouble
  if outcome == 'finished' then
    if not trouble then return false end
    local stays = trouble.untilMs > tx.now and trouble.isUntried
    if not stays then
      save(tx, server, nil)
    elseif trouble.failures + trouble.refusals > 0 then
      trouble.failures, trouble.refusals = 0, 0
      save(tx, server, trouble)
    end
    return false
  end
  trouble = trouble or { failures = 0, refusals = 0, untilMs = 0, isUntried = false }
  if outcome == 'busy' then
    note_busy(tx, server, trouble, retry_after_ms)
    return false
  end
  local most = Settings.number(tx, 'breakerFailures') or FAILURES
  return most > 0 and note_failure(tx, server, trouble, most)
end

return Breaker
