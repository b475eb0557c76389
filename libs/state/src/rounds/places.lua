-- The places of a round: `needed`, some of them reserved for pinned groups; with quotas each domain has places too, and
-- places of domains + spare ones + reserved ones + accepted groups = needed. Without quotas there is no hash.
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

-- Only with quotas.
function Places.add_spare(tx, round, by) redis.call('HINCRBY', hash_of(tx, round), SPARE, by) end

-- The domain whose places a group may take; '' for all that no quota names.
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

-- The field of a place that a taken group gets: of its domain, else a spare one, else of the domain with the most.
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

-- A place more, for groups of the domain of this one; or another that it takes.
function Places.add_for(tx, round, group)
  if round.hasQuotas then redis.call('HINCRBY', hash_of(tx, round), place_domain(tx, round, group), 1) end
end

-- Another place, for a group that its accepted one is to be replaced by. What is live or to come may fill it, else
-- another group is to be submitted.
function Places.add_replacement(tx, round, group)
  Round.add(tx, round, 'neededGroups', 1)
  Places.add_for(tx, round, group)
  if Round.count_shortfall(round) > 0 then
    Round.add(tx, round, 'newGroups', math.max(round.newGroups, round.submittedGroups) + 1 - round.newGroups)
  end
end

-- For a group of the queue. `has_own`: the round has places for its groups of the queue besides those of domains.
function Places.reserve(tx, round, group, has_own)
  if round.hasQuotas and not has_own then
    redis.call('HINCRBY', hash_of(tx, round), field_for(tx, round, group), -1)
  end
  Round.add(tx, round, 'reservedGroups', 1)
end

local function end_reserve(tx, round) Round.add(tx, round, 'reservedGroups', -1) end

-- The group is accepted.
function Places.take(tx, round, group)
  if group.pinned then return end_reserve(tx, round) end
  if not round.hasQuotas then return end
  local places, domain = places_of_domain(tx, round, group)
  redis.call('HINCRBY', hash_of(tx, round), places > 0 and domain or SPARE, -1)
end

-- A pinned group has left the round without being accepted: any group may have its place.
function Places.release_reserved(tx, round)
  end_reserve(tx, round)
  if round.hasQuotas then Places.add_spare(tx, round, 1) end
end

-- Places of domains that no group can take any more are for any group. Only when all new groups are there.
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

-- `groups`: all that may still take a place of their domain.
local function recount_live(tx, round, groups)
  for field in pairs(round.hasQuotas and Hashes.all(hash_of(tx, round)) or {}) do
    if string.sub(field, 1, #LIVE) == LIVE then redis.call('HDEL', hash_of(tx, round), field) end
  end
  for _, group in ipairs(groups) do Places.count_live(tx, round, group, 1) end
end

-- A group that is gone may have been pinned, or might have taken a place of its domain: only the others still do.
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
