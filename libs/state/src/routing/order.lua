-- The eligible servers in the order of the policy, as this script moves them: read once, kept here while leases are
-- granted, so that the next of many choices costs no call of Redis. `order`: {ids, scores, first, isWhole, count}.
-- Whatever else moves a server forgets it.
local Order = {}

function Tx.fields.order_wanted() return 8 end -- servers read at first

local function read_order(tx, size)
  Servers.write_scores(tx)
  local page = redis.call('ZRANGE', tx.key.eligible, 0, size - 1, 'WITHSCORES')
  local ids, scores = {}, {}
  for index = 1, #page, 2 do
    local position = (index + 1) / 2
    ids[position], scores[position] = page[index], tonumber(page[index + 1])
  end
  tx.order = { ids = ids, scores = scores, first = 1, size = size, isWhole = #ids < size,
    count = #ids < size and #ids or redis.call('ZCARD', tx.key.eligible) }
end

-- The order, with at least so many servers if there are.
function Order.read(tx, size)
  if tx.order and not tx.order.isWhole and #tx.order.ids - tx.order.first + 1 < size then tx.order = nil end
  if not tx.order then read_order(tx, math.max(size, tx.order_wanted)) end
  return tx.order
end

-- A server was granted a lease: it stands further back now.
function Order.move_back(tx, server)
  for _, narrowed in pairs(tx.narrowed_orders) do
    if Servers.has_room(tx, server) then
      redis.call('ZADD', narrowed, 'XX', Format.integer(Scores.score_of(tx, server, Scores.policy(tx))), server.id)
    else
      redis.call('ZREM', narrowed, server.id)
    end
  end
  if not tx.order then return end
  if not Servers.has_room(tx, server) then
    tx.order = nil
    return
  end
  local ids, scores, first = tx.order.ids, tx.order.scores, tx.order.first
  local at = first
  while ids[at] and ids[at] ~= server.id do at = at + 1 end
  if not ids[at] then
    tx.order = nil
    return
  end
  local score = Scores.score_of(tx, server, Scores.policy(tx))
  local last = #ids
  if at == first then
    tx.order.first = first + 1
  else
    table.remove(ids, at)
    table.remove(scores, at)
    last = last - 1
  end
  -- Behind what was read and not the end: it is somewhere there.
  if not tx.order.isWhole and (last < tx.order.first or score > scores[last]) then return end
  local position = last + 1
  while position > tx.order.first and (scores[position - 1] > score
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

return Order
