--- @include "rounds"
-- RoundStatus of the protocol, as JSON.
local PLAIN_NUMBERS = { 'step', 'weightVersion', 'neededGroups', 'newGroups', 'takenGroups',
  'acceptedGroups', 'failedGroups', 'droppedGroups', 'requestsDone', 'requestsCut', 'groupsRequeued', 'wastedTokens', 'openedAtMs' }
local function round_status(job, round_id)
  local round = load_round(job, round_id)
  if not round then return nil end
  local hash = key.round(job, round_id)
  local values = redis.call('HMGET', hash, unpack(PLAIN_NUMBERS))
  local status = {}
  for position, name in ipairs(PLAIN_NUMBERS) do status[name] = tonumber(values[position] or 0) end
  local texts = redis.call('HMGET', hash, 'kind', 'completedReason', 'completedAtMs', 'policy')
  status.roundId, status.kind, status.state, status.settled = round_id, texts[1], round.state, round.settled
  status.completedReason = texts[2] or nil
  status.completedAtMs = tonumber(texts[3] or nil)
  status.trainerEpoch = tonumber(redis.call('HGET', key.job(job), 'trainerEpoch'))
  status.roundGroups = status.takenGroups + round.submitted
  status.shortfallGroups = takes_results(round) and shortfall_of(round) or 0
  return string.sub(cjson.encode(status), 1, -2) .. ',"policy":' .. texts[4] .. '}'
end
