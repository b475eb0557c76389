-- Pages of long lists. A cursor is absent in the call for the first page and in the reply with the last page.
local Pages = {}

local MAX_MEMBERS, MAX_WEIGHT = 32, 32

-- A page of a scan (HSCAN, SSCAN or ZSCAN): an entry that exists during the whole scan is in at least one page. Returns
-- the entries and the next cursor.
function Pages.scan(command, key, cursor, count)
  local page = redis.call(command, key, cursor or '0', 'COUNT', count)
  return page[2], page[1] ~= '0' and page[1] or nil
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
