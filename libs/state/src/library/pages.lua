-- Pages of long lists. A cursor is absent in the call for the first page and in the reply with the last page.
local Pages = {}

local MAX_MEMBERS, MAX_WEIGHT = 32, 32

-- A page of a scan (HSCAN, SSCAN or ZSCAN): an entry that exists during the whole scan is in at least one page. Returns
-- the entries and the next cursor.
function Pages.scan(command, key, cursor, count)
  local page = redis.call(command, key, cursor or '0', 'COUNT', count)
  return page[2], page[1] ~= '0' and page[1] or nil
end

-- A page of at most `limit` entries of a scan, for callers that choose the limit. A step of a scan can find more: the
-- step is made smaller until it does not, and the rest of the smallest step, sorted by name, has the cursor
-- `<cursor>~<name>`. `count` is the usual size of a step.
function Pages.list(command, key, cursor, count, limit)
  local position, after = string.match(cursor or '0', '^(%d+)~?(.*)$')
  local width = command == 'SSCAN' and 1 or 2
  local step = after == '' and math.min(count, limit) or 1
  local page = redis.call(command, key, position, 'COUNT', step)
  while step > 1 and #page[2] > limit * width do
    step = math.floor(step / 2)
    page = redis.call(command, key, position, 'COUNT', step)
  end
  local following = page[1] ~= '0' and page[1] or nil
  if after == '' and #page[2] <= limit * width then return page[2], following end
  local entries, kept = {}, {}
  for at = 1, #page[2], width do
    if page[2][at] > after then table.insert(entries, { page[2][at], width == 2 and page[2][at + 1] or nil }) end
  end
  table.sort(entries, function(one, other) return one[1] < other[1] end)
  for index = 1, math.min(limit, #entries) do
    for part = 1, width do table.insert(kept, entries[index][part]) end
  end
  if #entries > limit then return kept, position .. '~' .. entries[limit][1] end
  return kept, following
end

-- A page of a sorted set whose members may leave it while they are visited; `visit` gets a member and its score and
-- returns the weight of the member: a page ends with the member that raises its weight to 32. Returns the next cursor.
function Pages.walk(key, from, visit)
  local cursor = from or 0
  local page = redis.call('ZRANGE', key, cursor, cursor + MAX_MEMBERS - 1, 'WITHSCORES')
  local weight = 0
  for position = 1, #page, 2 do
    if weight >= MAX_WEIGHT then break end
    weight = weight + visit(page[position], tonumber(page[position + 1]))
    if redis.call('ZSCORE', key, page[position]) then cursor = cursor + 1 end
  end
  return #page > 0 and cursor < redis.call('ZCARD', key) and cursor or nil
end

return Pages
