--- @include "narrow"
-- Servers with room, in the order of the policy.
local LOOKED_AT = 32 -- servers looked at one by one for a choice that not every server fits
local visit_eligible, visit_fitting, count_look
do -- a script may have 200 locals at once
local CANDIDATES_PER_PAGE = 64
local FAST_SCAN = 128 -- beyond, looking at them one by one goes on and counts as a slow scan

-- Counts the choices whose price grows with the pool; see `slow_scans_total`.
function count_look(looked_at)
  if looked_at == FAST_SCAN + 1 then redis.call('HINCRBY', key.meta, 'slowScans', 1) end
end

-- Servers with room in the order of the policy, as (id, score, how many so far), until `visit` says it has seen enough.
-- All of them if need be: a refusal is never for want of looking.
function visit_eligible(first_page, visit)
  local seen, size = 0, first_page
  while true do
    local known = order_of(size)
    for position = known.first + seen, #known.ids do
      local looked_at = position - known.first + 1
      count_look(looked_at)
      if visit(known.ids[position], known.scores[position], looked_at) then return end
    end
    if known.isWhole then return end
    seen = #known.ids - known.first + 1
    size = math.max(size, seen) * 2 + CANDIDATES_PER_PAGE
  end
end

-- Servers with room that fit, as visit_eligible: the first of all servers are looked at one by one, the rest by their
-- traits.
function visit_fitting(item, visit)
  local passed, goes_on = 0, false
  visit_eligible(LOOKED_AT + 1, function(id, score, looked_at)
    goes_on = looked_at > LOOKED_AT and has_traits()
    if goes_on then return true end
    if not fits(server_of(id), item) then return false end
    passed = passed + 1
    return visit(id, score)
  end)
  while goes_on do
    local page = redis.call('ZRANGE', narrowed_order(item), passed, passed + CANDIDATES_PER_PAGE - 1, 'WITHSCORES')
    for index = 1, #page, 2 do
      -- A version without traits may have changed the server.
      if not fits(server_of(page[index]), item) then
        save_traits(page[index])
      elseif visit(page[index], tonumber(page[index + 1])) then
        return
      end
    end
    passed = passed + CANDIDATES_PER_PAGE
    goes_on = #page == 2 * CANDIDATES_PER_PAGE
  end
end
end
