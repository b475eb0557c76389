--[[ Scores one page of servers again after the settings of the pool were changed; new room goes to waiters.
ARGV[1] JSON: {cursor}   string
Reply: {cursor} and WaiterAnswers
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 64
  local slow_start = Settings.number(tx, 'slowStartMs') or 0
  local page, cursor = Pages.scan('ZSCAN', tx.key.servers, args.cursor, PAGE)
  local ids = {}
  for index = 1, #page, 2 do
    local server = Servers.get(tx, page[index])
    if server then
      Servers.publish(tx, server)
      table.insert(ids, server.id)
      local warm_ms = (server.startedAtMs or 0) + slow_start
      if slow_start > 0 and warm_ms > tx.now then
        redis.call('ZADD', tx.key.warmingServers, Format.integer(warm_ms), server.id)
      end
    end
  end
  return Waiters.reply(tx, ids, { cursor = cursor })
end
