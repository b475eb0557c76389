-- Tokens of requests. A sample is a JSON list of segments; the current attempt has at most one segment, its partial
-- save.
local KeptTokens = {}

-- Returns the segment (JSON) that an attempt has generated, and the number of its tokens. `segment` (JSON or nil) and
-- `tokens` are from the last message of the attempt. Since messages may overtake each other, the partial save of the
-- attempt may have more tokens; then its segment is returned.
function KeptTokens.made_by_attempt(request, segment, tokens)
  if segment and tokens >= request.savedTokens then return segment, tokens end
  if request.savedSegment then return request.savedSegment, request.savedTokens end
  return nil, 0
end

-- Adds tokens of a request to the sums of its group, from which bounds and histories are computed without reading the
-- requests. `version`: weight version of new tokens, or nil. `is_finished`: the sample is finished.
function KeptTokens.add(tx, request, group, count, version, is_finished)
  Group.read_made(tx, group)
  local oldest = group.oldestVersion or version
  Group.set_made(tx, group, group.tokens + count, math.max(group.longest, request.tokens),
    is_finished and math.max(group.longestTokens, request.tokens) or group.longestTokens,
    version and math.min(oldest, version) or oldest)
end

-- Frees the payload of a segment, JSON or nil, unless the request or a snapshot of the job names it.
function KeptTokens.free_unused(tx, request, segment)
  if not segment then return end
  local ref = cjson.decode(segment).ref
  if request.savedSegment and cjson.decode(request.savedSegment).ref == ref then return end
  for _, made in ipairs(cjson.decode(request.segments)) do
    if made.ref == ref then return end
  end
  KeptRefs.free(tx, request.job, request.groupId, ref)
end

-- Makes the tokens of the attempt a segment of the sample. `is_finished`: the sample is finished, and its siblings may
-- become as long.
function KeptTokens.keep(tx, request, group, segment, tokens, is_finished)
  local made, count = KeptTokens.made_by_attempt(request, segment, tokens)
  local is_kept = made and count > 0
  request.attemptTokens = count
  local unused = not (is_kept and made == segment) and segment
  if is_kept then
    made = Weights.mark_mixed(tx, request, made)
    local segments = request.segments == '[]' and '[' .. made .. ']'
      or string.sub(request.segments, 1, -2) .. ',' .. made .. ']'
    Request.set_segments(tx, request, segments, request.tokens + count)
    KeptTokens.add(tx, request, group, count, cjson.decode(made).weightVersion, is_finished)
  elseif is_finished then
    KeptTokens.add(tx, request, group, 0, nil, true)
  end
  local saved = request.savedSegment
  if saved then Request.forget_saved(tx, request) end
  KeptTokens.free_unused(tx, request, saved)
  KeptTokens.free_unused(tx, request, unused)
  return count
end

-- Forgets a segment whose payload is gone from the store, and the segments after it: their tokens are generated again.
function KeptTokens.lose_from(tx, request, group, round, ref)
  local kept, lost, is_lost = {}, 0, false
  for _, made in ipairs(cjson.decode(request.segments)) do
    is_lost = is_lost or made.ref == ref
    if is_lost then
      lost = lost + made.tokenCount
      KeptRefs.free(tx, request.job, request.groupId, made.ref)
    else
      table.insert(kept, made)
    end
  end
  if lost == 0 then return end
  Request.set_segments(tx, request, Reply.list(kept), request.tokens - lost)
  KeptTokens.add(tx, request, group, -lost)
  Ledger.count(tx, round, 'waste.missing', lost)
  Ledger.count_lost(tx, round, lost)
end

-- Throws all tokens of the request away, with the time they took, and counts them as waste of the round.
function KeptTokens.waste(tx, request, group, round, reason, segment, tokens)
  KeptTokens.keep(tx, request, group, segment, tokens or 0)
  if request.tokens > 0 then
    for _, made in ipairs(cjson.decode(request.segments)) do
      KeptRefs.free(tx, request.job, request.groupId, made.ref)
    end
    KeptTokens.add(tx, request, group, -request.tokens)
    Ledger.count(tx, round, 'waste.' .. reason, request.tokens)
    if request.state ~= 'finished' then Ledger.count_lost(tx, round, request.tokens) end
  end
  Request.forget_tokens(tx, request)
end

return KeptTokens
