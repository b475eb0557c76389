--[[ Puts one page of servers where the settings of the pool say, after these were changed; new room goes to waiters.
ARGV[1] JSON:
  cursor           string, '0' to begin
  mostSessions     number: as in acquire
Reply: cursor      string, '0' at the end
       answers, servers, more as in routing/release
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/reply"
--- @include "../includes/clock"
--- @include "includes/waiters"
local PAGE = 64
local args = cjson.decode(ARGV[1])
local slow_start = number_setting('slowStartMs') or 0
local page = redis.call('ZSCAN', key.servers, args.cursor, 'COUNT', PAGE)
local answers, servers, ids = {}, {}, {}
for index = 1, #page[2], 2 do
  local server = server_of(page[2][index])
  if server then
    publish_state(server)
    table.insert(ids, server.id)
    local warm_ms = (server.startedAtMs or 0) + slow_start
    if slow_start > 0 and warm_ms > script_now() then
      redis.call('ZADD', key.warmingServers, string.format('%.0f', warm_ms), server.id)
    end
  end
end
local more = grant_waiters(ids, script_now(), args.mostSessions, answers, servers)
save_changes()
return '{"cursor":' .. cjson.encode(page[1]) .. ',"answers":' .. encode_list(answers) .. ',"servers":'
  .. cjson.encode(servers) .. ',"more":' .. tostring(more) .. '}'
