--[[ Scores servers in slow start again, whose capacity has grown; new room goes to waiters. At most 128 servers, in the
order in which their slow start ends.
Reply: {warming: number of servers still in slow start} and WaiterAnswers
Flags: allow-oom ]]
return function(tx)
  local PAGE = 128
  local ids = {}
  local page = redis.call('ZRANGE', tx.key.warmingServers, 0, PAGE - 1, 'WITHSCORES')
  for index = 1, #page, 2 do
    local server = Servers.get(tx, page[index])
    if server then
      Servers.rescore(tx, server)
      table.insert(ids, server.id)
    end
    if not server or tonumber(page[index + 1]) <= tx.now then redis.call('ZREM', tx.key.warmingServers, page[index]) end
  end
  return Waiters.reply(tx, ids, { warming = redis.call('ZCARD', tx.key.warmingServers) })
end
