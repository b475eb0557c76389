--[[ Looks at servers that were not heard of, the longest silent first: suspect after `suspectAfterMs`, failed after
`failedAfterMs` (a new epoch: leases and sessions are void). When more than half of the watched ones are silent at
once, that says more about the network or about us: none fails and suspects are held, that is they still take leases.
The last server that takes leases is held in the same way. A new start that was never heard of is `pending` and not
looked at: it may be loading weights.
ARGV[1] JSON:
  suspectAfterMs, failedAfterMs   number
  offset                          number: where the page of 128 begins, by silence
  newEpoch                        string: the epoch of those that fail
  mostSessions                    number: as in acquire
Reply: silent      number: servers silent for suspectAfterMs
       watched     number
       held        true in a mass failure: an alarm
       suspected, failed   lists of serverId that changed
       next        number: offset of the next page; absent at the end
       answers, servers, more as in routing/release
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/reply"
--- @include "../includes/clock"
--- @include "includes/waiters"
local PAGE = 128
local args = cjson.decode(ARGV[1])
local now = now_ms()
local limit = string.format('%.0f', now - args.suspectAfterMs)
local watched = redis.call('ZCARD', key.watchedServers)
local silent = redis.call('ZCOUNT', key.watchedServers, '-inf', limit)
local is_mass = silent * 2 > watched
local suspected, failed, regained = {}, {}, {}

-- Without it the pool would have no server at all.
local function is_last(server)
  return is_usable(server) and redis.call('SCARD', key.usableServers) <= 1
end

local page = redis.call('ZRANGEBYSCORE', key.watchedServers, '-inf', limit, 'WITHSCORES', 'LIMIT', args.offset, PAGE)
for index = 1, #page, 2 do
  local id, last_heard = page[index], tonumber(page[index + 1])
  local server = server_of(id)
  local held = is_mass or (server ~= nil and is_last(server))
  if not server then
    redis.call('ZREM', key.watchedServers, id)
  elseif not held and now - last_heard >= args.failedAfterMs then
    fail_server(server, args.newEpoch)
    table.insert(failed, id)
  elseif server.state == 'ready' or (server.state == 'suspect' and server.held ~= held) then
    if server.state == 'ready' then table.insert(suspected, id) end
    if held then table.insert(regained, id) end
    server.state = 'suspect'
    server.held = held
    publish_state(server)
  end
end
local answers, servers = {}, {}
local more = grant_waiters(regained, now, args.mostSessions, answers, servers)
-- Failed ones left the set, so the next page begins that much earlier.
local next_page = #page == 2 * PAGE and ',"next":' .. (args.offset + PAGE - #failed) or ''
save_changes()
return '{"silent":' .. silent .. ',"watched":' .. watched .. ',"held":' .. tostring(is_mass) .. ',"suspected":'
  .. encode_list(suspected) .. ',"failed":' .. encode_list(failed) .. next_page .. ',"answers":'
  .. encode_list(answers) .. ',"servers":' .. cjson.encode(servers) .. ',"more":' .. tostring(more) .. '}'
