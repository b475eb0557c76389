-- The places of a round: `neededGroups`, some of them reserved for pinned groups. With quotas each domain has places
-- too, and places of domains + spare places + reserved places + accepted groups = needed groups. Without quotas there
-- is no hash.
local Places = {}

-- No name of a domain begins with `*`.
local SPARE, LIVE = '*spare', '*live:'

local function hash_of(tx, round) return tx.key:roundPlaces(round.job, round.roundId) end

-- Places that are neither taken nor reserved.
function Places.open(round) return round.neededGroups - round.acceptedGroups - round.reservedGroups end

-- Open places that any group may take.
function Places.free(tx, round)
  if not round.hasQuotas then return Places.open(round) end
  return tonumber(redis.call('HGET', hash_of(tx, round), SPARE) or 0)
end

-- Adds spare places; only with quotas.
function Places.add_spare(tx, round, by) redis.call('HINCRBY', hash_of(tx, round), SPARE, by) end

-- The domain whose places a group may take; '' for all domains that no quota names.
local function place_domain(tx, round, group)
  local domain = group.domain or ''
  return redis.call('HEXISTS', hash_of(tx, round), domain) == 1 and domain or ''
end

local function places_of_domain(tx, round, group)
  local domain = place_domain(tx, round, group)
  return tonumber(redis.call('HGET', hash_of(tx, round), domain) or 0), domain
end

function Places.has_place(tx, round, group)
  if round.acceptedGroups >= round.neededGroups then return false end
  if group.pinned then return true end
  if Places.open(round) <= 0 then return false end
  return Places.free(tx, round) > 0 or (places_of_domain(tx, round, group)) > 0
end

local function is_domain(field) return string.sub(field, 1, 1) ~= '*' end

-- The field from which a taken group gets its place: its domain, else the spare places, else the domain with most
-- places.
local function field_for(tx, round, group)
  local fields, own = Hashes.all(hash_of(tx, round)), place_domain(tx, round, group)
  if tonumber(fields[own] or 0) > 0 then return own end
  if tonumber(fields[SPARE] or 0) > 0 then return SPARE end
  local most, field = 0, nil
  for domain, places in pairs(fields) do
    local count = is_domain(domain) and tonumber(places) or 0
    if count > most or (count == most and field and domain < field) then most, field = count, domain end
  end
  return field or SPARE
end

-- Adds a place for groups of the domain of this group.
function Places.add_for(tx, round, group)
  if round.hasQuotas then redis.call('HINCRBY', hash_of(tx, round), place_domain(tx, round, group), 1) end
end

-- Adds a place for the replacement of an accepted group. A group that is live or still to be submitted may fill the
-- place; otherwise the trainer is to submit another group.
function Places.add_replacement(tx, round, group)
  Round.add(tx, round, 'neededGroups', 1)
  Places.add_for(tx, round, group)
  if Round.count_shortfall(round) > 0 then
    Round.add(tx, round, 'newGroups', math.max(round.newGroups, round.submittedGroups) + 1 - round.newGroups)
  end
end

-- Reserves a place for a group of the queue. `has_own`: the round has places for groups of the queue besides the places
-- of domains.
function Places.reserve(tx, round, group, has_own)
  if round.hasQuotas and not has_own then
    redis.call('HINCRBY', hash_of(tx, round), field_for(tx, round, group), -1)
  end
  Round.add(tx, round, 'reservedGroups', 1)
end

local function end_reserve(tx, round) Round.add(tx, round, 'reservedGroups', -1) end

-- Takes the place of a group that is accepted.
function Places.take(tx, round, group)
  if group.pinned then return end_reserve(tx, round) end
  if not round.hasQuotas then return end
  local places, domain = places_of_domain(tx, round, group)
  redis.call('HINCRBY', hash_of(tx, round), places > 0 and domain or SPARE, -1)
end

-- Releases the place of a pinned group that has left the round without being accepted: any group may have the place.
function Places.release_reserved(tx, round)
  end_reserve(tx, round)
  if round.hasQuotas then Places.add_spare(tx, round, 1) end
end

-- Makes spare places of the places that no group of their domain can take any more. Only when all new groups were
-- submitted.
function Places.release_domains(tx, round)
  if not round.hasQuotas then return end
  local fields = Hashes.all(hash_of(tx, round))
  for domain, places in pairs(fields) do
    if is_domain(domain) and tonumber(places) > 0 and tonumber(fields[LIVE .. domain] or 0) == 0 then
      redis.call('HSET', hash_of(tx, round), domain, 0)
      Places.add_spare(tx, round, places)
    end
  end
end

-- Counts groups that may still take a place of their domain: live, neither pinned nor held.
function Places.count_live(tx, round, group, by)
  if not round.hasQuotas or group.pinned then return end
  redis.call('HINCRBY', hash_of(tx, round), LIVE .. place_domain(tx, round, group), by)
end

-- `groups`: all groups that may still take a place of their domain.
local function recount_live(tx, round, groups)
  for field in pairs(round.hasQuotas and Hashes.all(hash_of(tx, round)) or {}) do
    if string.sub(field, 1, #LIVE) == LIVE then redis.call('HDEL', hash_of(tx, round), field) end
  end
  for _, group in ipairs(groups) do Places.count_live(tx, round, group, 1) end
end

-- Corrects reserved places and counts of live groups after a loss: the lost group may have been pinned, or might have
-- taken a place of its domain.
function Places.mend(tx, round)
  if round.reservedGroups == 0 and not round.hasQuotas then return end
  local pinned, waiting = 0, {}
  for _, group_id in ipairs(redis.call('ZRANGE', tx.key:roundGroups(round.job, round.roundId), 0, -1)) do
    local group = Group.load(tx, round.job, group_id)
    if group and group.pinned then
      pinned = pinned + 1
    elseif group and not group.held then
      table.insert(waiting, group)
    end
  end
  for _ = pinned + 1, round.reservedGroups do Places.release_reserved(tx, round) end
  recount_live(tx, round, waiting)
end

return Places
