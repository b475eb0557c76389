--[[ Lets servers in slow start take what they may by now; new room goes to waiters. At most 128, those that end first
come first; all of them once per call while there are fewer.
ARGV[1] JSON:
  mostSessions     number: as in acquire
Reply: warming     number: servers still in slow start
       answers, servers, more as in routing/release
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/reply"
--- @include "../includes/clock"
--- @include "includes/waiters"
local PAGE = 128
local args = cjson.decode(ARGV[1])
local answers, servers, ids = {}, {}, {}
local more = false
local page = redis.call('ZRANGE', key.warmingServers, 0, PAGE - 1, 'WITHSCORES')
if #page > 0 then
  local now = script_now()
  for index = 1, #page, 2 do
    local server = server_of(page[index])
    if server then
      rescore(server)
      table.insert(ids, server.id)
    end
    if not server or tonumber(page[index + 1]) <= now then redis.call('ZREM', key.warmingServers, page[index]) end
  end
  more = grant_waiters(ids, now, args.mostSessions, answers, servers)
end
save_changes()
return '{"warming":' .. redis.call('ZCARD', key.warmingServers) .. ',"answers":' .. encode_list(answers)
  .. ',"servers":' .. cjson.encode(servers) .. ',"more":' .. tostring(more) .. '}'
