--[[ Removes servers in drain that have no leases, or whose deadline is over; leases that are left are expired. Checks
at most 128 servers.
ARGV[1] JSON: {cursor: number, by deadline}
Reply: RemovedServers
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 128
  local STAYS_AWAY_MS = 3600000 -- for so long a list does not register the server again, unless it starts again
  local removed = {}
  local from = args.cursor or 0
  local page = redis.call('ZRANGE', tx.key.drainingServers, from, from + PAGE - 1, 'WITHSCORES')
  local now = #page > 0 and tx.now
  for index = 1, #page, 2 do
    local server = Servers.get(tx, page[index])
    if not server then
      redis.call('ZREM', tx.key.drainingServers, page[index])
    elseif server.load == 0 or tonumber(page[index + 1]) <= now then
      local listed = redis.call('HMGET', tx.key:server(server.id), 'drainedBy', 'listedAs')
      Servers.forget(tx, server)
      if listed[1] ~= 'list' then
        local engine = (ServerRecord.instance_of(server) or '') .. '\n' .. (listed[2] or '')
        redis.call('SET', tx.key:drained(server.id), engine, 'PX', STAYS_AWAY_MS)
      end
      table.insert(removed, { serverId = server.id, leases = server.load })
    end
  end
  return Reply.object({ removed = removed, cursor = #page == 2 * PAGE and from + PAGE - #removed or nil })
end
