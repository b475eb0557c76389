-- Chooses the first server with room clockwise from the hash of the session, else the group, else the request. A server
-- has points on the ring by its weight.
local ConsistentHash = { branch = 'hash' }

local POINTS_PER_WEIGHT, MAX_POINTS = 64, 1024 -- points of one server
local POINTS_PER_PAGE, POINTS_PER_LATER_PAGE = 8, 256

function ConsistentHash.score(_, server) return Loads.weighed(server.load, server) end

local function points_of(weight)
  return math.min(MAX_POINTS, math.max(1, math.floor(POINTS_PER_WEIGHT * weight + 0.5)))
end

-- The first 52 bits of SHA-1: exact as a score.
local function hash_of(text) return tonumber(string.sub(redis.sha1hex(text), 1, 13), 16) end

local function point_name(server_id, index) return string.format('%s#%.0f', server_id, index) end

-- Puts the points of a server on the ring, or corrects their number. Field `ring` of the server has this number, and
-- the generation of the ring, which changes each time the policy is chosen.
function ConsistentHash.on_move(tx, server)
  local generation = Settings.get(tx, 'ringGeneration') or '0'
  local points = points_of(server.weight)
  local wanted = string.format('%s:%.0f', generation, points)
  local placed = redis.call('HGET', tx.key:server(server.id), 'ring')
  if placed == wanted then return end
  local before = placed and string.match(placed, '^' .. generation .. ':(%d+)$')
  for index = points, tonumber(before or 0) - 1 do redis.call('ZREM', tx.key.ring, point_name(server.id, index)) end
  for index = 0, points - 1 do
    local name = point_name(server.id, index)
    redis.call('ZADD', tx.key.ring, Format.integer(hash_of(name)), name)
  end
  redis.call('HSET', tx.key:server(server.id), 'ring', wanted)
end

function ConsistentHash.on_forget(tx, server)
  if redis.call('EXISTS', tx.key.ring) == 0 then return end
  for index = 0, points_of(server.weight) - 1 do redis.call('ZREM', tx.key.ring, point_name(server.id, index)) end
end

local function point_of(tx, name)
  local id, index = string.match(name, '^(.*)#(%d+)$')
  return Servers.get(tx, id), tonumber(index), id
end

-- Server of the first of these points with a server that is in the zset and has room; or nil.
local function first_point_in(tx, zset, points)
  local ids = {}
  for index, point in ipairs(points) do ids[index] = string.match(point, '^(.*)#%d+$') end
  for index, score in ipairs(redis.call('ZMSCORE', zset, unpack(ids))) do
    local server, point = nil, nil
    if score then server, point = point_of(tx, points[index]) end
    if server and Servers.has_room(tx, server) and point < points_of(server.weight) then return server end
  end
  return nil
end

-- The servers of the first points are checked one by one; the other points are compared, page by page, with the zset of
-- all servers with room that fit.
function ConsistentHash.candidates(tx, item)
  Servers.write_scores(tx) -- a server that had no room may not be on the ring yet
  local size = redis.call('ZCARD', tx.key.ring)
  local hash = Format.integer(hash_of(item.sessionId or item.groupId or item.requestId))
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
        if not server or point >= points_of(server.weight) then
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
      if looked_at >= Visit.LOOKED_AT and (not Restrictions.is_restricted(item) or Narrow.are_all_indexed(tx)) then
        rest, per_page = Restrictions.is_restricted(item) and Narrow.order(tx, item) or tx.key.eligible,
          POINTS_PER_LATER_PAGE
        if redis.call('EXISTS', rest) == 0 then break end
      end
    end
  end
  for _, name in ipairs(stale) do redis.call('ZREM', tx.key.ring, name) end
  return chosen
end

return ConsistentHash
