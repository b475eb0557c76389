-- The end of every script that changed one server: new room goes to waiters.
local ChangedServer = {}

function ChangedServer.reply(tx, server)
  Servers.publish(tx, server)
  return Waiters.reply(tx, { server.id }, function()
    return { serverId = server.id, epoch = server.epoch, state = Servers.shown_state(tx, server),
      inflight = server.load, capacity = Servers.capacity(tx, server), drainUntilMs = server.drainUntilMs }
  end)
end

return ChangedServer
