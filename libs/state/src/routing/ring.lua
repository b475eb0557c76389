-- The choice under consistent-hash.
local Ring = {}

local POINTS_PER_PAGE, POINTS_PER_LATER_PAGE = 8, 256

local function point_of(tx, name)
  local id, index = string.match(name, '^(.*)#(%d+)$')
  return Servers.get(tx, id), tonumber(index), id
end

-- Of these points, each with its server, the first whose server is in the zset.
local function first_point_in(tx, zset, points)
  local ids = {}
  for index, point in ipairs(points) do ids[index] = string.match(point, '^(.*)#%d+$') end
  for index, score in ipairs(redis.call('ZMSCORE', zset, unpack(ids))) do
    local server, point = nil, nil
    if score then server, point = point_of(tx, points[index]) end
    if server and Servers.has_room(tx, server) and point < Scores.points_of(server.weight) then return server end
  end
  return nil
end

-- The first server clockwise from the hash of the session, else the group, else the request. The first ones are looked
-- at one by one, the rest by what is known of all.
function Ring.choose(tx, item)
  Servers.write_scores(tx) -- a server that had no room may not be on the ring yet
  local size = redis.call('ZCARD', tx.key.ring)
  local hash = Format.integer(Scores.hash_of(item.sessionId or item.groupId or item.requestId))
  local start = redis.call('ZCOUNT', tx.key.ring, '-inf', '(' .. hash)
  local seen, stale, chosen, rest = {}, {}, nil, nil
  local visited, looked_at, per_page = 0, 0, POINTS_PER_PAGE
  while visited < size and not chosen do
    local from = (start + visited) % size
    local most = math.min(per_page, size - from, size - visited)
    local page = redis.call('ZRANGE', tx.key.ring, from, from + most - 1)
    visited = visited + most
    if rest then
      chosen = first_point_in(tx, rest, page)
    else
      for _, name in ipairs(page) do
        local server, point, id = point_of(tx, name)
        if not server or point >= Scores.points_of(server.weight) then
          table.insert(stale, name)
        elseif not seen[id] then
          seen[id] = true
          looked_at = looked_at + 1
          Visit.count_look(tx, looked_at)
          if Servers.has_room(tx, server) and Restrictions.fits(tx, server, item) then
            chosen = server
            break
          end
        end
      end
      if looked_at >= Visit.LOOKED_AT and (not Restrictions.is_restricted(item) or Narrow.has_traits(tx)) then
        rest, per_page = Restrictions.is_restricted(item) and Narrow.order(tx, item) or tx.key.eligible,
          POINTS_PER_LATER_PAGE
        if redis.call('EXISTS', rest) == 0 then break end
      end
    end
  end
  for _, name in ipairs(stale) do redis.call('ZREM', tx.key.ring, name) end
  if not chosen then return nil end
  return chosen, 'hash', { { serverId = chosen.id, key = Scores.load_of(tx, chosen, 'consistent-hash') } }
end

return Ring
