--- @include "servers"
-- The eligible servers in the order of the policy, as this script moves them: read once, kept here while leases are
-- granted, so that the next of many choices costs no call of Redis. `order`: {ids, scores, first, isWhole, count}.
-- Whatever else moves a server forgets it.
local order_wanted = 8 -- servers read at first

local function read_order(size)
  write_scores()
  local page = redis.call('ZRANGE', key.eligible, 0, size - 1, 'WITHSCORES')
  local ids, scores = {}, {}
  for index = 1, #page, 2 do
    local position = (index + 1) / 2
    ids[position], scores[position] = page[index], tonumber(page[index + 1])
  end
  order = { ids = ids, scores = scores, first = 1, size = size, isWhole = #ids < size,
    count = #ids < size and #ids or redis.call('ZCARD', key.eligible) }
end

-- The order, with at least so many servers if there are.
local function order_of(size)
  if order and not order.isWhole and #order.ids - order.first + 1 < size then order = nil end
  if not order then read_order(math.max(size, order_wanted)) end
  return order
end

-- A server was granted a lease: it stands further back now.
local function move_back(server)
  for _, narrowed in pairs(narrowed_orders) do
    if has_room(server) then
      redis.call('ZADD', narrowed, 'XX', string.format('%.0f', score_of(server, policy_in_force())), server.id)
    else
      redis.call('ZREM', narrowed, server.id)
    end
  end
  if not order then return end
  if not has_room(server) then
    order = nil
    return
  end
  local ids, scores, first = order.ids, order.scores, order.first
  local at = first
  while ids[at] and ids[at] ~= server.id do at = at + 1 end
  if not ids[at] then
    order = nil
    return
  end
  local score = score_of(server, policy_in_force())
  local last = #ids
  if at == first then
    order.first = first + 1
  else
    table.remove(ids, at)
    table.remove(scores, at)
    last = last - 1
  end
  -- Behind what was read and not the end: it is somewhere there.
  if not order.isWhole and (last < order.first or score > scores[last]) then return end
  local position = last + 1
  while position > order.first and (scores[position - 1] > score
    or (scores[position - 1] == score and ids[position - 1] > server.id)) do
    position = position - 1
  end
  if position > last then
    ids[position], scores[position] = server.id, score
  else
    table.insert(ids, position, server.id)
    table.insert(scores, position, score)
  end
end
