-- Tokens of requests. A sample is a JSON list of segments; the current attempt has a partial save, which is one segment
-- or several.
local KeptTokens = {}

-- Number of tokens that an attempt has generated. `segment` (JSON or nil) and `tokens` are from the last message of the
-- attempt. Since messages may overtake each other, the partial save of the attempt may have more tokens.
function KeptTokens.count_made(request, segment, tokens)
  return math.max(segment and tokens or 0, request.savedTokens)
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

local function ref_of(segment) return string.match(segment, '"ref":"([^"]*)"') end

-- Frees the payloads of segments, a list of JSON, unless the request or a snapshot of the job names them.
function KeptTokens.free_unused(tx, request, segments)
  if #segments == 0 then return end
  local named = {}
  for _, made in ipairs(cjson.decode(request.segments)) do named[made.ref] = true end
  for _, saved in ipairs(Request.read_saved(tx, request)) do named[ref_of(saved)] = true end
  for _, segment in ipairs(segments) do
    local ref = ref_of(segment)
    if not named[ref] then KeptRefs.free(tx, request.job, request.groupId, ref) end
  end
end

-- Makes the tokens of the attempt segments of the sample: `segment` (JSON or nil), or the partial save if it has more
-- tokens. `is_finished`: the sample is finished, and its siblings may become as long. Only then a segment without
-- tokens is kept: it has the text that the segment before it holds back.
function KeptTokens.keep(tx, request, group, segment, tokens, is_finished)
  local saved = Request.read_saved(tx, request)
  local count = KeptTokens.count_made(request, segment, tokens)
  local made = segment and tokens >= request.savedTokens and { segment } or saved
  local is_kept = count > 0 or (is_finished and segment)
  request.attemptTokens = count
  if is_kept then
    local marked = {}
    for position, one in ipairs(made) do marked[position] = Weights.mark_mixed(tx, request, one) end
    local added = table.concat(marked, ',') .. ']'
    local segments = request.segments == '[]' and '[' .. added or string.sub(request.segments, 1, -2) .. ',' .. added
    Request.set_segments(tx, request, segments, request.tokens + count)
    local version = count > 0 and cjson.decode(marked[1]).weightVersion or nil
    KeptTokens.add(tx, request, group, count, version, is_finished)
  elseif is_finished then
    KeptTokens.add(tx, request, group, 0, nil, true)
  end
  if request.savedSegment then Request.forget_saved(tx, request) end
  if segment then table.insert(saved, segment) end
  -- Most attempts end with one segment, which is used, and without a partial save.
  if not (is_kept and #saved == 1 and made[1] == saved[1]) then KeptTokens.free_unused(tx, request, saved) end
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
