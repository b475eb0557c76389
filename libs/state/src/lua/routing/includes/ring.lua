--- @include "visit"
-- The choice under consistent-hash.
local choose_on_ring
do -- a script may have 200 locals at once
local POINTS_PER_PAGE, POINTS_PER_LATER_PAGE = 8, 256

local function point_of(name)
  local id, index = string.match(name, '^(.*)#(%d+)$')
  return server_of(id), tonumber(index), id
end

-- Of these points, each with its server, the first whose server is in the zset.
local function first_point_in(zset, points)
  local ids = {}
  for index, point in ipairs(points) do ids[index] = string.match(point, '^(.*)#%d+$') end
  for index, score in ipairs(redis.call('ZMSCORE', zset, unpack(ids))) do
    local server, point = nil, nil
    if score then server, point = point_of(points[index]) end
    if server and has_room(server) and point < points_of(server.weight) then return server end
  end
  return nil
end

-- The first server clockwise from the hash of the session, else the group, else the request. The first ones are looked at
-- one by one, the rest by what is known of all.
function choose_on_ring(item)
  write_scores() -- a server that had no room may not be on the ring yet
  local size = redis.call('ZCARD', key.ring)
  local hash = string.format('%.0f', hash_of(item.sessionId or item.groupId or item.requestId))
  local start = redis.call('ZCOUNT', key.ring, '-inf', '(' .. hash)
  local seen, stale, chosen, rest = {}, {}, nil, nil
  local visited, looked_at, per_page = 0, 0, POINTS_PER_PAGE
  while visited < size and not chosen do
    local from = (start + visited) % size
    local most = math.min(per_page, size - from, size - visited)
    local page = redis.call('ZRANGE', key.ring, from, from + most - 1)
    visited = visited + most
    if rest then
      chosen = first_point_in(rest, page)
    else
      for _, name in ipairs(page) do
        local server, point, id = point_of(name)
        if not server or point >= points_of(server.weight) then
          table.insert(stale, name)
        elseif not seen[id] then
          seen[id] = true
          looked_at = looked_at + 1
          count_look(looked_at)
          if has_room(server) and fits(server, item) then
            chosen = server
            break
          end
        end
      end
      if looked_at >= LOOKED_AT and (not is_restricted(item) or has_traits()) then
        rest, per_page = is_restricted(item) and narrowed_order(item) or key.eligible, POINTS_PER_LATER_PAGE
        if redis.call('EXISTS', rest) == 0 then break end
      end
    end
  end
  for _, name in ipairs(stale) do redis.call('ZREM', key.ring, name) end
  if not chosen then return nil end
  return chosen, 'hash', { { serverId = chosen.id, key = policy_load(chosen, 'consistent-hash') } }
end
end
