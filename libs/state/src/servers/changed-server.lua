-- The end of every script that changed one server: new room goes to waiters.
local ChangedServer = {}

function ChangedServer.reply(tx, server)
  local answers, servers = {}, {}
  Servers.publish(tx, server)
  local more = Waiters.grant(tx, { server.id }, answers, servers)
  Leases.save(tx)
  return '{"serverId":' .. cjson.encode(server.id) .. ',"epoch":"' .. server.epoch
    .. '","state":"' .. Servers.shown_state(tx, server) .. '","inflight":' .. server.load .. ',"capacity":'
    .. Servers.capacity(tx, server)
    .. (server.drainUntilMs and ',"drainUntilMs":' .. Format.integer(server.drainUntilMs) or '')
    .. ',"answers":' .. Reply.list(answers) .. ',"servers":' .. Reply.servers(servers) .. ',"more":' .. tostring(more)
    .. '}'
end

return ChangedServer
