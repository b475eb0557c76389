-- Placement of a request by the servers that have leases of its group.
local Affinity = {}

local KV_REPORT_MS = 60000 -- an older report of KV use does not count

-- Leases of the group by `serverId:epoch`, or nil.
function Affinity.group_leases(tx, item)
  if not item.groupId then return nil end
  local flat = redis.call('HGETALL', tx.key:groupLeases(item.groupId))
  if #flat == 0 then return nil end
  local held = {}
  for index = 1, #flat, 2 do held[flat[index]] = tonumber(flat[index + 1]) end
  return held
end

function Affinity.kv_use_of(tx, server)
  if server.kvUse == nil then
    local field = redis.call('HMGET', tx.key:server(server.id), 'kvUse', 'loadAtMs')
    local is_fresh = field[1] and tx.now - tonumber(field[2] or 0) <= KV_REPORT_MS
    server.kvUse = is_fresh and tonumber(field[1]) or false
  end
  return server.kvUse or nil
end

-- Server with most leases of the group below the cap; among equals, the server chosen longest ago. Nil without such a
-- server, and where the placement spreads the group.
function Affinity.choose(tx, item, held)
  local placement = Settings.get(tx, 'groupPlacement') or 'group-spread'
  if placement == 'group-spread' then return nil end
  if placement == 'auto' and (item.contextTokens or 0) < (Settings.number(tx, 'groupSpreadBelowTokens') or 2048) then
    return nil
  end
  local cap = Settings.number(tx, 'groupAffinityCap') or 8
  local chosen, most
  for name, count in pairs(held) do
    if count < cap and (not most or count >= most) then
      local id, epoch = string.match(name, '^(.*):(%w+)$')
      local server = Servers.get(tx, id)
      if server and server.epoch == epoch and Servers.has_room(tx, server) and Restrictions.fits(tx, server, item)
        and (not most or count > most or Scores.chosen(tx, server) < Scores.chosen(tx, chosen)) then
        chosen, most = server, count
      end
    end
  end
  if not chosen then return nil end
  if placement == 'auto' and (Affinity.kv_use_of(tx, chosen) or 0) > (Settings.number(tx, 'groupSpreadAboveKvUse')
    or 0.7) then
    return nil
  end
  return chosen
end

return Affinity
