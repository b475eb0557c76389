-- Servers with room, in the order of the policy.
local Visit = {}

Visit.LOOKED_AT = 32 -- servers checked one by one for a choice that not every server fits
local CANDIDATES_PER_PAGE = 64
local FAST_SCAN = 128 -- a choice that checks more servers one by one counts as a slow scan

-- Counts the choices whose cost grows with the pool; see `slow_scans_total`.
function Visit.count_look(tx, looked_at)
  if looked_at == FAST_SCAN + 1 then redis.call('HINCRBY', tx.key.meta, 'slowScans', 1) end
end

-- Calls `visit(id, score, servers visited so far)` for the servers with room in the order of the policy, until `visit`
-- returns true. All servers are visited if need be, so an acquire is refused only when none can take it.
function Visit.eligible(tx, first_page, visit)
  local seen, size = 0, first_page
  while true do
    local known = Order.read(tx, size)
    for position = known.first + seen, known.last do
      local looked_at = position - known.first + 1
      Visit.count_look(tx, looked_at)
      if visit(known.ids[position], known.scores[position], looked_at) then return end
    end
    if known.isWhole then return end
    seen = known.last - known.first + 1
    size = math.max(size, seen) * 2 + CANDIDATES_PER_PAGE
  end
end

-- Calls `visit(id, score)` for the servers with room that fit the acquire, in the order of the policy, until `visit`
-- returns true. The first servers of the order are checked one by one, the rest by their index entries.
function Visit.fitting(tx, item, visit)
  local passed, goes_on = 0, false
  Visit.eligible(tx, Order.BEST + 1, function(id, score, looked_at)
    goes_on = looked_at > Visit.LOOKED_AT and Narrow.are_all_indexed(tx)
    if goes_on then return true end
    if not Restrictions.fits(tx, Servers.get(tx, id), item) then return false end
    passed = passed + 1
    return visit(id, score)
  end)
  while goes_on do
    local page = redis.call('ZRANGE', Narrow.order(tx, item), passed, passed + CANDIDATES_PER_PAGE - 1, 'WITHSCORES')
    for index = 1, #page, 2 do
      -- A replica of a version without index entries may have changed the server.
      if not Restrictions.fits(tx, Servers.get(tx, page[index]), item) then
        ServerHash.save_index_entries(tx, page[index])
      elseif visit(page[index], tonumber(page[index + 1])) then
        return
      end
    end
    passed = passed + CANDIDATES_PER_PAGE
    goes_on = #page == 2 * CANDIDATES_PER_PAGE
  end
end

return Visit
