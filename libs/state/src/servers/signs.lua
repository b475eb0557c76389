-- Signs of life of engines, which show more than health checks. `serverSigns` has for each server the latest time up to
-- which its silence is explained: a caller got a token then, or the server's own count of tokens changed; a long prompt
-- without a token explains later times too. A server whose callers get no tokens for longer is in `silentServers` for
-- as long as the report is valid; servers/review decides about the server.
local Signs = {}

local PAGE = 128

-- Notes that the engine generated tokens at this time, or that its silence is explained up to this time.
function Signs.note(tx, id, at_ms) redis.call('ZADD', tx.key.serverSigns, 'GT', Format.integer(at_ms), id) end

function Signs.forget(tx, id)
  redis.call('ZREM', tx.key.serverSigns, id)
  redis.call('ZREM', tx.key.silentServers, id)
end

-- Time since the latest sign; nil without a sign.
function Signs.silence_ms(tx, id)
  local at_ms = tonumber(redis.call('ZSCORE', tx.key.serverSigns, id) or nil)
  return at_ms and tx.now - at_ms
end

-- Whether the server had a sign in the last `for_ms`.
function Signs.is_alive(tx, id, for_ms) return (Signs.silence_ms(tx, id) or math.huge) < for_ms end

-- At most 128 servers, {id, silentMs}, that a caller has reported as silent lately and that had no sign for `after_ms`.
function Signs.silent(tx, after_ms)
  local found = {}
  local page = redis.call('ZRANGE', tx.key.silentServers, 0, PAGE - 1, 'WITHSCORES')
  for index = 1, #page, 2 do
    local id, valid_until = page[index], tonumber(page[index + 1])
    local silent_ms = Signs.silence_ms(tx, id) or 0
    if valid_until > tx.now and silent_ms >= after_ms and not Settings.pause_reason(tx) then
      table.insert(found, { id = id, silentMs = silent_ms })
    else
      redis.call('ZREM', tx.key.silentServers, id)
    end
  end
  return found
end

return Signs
