-- Pages of a sorted set whose members may leave it while they are visited.
local Pages = {}

local MOST_MEMBERS, MOST_WEIGHT = 32, 32

-- Visits members from a cursor on; `visit` gets the member and its score and returns its weight: a page ends with the
-- member that makes it 32. Returns where the next page starts, or nil at the end.
function Pages.walk(key, cursor, visit)
  local page = redis.call('ZRANGE', key, cursor, cursor + MOST_MEMBERS - 1, 'WITHSCORES')
  local weight = 0
  for position = 1, #page, 2 do
    if weight >= MOST_WEIGHT then break end
    weight = weight + visit(page[position], tonumber(page[position + 1]))
    if redis.call('ZSCORE', key, page[position]) then cursor = cursor + 1 end
  end
  return #page > 0 and cursor < redis.call('ZCARD', key) and cursor or nil
end

return Pages
