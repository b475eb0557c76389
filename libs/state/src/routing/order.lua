-- The eligible servers in the order of the policy, as this transition moves them: read once, kept here while leases are
-- granted, so that the next of many choices costs no call of Redis. Whatever else moves a server forgets it.
-- `tx.order`: {ids, scores, texts, first, last, unit, isWhole, count}; `texts` is each as receipts name it, made on
-- demand.
local Order = {}

Order.BEST = 4 -- servers that a receipt names

function Tx.fields.order_wanted() return Order.BEST + 1 end -- servers read at first

local function read_order(tx, size)
  Servers.write_scores(tx)
  local page = redis.call('ZRANGE', tx.key.eligible, 0, size - 1, 'WITHSCORES')
  local ids, scores = {}, {}
  local last = #page / 2
  for position = 1, last do ids[position], scores[position] = page[2 * position - 1], tonumber(page[2 * position]) end
  tx.order = { ids = ids, scores = scores, texts = {}, first = 1, last = last, unit = tx.policy.unit or Loads.LOAD_UNIT,
    isWhole = last < size, count = last < size and last or redis.call('ZCARD', tx.key.eligible) }
  return tx.order
end

-- The order, with at least so many servers if there are.
function Order.read(tx, size)
  local order = tx.order
  if order and (order.isWhole or order.last - order.first + 1 >= size) then return order end
  return read_order(tx, math.max(size, tx.order_wanted))
end

function Order.load_at(order, position) return math.floor(order.scores[position] / order.unit) end

-- The first servers and their loads as a receipt names them: `serverId=load;` for each.
function Order.best(order)
  local texts, first = order.texts, order.first
  for position = first, math.min(first + Order.BEST - 1, order.last) do
    if not texts[position] then
      texts[position] = order.ids[position] .. '=' .. Format.integer(Order.load_at(order, position)) .. ';'
    end
  end
  return (texts[first] or '') .. (texts[first + 1] or '') .. (texts[first + 2] or '') .. (texts[first + 3] or '')
end

local function position_of(order, id)
  local ids = order.ids
  for position = order.first, order.last do
    if ids[position] == id then return position end
  end
  return nil
end

local function take_out(order, at)
  if at == order.first then
    order.first = at + 1
    return
  end
  table.remove(order.ids, at)
  table.remove(order.scores, at)
  order.texts = {}
  order.last = order.last - 1
end

local function put_in(order, id, score)
  local ids, scores, first, last = order.ids, order.scores, order.first, order.last
  -- Behind what was read and not the end: it is somewhere there.
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

-- A server was granted a lease: it stands further back now, or is full.
function Order.move_back(tx, server)
  local has_room = Servers.has_room(tx, server)
  local score = has_room and Scores.place_of(tx, server, tx.policy)
  for _, narrowed in pairs(rawget(tx, 'narrowed_orders') or {}) do
    if has_room then
      redis.call('ZADD', narrowed, 'XX', Format.integer(score), server.id)
    else
      redis.call('ZREM', narrowed, server.id)
    end
  end
  local order = tx.order
  if not order then return end
  local at = position_of(order, server.id)
  if not at and order.isWhole then
    tx.order = nil
    return
  end
  if at then take_out(order, at) end
  if has_room then put_in(order, server.id, score) else order.count = order.count - 1 end
end

return Order
