-- How long a sample has generated, over all its attempts: for those with a maximum time (`timeoutMs`). An attempt
-- reports its own time with each partial save and at its end; the next claim adds it up, however the attempt has ended.
local GenerationTime = {}

function GenerationTime.note_time(tx, request, group, attempt_ms)
  if not group.timeoutMs or not attempt_ms then return end
  local hash = tx.key:request(request.id)
  local known = tonumber(redis.call('HGET', hash, 'attemptMs') or nil) or 0
  if attempt_ms > known then redis.call('HSET', hash, 'attemptMs', Format.integer(attempt_ms)) end
end

-- Milliseconds of the attempts before this one, which begins now.
function GenerationTime.sum_time(tx, request)
  local hash = tx.key:request(request.id)
  local field = redis.call('HMGET', hash, 'generatedMs', 'attemptMs')
  local sum = (tonumber(field[1] or nil) or 0) + (tonumber(field[2] or nil) or 0)
  if field[2] then
    redis.call('HSET', hash, 'generatedMs', Format.integer(sum))
    redis.call('HDEL', hash, 'attemptMs')
  end
  return sum
end

return GenerationTime
