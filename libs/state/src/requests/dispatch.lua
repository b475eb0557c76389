-- Which requests of a round are claimed first, when its policy has another order than that of arrival. What comes
-- ahead is a number that is taken off the place in the pending queue: 2^18 for 64 tokens more, so the order of arrival
-- only decides among equals; a probe goes ahead of all that, and what was begun before (FRONT) ahead of a probe.
local Dispatch = {}

local AHEAD_A_STEP, STEP_TOKENS = 2 ^ 18, 64
local PROBE = 2 ^ 38

local function ahead_of(tokens) return math.floor(tokens / STEP_TOKENS) * AHEAD_A_STEP end

-- By how much each of the new requests of a group goes ahead, or nil; and whether its first one is a probe.
function Dispatch.ahead(tx, round, group, launched)
  local order = redis.call('HGET', tx.key:round(round.job, round.roundId), 'dispatchOrder')
  if not order or order == 'arrival' then return nil, false end
  local known = group.promptHash and PromptLengths.read(tx, group.promptHash)
  local tokens = known and PromptLengths.expected_longest(known, group.samples, group.maxTokens) or group.maxTokens
  local ahead = {}
  for position = 1, launched do ahead[position] = ahead_of(tokens) end
  local probes = order == 'probe-first' and not known
  if probes then ahead[1] = PROBE end
  return ahead, probes
end

-- A sample of a group of unknown length has finished: pending samples are expected to be as long as the longest one.
function Dispatch.follow_probe(tx, group)
  local made = Rounds.made(tx, group)
  if not made.isProbing then return end
  local place = made.placeInQueue - ahead_of(made.longest)
  for index = 0, group.launched - 1 do
    local id = Requests.id_of(group.job, group.groupId, index)
    if redis.call('ZSCORE', tx.key:pending(group.job), id) then
      redis.call('ZADD', tx.key:pending(group.job), 'XX', Format.integer(place + index), id)
    end
  end
end

return Dispatch
