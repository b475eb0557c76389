--- @include "transition"
-- The places of a round: `needed`, some of them reserved for pinned groups; with quotas each domain has its own, and
-- domains' places + spare ones + reserved ones + accepted groups = needed. Without quotas there is no hash.
local SPARE = '*spare'

local function places_hash(round) return key.roundPlaces(round.job, round.roundId) end

-- Places that are neither taken nor reserved.
local function open_places(round) return round.needed - round.accepted - round.reserved end

-- The domain whose places a group may take; '' for all that no quota names.
local function place_domain(round, group)
  local domain = group.domain or ''
  return redis.call('HEXISTS', places_hash(round), domain) == 1 and domain or ''
end

local function has_place(round, group)
  if round.accepted >= round.needed then return false end
  if group.pinned then return true end
  if open_places(round) <= 0 then return false end
  if not round.hasQuotas then return true end
  local places = redis.call('HMGET', places_hash(round), SPARE, place_domain(round, group))
  return tonumber(places[1] or 0) > 0 or tonumber(places[2] or 0) > 0
end

local function reserve(round, by)
  round.reserved = count_in(key.round(round.job, round.roundId), round.job, 'reservedGroups', by)
end

-- The group is accepted.
local function take_place(round, group)
  if group.pinned then return reserve(round, -1) end
  if not round.hasQuotas then return end
  local domain = place_domain(round, group)
  local own = tonumber(redis.call('HGET', places_hash(round), domain) or 0)
  redis.call('HINCRBY', places_hash(round), own > 0 and domain or SPARE, -1)
end

-- A pinned group has left the round without being accepted: anybody may have its place.
local function release_reserved(round)
  reserve(round, -1)
  if round.hasQuotas then redis.call('HINCRBY', places_hash(round), SPARE, 1) end
end

-- Places of domains that nothing can take any more are for anybody. Only when all new groups are there.
local function release_domains(round)
  if not round.hasQuotas then return end
  local hash = redis.call('HGETALL', places_hash(round))
  local live = {}
  for position = 1, #hash, 2 do live[hash[position]] = tonumber(hash[position + 1]) end
  for domain, places in pairs(live) do
    if domain ~= SPARE and string.sub(domain, 1, 5) ~= 'live:' and places > 0 and (live['live:' .. domain] or 0) == 0 then
      redis.call('HSET', places_hash(round), domain, 0)
      redis.call('HINCRBY', places_hash(round), SPARE, places)
    end
  end
end

-- Counts groups that may still take a place of their domain: live, neither pinned nor held.
local function count_live_of_domain(round, group, by)
  if not round.hasQuotas or group.pinned then return end
  redis.call('HINCRBY', places_hash(round), 'live:' .. place_domain(round, group), by)
end
