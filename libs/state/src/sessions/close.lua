--[[ Gives sessions that have ended and whose engines must be notified, at most 64, and forgets sessions of which the
engine was notified. Another session is given again after 30 s, as long as its server has the same epoch.
ARGV[1] JSON: {notified}: entries of earlier replies whose engines have answered
Reply: closes   list of {entry, serverId, endpoint, dialect, sessionId}
       more     true when there may be further sessions
Flags: allow-oom ]]
local ENTRY = '^([^|]*)|(%w*)|(.*)$'

-- The server and the session of an entry; nil if the server has another epoch now, or the session is back on it.
local function read(tx, entry)
  local server_id, epoch, session_id = string.match(entry, ENTRY)
  local server, binding = Servers.get(tx, server_id), Sessions.get(tx, session_id)
  if not server or server.epoch ~= epoch then return nil end
  if binding and binding.serverId == server_id and binding.epoch == epoch then return nil end
  return server, session_id
end

return function(tx, args)
  local PAGE, REPEAT_MS = 64, 30000
  local key, closes = tx.key.endedSessions, {}
  if args.notified[1] then redis.call('ZREM', key, unpack(args.notified)) end
  local due = redis.call('ZRANGEBYSCORE', key, '-inf', tx.now_text, 'LIMIT', 0, PAGE)
  for _, entry in ipairs(due) do
    local server, session_id = read(tx, entry)
    if server then
      local address = ServerRecord.address_of(server)
      redis.call('ZADD', key, Format.integer(tx.now + REPEAT_MS), entry)
      closes[#closes + 1] = { entry = entry, serverId = server.id, endpoint = address.endpoint,
        dialect = address.dialect, sessionId = session_id }
    else
      redis.call('ZREM', key, entry)
    end
  end
  return Reply.object({ closes = closes, more = #due == PAGE })
end
