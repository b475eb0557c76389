--- @include "order"
--- @include "restrictions"
-- The order of those servers that fit a restriction, made by Redis from the sets of their traits. One script after the
-- other makes it anew: to keep it would cost every acquire.

-- False while servers stand there that were registered by a version without traits; their heartbeats mend that.
local function has_traits() return redis.call('HLEN', key.serverTraits) == redis.call('ZCARD', key.servers) end

-- Weight versions, with what engines lack, that fit; and whether all do.
local function fitting_bases(item)
  local fitting, all = {}, redis.call('SMEMBERS', key.serverBases)
  for _, base in ipairs(all) do
    local version, lacking = string.match(base, '^@(%d+)|(.*)$')
    local lacks = {}
    for feature in string.gmatch(lacking, '%a+') do lacks[feature] = true end
    if fits({ weightVersion = tonumber(version), lacks = lacks, labels = item.labels or {} }, item) then
      table.insert(fitting, base)
    end
  end
  return fitting, #fitting == #all
end

-- Of the servers with room those that are in all of these sets, with their scores.
local function intersect(into, sets)
  local arguments = { #sets + 1, key.eligible }
  for _, set in ipairs(sets) do table.insert(arguments, set) end
  table.insert(arguments, 'WEIGHTS')
  table.insert(arguments, 1)
  for _ = 1, #sets do table.insert(arguments, 0) end
  redis.call('ZINTERSTORE', into, unpack(arguments))
end

-- The zset of those with room that fit, in the order of the policy; it is kept while the script makes choices, and
-- removed with `forget_order`.
local function narrowed_order(item)
  local restriction = restriction_text(item)
  local narrowed = narrowed_orders[restriction]
  if narrowed then return narrowed end
  write_scores()
  narrowed = key.narrowed(redis.sha1hex(restriction))
  local part, sets = narrowed .. ':part', {}
  for name, value in pairs(item.labels or {}) do table.insert(sets, key.serversWith(name .. '=' .. value)) end
  local bases, are_all = fitting_bases(item)
  if are_all then
    intersect(narrowed, sets)
  else
    for index, base in ipairs(bases) do
      sets[#sets + 1] = key.serversWith(base)
      intersect(index == 1 and narrowed or part, sets)
      sets[#sets] = nil
      if index > 1 then redis.call('ZUNIONSTORE', narrowed, 2, narrowed, part) end
    end
    if #bases > 1 then redis.call('UNLINK', part) end
  end
  for _, id in ipairs(item.excludeServers or {}) do redis.call('ZREM', narrowed, id) end
  narrowed_orders[restriction] = narrowed
  return narrowed
end

-- True when no server that takes leases, full or not, fits the restrictions. Beyond the first few different ones of a
-- script nobody looks, since each costs Redis an intersection.
local none_fits
do
local RESTRICTIONS_LOOKED_AT = 16
local known, looked_at = {}, 0

local function any_in(sets, excluded)
  local count, is_excluded = #excluded + 1, {}
  local asked = { #sets, unpack(sets) }
  asked[#asked + 1], asked[#asked + 2] = 'LIMIT', count
  if redis.call('SINTERCARD', unpack(asked)) == count then return true end
  for _, id in ipairs(excluded) do is_excluded[id] = true end
  for _, id in ipairs(redis.call('SINTER', unpack(sets))) do
    if not is_excluded[id] then return true end
  end
  return false
end

function none_fits(item)
  if not is_restricted(item) or not has_traits() then return false end
  local restriction = restriction_text(item)
  if known[restriction] ~= nil then return known[restriction] end
  if looked_at >= RESTRICTIONS_LOOKED_AT then return false end
  looked_at = looked_at + 1
  local sets, is_none = { key.usableServers }, true
  for name, value in pairs(item.labels or {}) do table.insert(sets, key.serversWith(name .. '=' .. value)) end
  for _, base in ipairs((fitting_bases(item))) do
    sets[#sets + 1] = key.serversWith(base)
    is_none = is_none and not any_in(sets, item.excludeServers or {})
    sets[#sets] = nil
  end
  known[restriction] = is_none
  return is_none
end
end
