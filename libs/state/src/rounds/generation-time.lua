-- How long a sample has generated, over all its attempts, for samples with a maximum time (`timeoutMs`). An attempt
-- reports its own time with each partial save and at its end; the next claim adds it up, however the attempt has ended.
local GenerationTime = {}

function GenerationTime.note_time(tx, request, group, attempt_ms)
  if not group.timeoutMs or not attempt_ms then return end
  local known = Request.read_generated(tx, request).attemptMs or 0
  if attempt_ms > known then Request.set(tx, request, { attemptMs = Format.integer(attempt_ms) }) end
end

-- Milliseconds of all attempts before the attempt that starts now.
function GenerationTime.sum_time(tx, request)
  Request.read_generated(tx, request)
  if request.attemptMs then
    Request.set(tx, request, { generatedMs = request.generatedMs + request.attemptMs, attemptMs = false })
  end
  return request.generatedMs
end

return GenerationTime
