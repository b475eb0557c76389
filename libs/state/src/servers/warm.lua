--[[ Lets servers in slow start take what they may by now; new room goes to waiters. At most 128, those that end first
come first; all of them once per call while there are fewer.
ARGV[1] JSON: {}
Reply: warming     number: servers still in slow start
       answers, servers, more as in leases/release
Errors: none. Events: none.
Flags: allow-oom ]]
return function(tx)
  local PAGE = 128
  local answers, servers, ids = {}, {}, {}
  local more = false
  local page = redis.call('ZRANGE', tx.key.warmingServers, 0, PAGE - 1, 'WITHSCORES')
  if #page > 0 then
    local now = tx.now
    for index = 1, #page, 2 do
      local server = Servers.get(tx, page[index])
      if server then
        Servers.rescore(tx, server)
        table.insert(ids, server.id)
      end
      if not server or tonumber(page[index + 1]) <= now then redis.call('ZREM', tx.key.warmingServers, page[index]) end
    end
    more = Waiters.grant(tx, ids, answers, servers)
  end
  Leases.save(tx)
  return '{"warming":' .. redis.call('ZCARD', tx.key.warmingServers) .. ',"answers":' .. Reply.list(answers)
    .. ',"servers":' .. Reply.servers(servers) .. ',"more":' .. tostring(more) .. '}'
end
