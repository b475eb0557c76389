-- What an engine said of its own load, with its age. A correction at most: the leases are the truth.
local LoadReport = {}

function LoadReport.of(tx, server, now)
  local field = redis.call('HMGET', tx.key:server(server.id), 'loadRunning', 'loadWaiting', 'kvUse', 'loadPreemptions',
    'loadAtMs')
  if not field[5] then return nil end
  return {
    running = tonumber(field[1]),
    waiting = tonumber(field[2]),
    kvUse = tonumber(field[3] or nil),
    preemptions = tonumber(field[4] or nil),
    ageMs = math.max(0, now - tonumber(field[5])),
  }
end

return LoadReport
