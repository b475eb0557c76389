-- The eligible servers in the order of the policy, as this transition moves them: read once, kept here while leases are
-- granted, so that the next of many choices costs no call of Redis. Any other move of a server discards the order.
-- `tx.order`: {ids, scores, texts, first, last, unit, isWhole, count, moved}; `texts`: text of each server for
-- receipts, made on demand; `moved`: the server that was granted a lease last and still has its old place in the order.
local Order = {}

Order.BEST = 4 -- servers that a receipt names

function Tx.fields.expected_choices() return 1 end -- each choice takes the first server and names BEST servers

local function read_order(tx, size)
  Servers.write_scores(tx)
  local page = redis.call('ZRANGE', tx.key.eligible, 0, size - 1, 'WITHSCORES')
  local ids, scores = {}, {}
  local last = #page / 2
  for position = 1, last do ids[position], scores[position] = page[2 * position - 1], tonumber(page[2 * position]) end
  Servers.read(tx, ids, math.min(last, tx.expected_choices))
  tx.order = { ids = ids, scores = scores, texts = {}, first = 1, last = last, unit = tx.policy.unit or Loads.LOAD_UNIT,
    isWhole = last < size, count = last < size and last or redis.call('ZCARD', tx.key.eligible) }
  return tx.order
end

function Order.load_at(order, position) return math.floor(order.scores[position] / order.unit) end

-- Text by which a receipt names the server at this position.
local function text_at(order, position)
  if position > order.last then return '' end
  local text = order.ids[position] .. '=' .. Format.integer(math.floor(order.scores[position] / order.unit)) .. ';'
  order.texts[position] = text
  return text
end

-- The first servers and their loads as a receipt names them: `serverId=load;` for each.
function Order.best(order)
  local texts, first = order.texts, order.first
  return (texts[first] or text_at(order, first)) .. (texts[first + 1] or text_at(order, first + 1))
    .. (texts[first + 2] or text_at(order, first + 2)) .. (texts[first + 3] or text_at(order, first + 3))
end

local function position_of(order, id)
  local ids = order.ids
  for position = order.first, order.last do
    if ids[position] == id then return position end
  end
  return nil
end

local function take_out(order, at)
  table.remove(order.ids, at)
  table.remove(order.scores, at)
  order.texts = {}
  order.last = order.last - 1
end

local function put_in(order, id, score)
  local ids, scores, first, last = order.ids, order.scores, order.first, order.last
  -- The server belongs behind the part of the order that was read, so its place there is unknown.
  if not order.isWhole and (last < first or score > scores[last]) then return end
  local position = last + 1
  while position > first and (scores[position - 1] > score
    or (scores[position - 1] == score and ids[position - 1] > id)) do
    position = position - 1
  end
  order.last = last + 1
  if position > last then
    ids[position], scores[position], order.texts[position] = id, score, nil
  else
    table.insert(ids, position, id)
    table.insert(scores, position, score)
    order.texts = {}
  end
end

-- Moves the server of `moved` to its new place. False when the order does not contain its old place.
local function settle_moved(order, server, has_room)
  order.moved = nil
  local first = order.first
  local at = order.ids[first] == server.id and first or position_of(order, server.id)
  if not at and order.isWhole then return false end
  if at == first then
    order.first = first + 1
  elseif at then
    take_out(order, at)
  end
  if has_room then put_in(order, server.id, server.place) else order.count = order.count - 1 end
  return true
end

-- The order, with at least `size` servers if the pool has so many.
function Order.read(tx, size)
  local order = tx.order
  if order then
    local moved = order.moved
    if moved and not settle_moved(order, moved, moved.load < moved.most) then order = nil end
    if order and (order.isWhole or order.last - order.first + 1 >= size) then return order end
  end
  return read_order(tx, math.max(size, Order.BEST + tx.expected_choices - 1))
end

-- Moves back a server that was granted a lease; a full server leaves the order.
function Order.move_back(tx, server)
  if tx.order then
    if tx.order.moved then Order.read(tx, 0) end
    tx.order.moved = server
  end
  server.place = Scores.place_of(tx, server, tx.policy)
  tx.moved_servers[server.id] = server
  if not rawget(tx, 'narrowed_orders') then return end
  for _, narrowed in pairs(tx.narrowed_orders) do
    if Servers.has_room(tx, server) then
      redis.call('ZADD', narrowed, 'XX', server.place, server.id)
    else
      redis.call('ZREM', narrowed, server.id)
    end
  end
end

return Order
