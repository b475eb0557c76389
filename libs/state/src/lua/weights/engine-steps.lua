--[[ What engines are to be told for a change of weights, and writes the intent down first: to pause when it begins (in mode
`keep` at once, else when nothing runs on them any more), to resume when it is over. One page of servers.
ARGV[1] JSON: {cursor}   string, '0' to begin
Reply: steps    list of {serverId, endpoint, dialect, syncId, mode}; without mode: to resume
       cursor   string, '0' at the end
What is not confirmed by weights/engine-told is listed again. An engine that cannot pause in that mode is left alone.
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "includes/weight-sync"
--- @include "../routing/includes/servers"
local PAGE = 128
local REMOVED_KEPT_MS = 3600000
local args = cjson.decode(ARGV[1])
local sync = load_sync()
if not sync and redis.call('EXISTS', key.pausedEngines) == 0 then return '{"steps":[],"cursor":"0"}' end

local steps = {}
local function step(server, sync_id, mode)
  table.insert(steps, { serverId = server.id, endpoint = server.endpoint, dialect = server.dialect, syncId = sync_id, mode = mode })
end

local function can_pause(server)
  local packed = redis.call('HGET', key.server(server.id), 'capabilities')
  for _, mode in ipairs(packed and cjson.decode(packed).pauseModes or {}) do
    if mode == sync.mode then return true end
  end
  return false
end

-- A server that was removed while its engine was paused: it is told to go on if it comes back, and forgotten after an hour.
local function forget_removed()
  local some = redis.call('HRANDFIELD', key.pausedEngines, 16, 'WITHVALUES')
  for position = 1, #some, 2 do
    local asked_at = tonumber(string.match(some[position + 1], '|(%d+)$'))
    if not redis.call('ZSCORE', key.servers, some[position]) and now_ms() - asked_at > REMOVED_KEPT_MS then
      redis.call('HDEL', key.pausedEngines, some[position])
    end
  end
end
if not sync and args.cursor == '0' then forget_removed() end

local page = redis.call('ZSCAN', key.servers, args.cursor, 'COUNT', PAGE)
for position = 1, #page[2], 2 do
  local server = server_of(page[2][position])
  -- syncId|state|when it was asked, ms
  local noted = server and redis.call('HGET', key.pausedEngines, server.id)
  local sync_id, state = string.match(noted or '', '^([^|]*)|(%a+)|')
  if sync_id and (not sync or sync_id ~= sync.syncId) then
    step(server, sync_id)
  elseif server and sync and state ~= 'paused' and (sync.mode == 'keep' or server.load == 0) and can_pause(server) then
    redis.call('HSET', key.pausedEngines, server.id, sync.syncId .. '|asked|' .. plain(now_ms()))
    step(server, sync.syncId, sync.mode)
  end
end
return '{"steps":' .. encode_list(steps) .. ',"cursor":' .. cjson.encode(page[1]) .. '}'
