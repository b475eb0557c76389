-- The places of a round: `needed`, some of them reserved for pinned groups; with quotas each domain has its own, and
-- domains' places + spare ones + reserved ones + accepted groups = needed. Without quotas there is no hash.
local Places = {}

Places.SPARE = '*spare'

function Places.hash(tx, round) return tx.key:roundPlaces(round.job, round.roundId) end

-- Places that are neither taken nor reserved.
function Places.open(round) return round.needed - round.accepted - round.reserved end

-- The domain whose places a group may take; '' for all that no quota names.
local function place_domain(tx, round, group)
  local domain = group.domain or ''
  return redis.call('HEXISTS', Places.hash(tx, round), domain) == 1 and domain or ''
end

function Places.has_place(tx, round, group)
  if round.accepted >= round.needed then return false end
  if group.pinned then return true end
  if Places.open(round) <= 0 then return false end
  if not round.hasQuotas then return true end
  local places = redis.call('HMGET', Places.hash(tx, round), Places.SPARE, place_domain(tx, round, group))
  return tonumber(places[1] or 0) > 0 or tonumber(places[2] or 0) > 0
end

function Places.reserve(tx, round, by)
  round.reserved = Counts.add(tx, tx.key:round(round.job, round.roundId), round.job, 'reservedGroups', by)
end

-- The group is accepted.
function Places.take(tx, round, group)
  if group.pinned then return Places.reserve(tx, round, -1) end
  if not round.hasQuotas then return end
  local domain = place_domain(tx, round, group)
  local own = tonumber(redis.call('HGET', Places.hash(tx, round), domain) or 0)
  redis.call('HINCRBY', Places.hash(tx, round), own > 0 and domain or Places.SPARE, -1)
end

-- A pinned group has left the round without being accepted: anybody may have its place.
function Places.release_reserved(tx, round)
  Places.reserve(tx, round, -1)
  if round.hasQuotas then redis.call('HINCRBY', Places.hash(tx, round), Places.SPARE, 1) end
end

-- Places of domains that nothing can take any more are for anybody. Only when all new groups are there.
function Places.release_domains(tx, round)
  if not round.hasQuotas then return end
  local hash = redis.call('HGETALL', Places.hash(tx, round))
  local live = {}
  for position = 1, #hash, 2 do live[hash[position]] = tonumber(hash[position + 1]) end
  for domain, places in pairs(live) do
    if domain ~= Places.SPARE and string.sub(domain, 1, 5) ~= 'live:' and places > 0 and (live['live:' .. domain]
      or 0) == 0 then
      redis.call('HSET', Places.hash(tx, round), domain, 0)
      redis.call('HINCRBY', Places.hash(tx, round), Places.SPARE, places)
    end
  end
end

-- Counts groups that may still take a place of their domain: live, neither pinned nor held.
function Places.count_live(tx, round, group, by)
  if not round.hasQuotas or group.pinned then return end
  redis.call('HINCRBY', Places.hash(tx, round), 'live:' .. place_domain(tx, round, group), by)
end

return Places
