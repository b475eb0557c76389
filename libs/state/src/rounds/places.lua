-- The places of a round: `needed`, some of them reserved for pinned groups; with quotas each domain has places too, and
-- places of domains + spare ones + reserved ones + accepted groups = needed. Without quotas there is no hash.
local Places = {}

local SPARE = '*spare'

local function hash_of(tx, round) return tx.key:roundPlaces(round.job, round.roundId) end

-- Places that are neither taken nor reserved.
function Places.open(round) return round.needed - round.accepted - round.reserved end

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
  if round.accepted >= round.needed then return false end
  if group.pinned then return true end
  if Places.open(round) <= 0 then return false end
  return Places.free(tx, round) > 0 or (places_of_domain(tx, round, group)) > 0
end

function Places.reserve(tx, round, by) round.reserved = Rounds.bump(tx, round, 'reservedGroups', by) end

-- The group is accepted.
function Places.take(tx, round, group)
  if group.pinned then return Places.reserve(tx, round, -1) end
  if not round.hasQuotas then return end
  local places, domain = places_of_domain(tx, round, group)
  redis.call('HINCRBY', hash_of(tx, round), places > 0 and domain or SPARE, -1)
end

-- A pinned group has left the round without being accepted: any group may have its place.
function Places.release_reserved(tx, round)
  Places.reserve(tx, round, -1)
  if round.hasQuotas then Places.add_spare(tx, round, 1) end
end

-- Places of domains that no group can take any more are for any group. Only when all new groups are there.
function Places.release_domains(tx, round)
  if not round.hasQuotas then return end
  local fields = Hashes.all(hash_of(tx, round))
  for domain, places in pairs(fields) do
    local is_domain = domain ~= SPARE and string.sub(domain, 1, 5) ~= 'live:'
    if is_domain and tonumber(places) > 0 and tonumber(fields['live:' .. domain] or 0) == 0 then
      redis.call('HSET', hash_of(tx, round), domain, 0)
      Places.add_spare(tx, round, places)
    end
  end
end

-- Counts groups that may still take a place of their domain: live, neither pinned nor held.
function Places.count_live(tx, round, group, by)
  if not round.hasQuotas or group.pinned then return end
  redis.call('HINCRBY', hash_of(tx, round), 'live:' .. place_domain(tx, round, group), by)
end

return Places
