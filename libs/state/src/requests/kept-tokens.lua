-- Tokens of requests. A sample is a JSON list of segments; the attempt in hand has at most one, its partial save.
local KeptTokens = {}

-- What an attempt made: what its last message brings, or its partial save when that holds more (messages may overtake
-- each other). `segment` is JSON or nil.
function KeptTokens.made_by_attempt(request, segment, tokens)
  if segment and tokens >= request.savedTokens then return segment, tokens end
  if request.savedSegment then return request.savedSegment, request.savedTokens end
  return nil, 0
end

-- What bounds and histories need to know of a group without looking at its requests.
local function note_tokens(tx, request, count, version)
  local group = tx.key:group(request.job, request.groupId)
  redis.call('HINCRBY', group, 'tokens', count)
  local known = redis.call('HMGET', group, 'longest', 'oldestVersion')
  if request.tokens > tonumber(known[1] or 0) then redis.call('HSET', group, 'longest', request.tokens) end
  if version and (not known[2] or version < tonumber(known[2])) then redis.call('HSET', group, 'oldestVersion',
    version) end
end

-- Frees the payload of a segment, JSON or nil, unless the request or a snapshot of the job names it.
function KeptTokens.free_unused(tx, request, segment)
  if not segment then return end
  local ref = cjson.decode(segment).ref
  if request.savedSegment and cjson.decode(request.savedSegment).ref == ref then return end
  for _, made in ipairs(cjson.decode(request.segments)) do
    if made.ref == ref then return end
  end
  if not KeptRefs.refs_in_snapshots(tx, request.job, request.groupId)[ref] then FreedPayloads.free(tx, ref) end
end

-- Ends the attempt's tokens: they become a segment of the sample.
function KeptTokens.keep(tx, request, segment, tokens)
  local made, count = KeptTokens.made_by_attempt(request, segment, tokens)
  if made and count > 0 then
    made = MixedWeights.mark(tx, request, made)
    request.segments = request.segments == '[]' and '[' .. made .. ']'
      or string.sub(request.segments, 1, -2) .. ',' .. made .. ']'
    request.tokens = request.tokens + count
    redis.call('HSET', tx.key:request(request.id), 'segments', request.segments, 'tokens', request.tokens)
    note_tokens(tx, request, count, cjson.decode(made).weightVersion)
  end
  local saved = request.savedSegment
  if saved then
    redis.call('HDEL', tx.key:request(request.id), 'savedSegment', 'savedTokens')
    request.savedSegment, request.savedTokens = nil, 0
  end
  KeptTokens.free_unused(tx, request, saved)
  KeptTokens.free_unused(tx, request, segment)
  return count
end

-- A payload is gone from its store: its tokens are made again, and so are those that continued them.
function KeptTokens.lose_from(tx, request, round, ref)
  local kept, lost, is_lost = {}, 0, false
  for _, made in ipairs(cjson.decode(request.segments)) do
    is_lost = is_lost or made.ref == ref
    if is_lost then lost = lost + made.tokenCount else table.insert(kept, made) end
    if is_lost and not KeptRefs.refs_in_snapshots(tx, request.job,
      request.groupId)[made.ref] then FreedPayloads.free(tx, made.ref) end
  end
  if lost == 0 then return end
  request.segments, request.tokens = Reply.list(kept), request.tokens - lost
  redis.call('HSET', tx.key:request(request.id), 'segments', request.segments, 'tokens', request.tokens)
  redis.call('HINCRBY', tx.key:group(request.job, request.groupId), 'tokens', 0 - lost)
  Ledger.count(tx, request.job, round.roundId, 'waste.missing', lost)
  Ledger.count_lost(tx, request.job, round.roundId, lost)
end

-- Of a finished sample: what its siblings may come to.
function KeptTokens.note_length(tx, request)
  local hash = tx.key:group(request.job, request.groupId)
  local longest = tonumber(redis.call('HGET', hash, 'longestTokens') or nil) or 0
  if request.tokens > longest then redis.call('HSET', hash, 'longestTokens', request.tokens) end
end

-- Throws all tokens of the request away, with the time they took, and counts them as waste of the round.
function KeptTokens.waste(tx, request, round, reason, segment, tokens)
  KeptTokens.keep(tx, request, segment, tokens or 0)
  redis.call('HDEL', tx.key:request(request.id), 'segments', 'tokens', 'generatedMs', 'attemptMs')
  if request.tokens == 0 then return end
  local kept = KeptRefs.refs_in_snapshots(tx, request.job, request.groupId)
  for _, made in ipairs(cjson.decode(request.segments)) do
    if not kept[made.ref] then FreedPayloads.free(tx, made.ref) end
  end
  redis.call('HINCRBY', tx.key:group(request.job, request.groupId), 'tokens', 0 - request.tokens)
  Ledger.count(tx, request.job, round.roundId, 'waste.' .. reason, request.tokens)
  if request.state ~= 'finished' then Ledger.count_lost(tx, request.job, round.roundId, request.tokens) end
  request.segments, request.tokens = '[]', 0
end

return KeptTokens
