-- A change of weights in mode `keep` goes on under running requests: tokens of an attempt that was claimed before its
-- end and runs under an older version may be of both. `toWeightVersion` of the segment says so; rather once too often.
local MixedWeights = {}

function MixedWeights.mark(tx, request, segment)
  tx.kept_weights = tx.kept_weights or redis.call('HMGET', tx.key.weights, 'keptVersion', 'keptUntilMs')
  local version, until_ms = tonumber(tx.kept_weights[1] or nil), tonumber(tx.kept_weights[2] or nil)
  if not version or (cjson.decode(segment).weightVersion or 0) >= version then return segment end
  local claimed_at = tonumber(redis.call('HGET', tx.key:request(request.id), 'claimedAtMs') or 0)
  if until_ms and claimed_at > until_ms then return segment end
  return string.sub(segment, 1, -2) .. string.format(',"toWeightVersion":%.0f}', version)
end

return MixedWeights
