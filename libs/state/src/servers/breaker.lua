-- The breaker: effects of failed calls and busy answers of a server on its next leases. The state is in the record of
-- the server (`trouble`), which every choice reads, so that a server without trouble costs no call of Redis.
-- busy: no new leases for the time that the engine names, else for BUSY_MS, twice as long with each busy answer in a
--   row.
-- failed: after `breakerFailures` failures in a row the server is suspect for `breakerOpenMs`, though it answers
--   probes, unless fewer than half of the watched servers would be left, or none.
-- silent: callers of the server get no tokens (signs.lua). The server is suspect as after failures, and its leases are
--   expired, so that calls move; twice as long with each silence in a row.
-- After these pauses the server gets one lease. If this call has not ended badly within TRIAL_MS, the server gets other
-- leases; after a silence it gets only one at a time until a call has got a token. One more failure then breaks the
-- server again. A finished call ends the trouble.
local Breaker = {}

local FAILURES, OPEN_MS = 5, 10000
local BUSY_MS, MAX_BUSY_MS = 1000, 30000
local MAX_OPEN_MS = 300000
local TRIAL_MS = 1000

local function save(tx, server, trouble)
  server.trouble = trouble
  if not trouble or trouble.failures == 0 then FailingServers.forget(tx, server.id) end
  ServerHash.change(tx, server.id, { trouble = trouble or false })
  -- Upkeep of servers in slow start gives the server room again (servers/warm).
  if trouble and trouble.untilMs > tx.now then
    redis.call('ZADD', tx.key.warmingServers, 'GT', Format.integer(trouble.untilMs), server.id)
  end
  server.most = nil
  Servers.rescore_later(tx, server)
end

-- Notes a lease on a server with trouble: the first lease after its pause has to show that the server serves again.
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

-- Whether enough servers are left without this one: at least half of the watched servers, and at least one.
local function may_break(tx, server)
  local left = redis.call('SCARD', tx.key.usableServers) - 1
  return server.state == 'ready' and Servers.is_usable(tx, server) and left > 0
    and left * 2 >= redis.call('ZCARD', tx.key.watchedServers)
end

local function open_ms(tx) return Settings.number(tx, 'breakerOpenMs') or OPEN_MS end

local function new_trouble() return { failures = 0, refusals = 0, untilMs = 0, isUntried = false } end

local function break_until(tx, server, trouble, until_ms)
  trouble.isUntried, trouble.untilMs = true, until_ms
  server.state = 'suspect'
  Servers.publish(tx, server)
  save(tx, server, trouble)
end

-- Counts a failed call. True when it broke the server.
local function note_failure(tx, server, trouble, most)
  -- The call started before the pause of the server.
  if trouble.isUntried and trouble.untilMs > tx.now then return false end
  trouble.failures = math.min(trouble.failures + 1, most)
  if trouble.failures < most or not may_break(tx, server) then
    save(tx, server, trouble)
    return false
  end
  trouble.failures = most - 1
  break_until(tx, server, trouble, tx.now + open_ms(tx))
  return true
end

-- Breaks a server whose callers get no tokens, if the server may be broken; its leases are expired under the new epoch.
-- True when the server was broken. A server that takes no leases may always be broken.
function Breaker.note_silence(tx, server, new_epoch)
  if Servers.is_usable(tx, server) and not may_break(tx, server) then return false end
  local trouble = server.trouble or new_trouble()
  trouble.refusals, trouble.isSilent = trouble.refusals + 1, true
  Servers.begin_epoch(tx, server, new_epoch)
  break_until(tx, server, trouble,
    tx.now + math.min(open_ms(tx) * 2 ^ math.min(trouble.refusals - 1, 10), MAX_OPEN_MS))
  return true
end

-- Ends the trouble of a silent server, since a call on it has got a token.
function Breaker.note_token(tx, server)
  save(tx, server, nil)
  redis.call('ZADD', tx.key.warmingServers, Format.integer(tx.now), server.id)
end

-- Notes the reports of one caller about its servers. `limits`: {silentAfterMs: 0 for never, prefillTokensPerSecond}
function Breaker.note_reports(tx, reports, limits, valid_ms)
  local is_paused = Settings.pause_reason(tx) ~= nil
  for _, report in ipairs(reports) do
    local id = report.serverId
    local server = ServerHash.read(tx, id)
    if server and server.epoch == report.epoch then
      local allowed_ms = 1000 * (report.contextTokens or 0) / limits.prefillTokensPerSecond
      Signs.note(tx, id, is_paused and tx.now or tx.now - report.silentMs + allowed_ms)
      if report.tokens > 0 and server.trouble and server.trouble.isSilent then
        Breaker.note_token(tx, Servers.get(tx, id))
      end
      if report.observedStreamInterval then EngineReport.note_interval(tx, id, report.observedStreamInterval) end
      local after_ms = limits.silentAfterMs
      if after_ms > 0 and report.silentMs >= after_ms and not Signs.is_alive(tx, id, after_ms) then
        redis.call('ZADD', tx.key.silentServers, Format.integer(tx.now + valid_ms), id)
      end
    end
  end
  Servers.write_scores(tx)
end

-- Notes the outcome of a call of a request on this server: 'finished', 'failed' or 'busy'; `retry_after_ms`: pause that
-- a busy server requests, or nil. True when the outcome broke the server.
function Breaker.note_outcome(tx, server, request_id, outcome, retry_after_ms)
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
  trouble = trouble or new_trouble()
  if outcome == 'busy' then
    note_busy(tx, server, trouble, retry_after_ms)
    return false
  end
  local most = Settings.number(tx, 'breakerFailures') or FAILURES
  if most == 0 then return false end
  FailingServers.note(tx, server.id, request_id)
  return note_failure(tx, server, trouble, most)
end

return Breaker
