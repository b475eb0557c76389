-- Sessions that have ended, or have moved to another server, and whose engines must be notified (`/close_session` of
-- SGLang), so that an engine gives up their KV cache before the cache of live sessions. An entry is
-- `serverId|epoch|sessionId`.
local EndedSessions = {}

local MAX_ENTRIES = 16384 -- an engine also evicts old sessions by itself

function Tx.fields.closing_servers() return {} end -- serverId -> whether its engine closes sessions

local function closes_sessions(tx, server_id)
  local closes = tx.closing_servers[server_id]
  if closes == nil then
    local packed = redis.call('HGET', tx.key:server(server_id), 'capabilities')
    closes = packed and cjson.decode(packed).sessionClose == true or false
    tx.closing_servers[server_id] = closes
  end
  return closes
end

-- Notes that a session leaves the server of its binding, if the engine of the server closes sessions.
function EndedSessions.note(tx, session_id, binding)
  if binding.epoch == BindingRecord.NO_EPOCH or not closes_sessions(tx, binding.serverId) then return end
  local entry = table.concat({ binding.serverId, binding.epoch, session_id }, '|')
  redis.call('ZADD', tx.key.endedSessions, tx.now_text, entry)
  local surplus = redis.call('ZCARD', tx.key.endedSessions) - MAX_ENTRIES
  if surplus > 0 then redis.call('ZREMRANGEBYRANK', tx.key.endedSessions, 0, surplus - 1) end
end

return EndedSessions
