--- @include "leases"
-- Eligible servers looked at per page when an acquire restricts the weight version.
local CANDIDATES_PER_PAGE = 64

local function first_eligible_of_version(weight_version)
  local from = 0
  while true do
    local page = redis.call('ZRANGE', key.eligible, from, from + CANDIDATES_PER_PAGE - 1)
    for _, id in ipairs(page) do
      local server = server_of(id)
      if server.weightVersion == weight_version then return server end
    end
    if #page < CANDIDATES_PER_PAGE then return nil end
    from = from + CANDIDATES_PER_PAGE
  end
end

-- Where this acquire goes: (server, branch), or (nil, nil, lane to wait in). A session keeps to its server while that
-- one is usable and of the same epoch, full or not.
local function choose_server(item)
  local binding = item.sessionId and binding_of(item.sessionId)
  local bound = binding and server_of(binding.serverId)
  if bound and bound.epoch == binding.epoch and is_usable(bound)
    and (item.weightVersion == nil or item.weightVersion == bound.weightVersion) then
    if has_room(bound) then return bound, 'sticky-hit' end
    return nil, nil, bound.id
  end
  write_scores()
  if item.weightVersion ~= nil then
    local server = first_eligible_of_version(item.weightVersion)
    if server then return server, 'least-loaded' end
    return nil, nil, string.format('@%.0f', item.weightVersion)
  end
  local first = redis.call('ZRANGE', key.eligible, 0, 0)[1]
  if first then return server_of(first), 'least-loaded' end
  return nil, nil, '*'
end
