--[[ One page of the sessions, with the set of those that are idle.
ARGV[1] JSON: {cursor: string, '0' to begin; repair: boolean}
Reply: cursor      string, '0' at the end
       findings    list of {check, where, says, repaired}
       sessions    list of [sessionId, packed binding, leases]
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/reply"
--- @include "../includes/clock"
--- @include "../routing/includes/sessions"
--- @include "includes/findings"
local PAGE = 128
local args = cjson.decode(ARGV[1])
local sessions = {}
local page = redis.call('HSCAN', key.sessions, args.cursor, 'COUNT', PAGE)
for index = 1, #page[2], 2 do
  local session_id, packed = page[2][index], page[2][index + 1]
  local binding = unpack_binding(packed)
  local idle = redis.call('ZSCORE', key.idleSessions, session_id) ~= false
  if not binding.leases then
    found('session-unreadable', session_id, packed)
  else
    if idle ~= (binding.leases <= 0) then
      if args.repair and idle then redis.call('ZREM', key.idleSessions, session_id) end
      if args.repair and not idle then redis.call('ZADD', key.idleSessions, string.format('%.0f', now_ms()), session_id) end
      found('session-idle', session_id, packed, args.repair)
    end
    table.insert(sessions, { session_id, packed, binding.leases })
  end
end
return '{"cursor":' .. cjson.encode(page[1]) .. ',"findings":' .. encode_list(findings) .. ',"sessions":'
  .. encode_list(sessions) .. '}'
