-- The order of the servers that fit a restriction, computed by Redis from the sets of their index entries. Each script
-- computes the order again, because keeping it up to date would cost every acquire.
local Narrow = {}

-- False while the pool has servers that were registered by a version without index entries; heartbeats add the entries.
function Narrow.are_all_indexed(tx)
  return redis.call('HLEN', tx.key.serverIndexEntries) == redis.call('ZCARD', tx.key.servers)
end

-- Version entries (weight version, missing features and models of engines) that fit the acquire; and whether all fit.
local function fitting_version_entries(tx, item)
  local fitting, all = {}, redis.call('SMEMBERS', tx.key.serverVersionEntries)
  for _, version_entry in ipairs(all) do
    local version, lacking, digest = string.match(version_entry, '^@(%d+)|([^|]*)|?(.*)$')
    local lacks, models = {}, tx.model_lists.by_digest[digest] or false
    for feature in string.gmatch(lacking, '%a+') do lacks[feature] = true end
    if Restrictions.fits(tx, { weightVersion = tonumber(version), lacks = lacks, labels = item.labels or {},
      models = models }, item) then
      table.insert(fitting, version_entry)
    end
  end
  return fitting, #fitting == #all
end

-- Stores in `into` the servers with room that are in all of these sets, with their scores.
local function intersect(tx, into, sets)
  local arguments = { #sets + 1, tx.key.eligible }
  for _, set in ipairs(sets) do table.insert(arguments, set) end
  table.insert(arguments, 'WEIGHTS')
  table.insert(arguments, 1)
  for _ = 1, #sets do table.insert(arguments, 0) end
  redis.call('ZINTERSTORE', into, unpack(arguments))
end

-- Key of the zset of servers with room that fit the acquire, in the order of the policy. The zset is kept while the
-- script makes choices; Scores.forget_order removes it.
function Narrow.order(tx, item)
  local restriction = Restrictions.text(item)
  local narrowed = tx.narrowed_orders[restriction]
  if narrowed then return narrowed end
  Servers.write_scores(tx)
  narrowed = tx.key:narrowed(redis.sha1hex(restriction))
  local part, sets = narrowed .. ':part', {}
  for name, value in pairs(item.labels or {}) do table.insert(sets, tx.key:serversWith(name .. '=' .. value)) end
  local version_entries, are_all = fitting_version_entries(tx, item)
  if are_all then
    intersect(tx, narrowed, sets)
  else
    for index, version_entry in ipairs(version_entries) do
      sets[#sets + 1] = tx.key:serversWith(version_entry)
      intersect(tx, index == 1 and narrowed or part, sets)
      sets[#sets] = nil
      if index > 1 then redis.call('ZUNIONSTORE', narrowed, 2, narrowed, part) end
    end
    if #version_entries > 1 then redis.call('UNLINK', part) end
  end
  for _, id in ipairs(item.excludeServers or {}) do redis.call('ZREM', narrowed, id) end
  tx.narrowed_orders[restriction] = narrowed
  return narrowed
end

-- Only the first few different restrictions of a script are compared with all servers, since each costs Redis an
-- intersection.
local RESTRICTIONS_LOOKED_AT = 16
function Tx.fields.restrictions_met() return {} end
function Tx.fields.restrictions_looked_at() return 0 end

local function any_in(sets, excluded)
  local count, is_excluded = #excluded + 1, {}
  local asked = { #sets, unpack(sets) }
  asked[#asked + 1], asked[#asked + 2] = 'LIMIT', count
  if redis.call('ZINTERCARD', unpack(asked)) == count then return true end
  for _, id in ipairs(excluded) do is_excluded[id] = true end
  for _, id in ipairs(redis.call('ZINTER', #sets, unpack(sets))) do
    if not is_excluded[id] then return true end
  end
  return false
end

-- True when no server of the index fits the restrictions; false when that was not compared. `index`: key of the servers
-- that take leases, full or not, or of all servers.
function Narrow.none_fits(tx, item, index)
  if not Restrictions.is_restricted(item) or not Narrow.are_all_indexed(tx) then return false end
  local restriction = index .. Restrictions.text(item)
  if tx.restrictions_met[restriction] ~= nil then return tx.restrictions_met[restriction] end
  if tx.restrictions_looked_at >= RESTRICTIONS_LOOKED_AT then return false end
  tx.restrictions_looked_at = tx.restrictions_looked_at + 1
  local sets, is_none = { index }, true
  for name, value in pairs(item.labels or {}) do table.insert(sets, tx.key:serversWith(name .. '=' .. value)) end
  for _, version_entry in ipairs((fitting_version_entries(tx, item))) do
    sets[#sets + 1] = tx.key:serversWith(version_entry)
    is_none = is_none and not any_in(sets, item.excludeServers or {})
    sets[#sets] = nil
  end
  tx.restrictions_met[restriction] = is_none
  return is_none
end

return Narrow
