--- @include "waiters"
-- The end of every script that changed one server: new room goes to waiters.
local function changed_server(server, now, most_sessions)
  local answers, servers = {}, {}
  publish_state(server)
  local more = grant_waiters({ server.id }, now, most_sessions, answers, servers)
  save_changes()
  return '{"serverId":' .. cjson.encode(server.id) .. ',"epoch":"' .. server.epoch
    .. '","state":"' .. shown_state(server) .. '","inflight":' .. server.load .. ',"capacity":' .. capacity(server)
    .. (server.drainUntilMs and ',"drainUntilMs":' .. string.format('%.0f', server.drainUntilMs) or '')
    .. ',"answers":' .. encode_list(answers) .. ',"servers":' .. cjson.encode(servers) .. ',"more":' .. tostring(more)
    .. '}'
end
