--- @include "restrictions"
-- Where a group is already.
local group_leases, kv_use_of, choose_by_affinity
do -- a script may have 200 locals at once
local KV_REPORT_MS = 60000 -- an older report of KV use says nothing

-- Leases of the group by `serverId:epoch`, or nil.
function group_leases(item)
  if not item.groupId then return nil end
  local flat = redis.call('HGETALL', key.groupLeases(item.groupId))
  if #flat == 0 then return nil end
  local held = {}
  for index = 1, #flat, 2 do held[flat[index]] = tonumber(flat[index + 1]) end
  return held
end

function kv_use_of(server)
  if server.kvUse == nil then
    local field = redis.call('HMGET', key.server(server.id), 'kvUse', 'loadAtMs')
    local is_fresh = field[1] and script_now() - tonumber(field[2] or 0) <= KV_REPORT_MS
    server.kvUse = is_fresh and tonumber(field[1]) or false
  end
  return server.kvUse or nil
end

-- Under affinity: the server with most leases of the group below the cap, among equals the one chosen longest ago.
function choose_by_affinity(item, policy, held)
  local placement = setting('groupPlacement') or 'group-spread'
  if not held or placement == 'group-spread' or policy == 'consistent-hash' then return nil end
  if placement == 'auto' and (item.contextTokens or 0) < (number_setting('groupSpreadBelowTokens') or 2048) then
    return nil
  end
  local cap = number_setting('groupAffinityCap') or 8
  local chosen, most
  for name, count in pairs(held) do
    if count < cap and (not most or count >= most) then
      local id, epoch = string.match(name, '^(.*):(%w+)$')
      local server = server_of(id)
      if server and server.epoch == epoch and has_room(server) and fits(server, item)
        and (not most or count > most or server.chosen < chosen.chosen) then
        chosen, most = server, count
      end
    end
  end
  if not chosen then return nil end
  if placement == 'auto' and (kv_use_of(chosen) or 0) > (number_setting('groupSpreadAboveKvUse') or 0.7) then return nil end
  return chosen
end
end
