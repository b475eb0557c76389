--[[ Grants leases as leases/acquire does, in the common case: the pool goes by least-inflight, nobody waits, the item
restricts nothing, its acquireId is new and there is room. It ends before the first item that is not so, for which, and
for all after it, nothing is changed: they are for leases/acquire.
ARGV: mostSessions as in acquire; then for each of at most 128 items
  acquireId
  workerId|workerEpoch
  requestId
  sessionId|groupId|contextTokens, or empty when there is none of them
Reply, a list:
  why it ended: '' (all are granted) | 'pool' (this pool is not plain now) | 'item' | 'sample' (the next one is due
    for a snapshot; those after it may be plain)
  for each item granted its line of the ring of decisions (routing/decisions.lua)
  serverIds of these lines, each once
  their descriptions, JSON as in acquire
Errors: none. Events: none. ]]
return function(tx, _, argv)
  local plain = PlainPool.open(tx)
  local STRIDE, FIRST = 4, 2
  local BEST, FAST_SCAN = Order.BEST, 128
  local count = (#argv - FIRST + 1) / STRIDE
  if not plain.is_for_acquire or not plain.nobody_waits then return { 'pool', {}, {}, {} } end

  -- What is there of these acquireIds: leases, and what was released.
  local acquire_ids, released, session_ids, requests = {}, {}, {}, {}
  for index = 1, count do
    local at = FIRST + (index - 1) * STRIDE
    acquire_ids[index] = argv[at]
    released[index] = tx.key:released(argv[at])
    local extra = argv[at + 3]
    if extra ~= '' then
      local session, group, tokens = string.match(extra, '^([^|]*)|([^|]*)|(%d*)$')
      requests[index] = { session = session ~= '' and session, group = group ~= '' and group, tokens = tokens,
        text = session .. '|' .. group }
      if session ~= '' then session_ids[#session_ids + 1] = session end
    end
  end
  local known = redis.call('HMGET', tx.key.leases, unpack(acquire_ids))
  released = redis.call('MGET', unpack(released))
  local bindings, changed_bindings, room_for_sessions = {}, {}, 0
  if #session_ids > 0 then
    local packed = redis.call('HMGET', tx.key.sessions, unpack(session_ids))
    for index, session in ipairs(session_ids) do bindings[session] = packed[index]
      and BindingRecord.unpack(packed[index]) end
    room_for_sessions = (tonumber(plain.set.maxSessions) or tonumber(argv[1])) - redis.call('HLEN', tx.key.sessions)
  end

  -- Numbers as text, each made once: that is dearer than it looks.
  local numerals = {}
  local function numeral(number)
    local text = numerals[number]
    if not text then
      text = string.format('%.0f', number)
      numerals[number] = text
    end
    return text
  end

  -- The order of the servers with room, as order.lua keeps it; `texts` is each as receipts name it.
  local page = redis.call('ZRANGE', tx.key.eligible, 0, count + BEST - 1, 'WITHSCORES')
  local ids, scores, texts, first = {}, {}, {}, 1
  for position = 1, #page / 2 do
    local id, score = page[2 * position - 1], tonumber(page[2 * position])
    ids[position], scores[position] = id, score
    texts[position] = id .. '=' .. numeral(math.floor(score / Loads.LOAD_UNIT)) .. ';'
  end
  local last = #ids
  local is_whole = last < count + BEST
  local eligible = is_whole and last or redis.call('ZCARD', tx.key.eligible)
  if last > 0 then
    local cards = redis.call('HMGET', tx.key.serverCards, unpack(ids, 1, math.min(last, count)))
    for position, card in ipairs(cards) do PlainPool.server_on(tx, card, ids[position]) end
  end

  -- Moves the server at this position behind its equals, or out when it is full.
  local function move_back(at, server, score)
    if at == first then
      first = first + 1
    else
      table.remove(ids, at)
      table.remove(scores, at)
      table.remove(texts, at)
      last = last - 1
    end
    if server.load >= server.most then
      eligible = eligible - 1
      return
    end
    -- Behind what was read and not the end: it is somewhere there.
    if not is_whole and (last < first or score > scores[last]) then return end
    local position = last + 1
    while position > first and (scores[position - 1] > score
      or (scores[position - 1] == score and ids[position - 1] > server.id)) do
      position = position - 1
    end
    table.insert(ids, position, server.id)
    table.insert(scores, position, score)
    table.insert(texts, position, server.id .. '=' .. numeral(math.floor(score / Loads.LOAD_UNIT)) .. ';')
    last = last + 1
  end

  -- The first server, or the first of the lowest load that holds no lease of the group: (position, branch); nil when
  -- the order says less than is needed.
  local groups = {}
  local function place_of(group)
    local server = first <= last and PlainPool.server_by(tx, ids[first])
    if not server or server.isWarming or server.load >= server.most then return nil end
    local lowest = math.floor(scores[first] / Loads.LOAD_UNIT)
    local held = group and groups[group]
    if group and not held then
      held = {}
      local flat = redis.call('HGETALL', tx.key:groupLeases(group))
      for index = 1, #flat, 2 do held[flat[index]] = true end
      groups[group] = held
    end
    if held and held[server.name] then
      for position = first + 1, math.min(last, first + FAST_SCAN - 1) do
        if math.floor(scores[position] / Loads.LOAD_UNIT) ~= lowest then break end
        local other = PlainPool.server_by(tx, ids[position])
        if not other or other.isWarming or other.load >= other.most then return nil end
        if not held[other.name] then return position, 'group-spread' end
        if position == last and not is_whole or position == first + FAST_SCAN - 1 then return nil end
      end
    end
    local is_tie = first < last and math.floor(scores[first + 1] / Loads.LOAD_UNIT) == lowest
    return first, is_tie and 'tie' or 'least-loaded'
  end

  -- Where the server of a session stands; nil when it is not known, and 0 behind what was read.
  local function position_of(server)
    for position = first, last do
      if ids[position] == server.id then return position end
    end
    return not is_whole and redis.call('ZSCORE', tx.key.eligible, server.id) and 0 or nil
  end

  local seq = tonumber(redis.call('HGET', tx.key.meta, 'leaseSequence') or nil) or 0
  local sample_every = tonumber(plain.set.decisionSampleEvery) or 1000
  local at_text, policy_text = '|' .. string.format('%.0f', tx.now) .. '|', '||least-inflight|' .. (plain.set.version
    or '0') .. '|'
  local any_aborted = redis.call('EXISTS', tx.key.abortedAcquires) == 1
  local lines, leases, taken, why = {}, {}, {}, ''

  for index = 1, count do
    if (seq + 1) % sample_every == 0 then
      why = 'sample'
      break
    end
    local acquire_id = acquire_ids[index]
    local at = FIRST + (index - 1) * STRIDE
    local worker = argv[at + 1]
    local is_new = not known[index] and not released[index] and not taken[acquire_id]
    if any_aborted and redis.call('ZSCORE', tx.key.abortedAcquires, argv[at + 2]) then is_new = false end
    local holder = is_new and PlainPool.holder_of(tx, worker)
    local position, branch, server
    local request = requests[index]
    local binding = request and request.session and bindings[request.session]
    if holder then
      local bound = binding and binding.epoch ~= BindingRecord.NO_EPOCH and PlainPool.server_by(tx, binding.serverId)
      if binding and binding.dpRank then
        -- Its rank stands in the answer.
      elseif bound and bound.epoch == binding.epoch and bound.most > 0 then
        position, branch, server = position_of(bound), 'sticky-hit', bound
      elseif binding or not (request and request.session) or room_for_sessions > 0 then
        position, branch = place_of(request and request.group)
        server = position and PlainPool.server_by(tx, ids[position])
      end
    end
    if not position or not server or server.isWarming or server.load >= server.most then
      why = 'item'
      break
    end
    seq = seq + 1
    local seq_text = string.format('%.0f', seq)
    local load_before = Loads.weighed(server.load, server)
    local load = server.load + 1
    server.load = load
    local line = seq_text .. at_text .. acquire_id .. '|' .. server.id .. '|' .. numeral(load) .. '|' .. branch
      .. policy_text
      .. numeral(load_before) .. '|' .. numeral(eligible) .. '|'
      .. (texts[first] or '') .. (texts[first + 1] or '') .. (texts[first + 2] or '') .. (texts[first + 3] or '')
    lines[index] = line
    leases[#leases + 1] = acquire_id
    leases[#leases + 1] = seq_text .. '|' .. server.id .. '|' .. server.epoch .. '|' .. worker .. '|'
      .. argv[at + 2] .. '|' .. (request and request.text or '|') .. at_text .. (request and request.tokens or '') .. '|'
    RequestLeases.change(tx, argv[at + 2], acquire_id, true)
    taken[acquire_id] = true
    PlainPool.put_into(server, acquire_id)
    PlainPool.put_into(holder, acquire_id)
    holder.digest = holder.digest + seq
    local chosen = seq % Loads.LOAD_UNIT
    server.chosen = chosen == seq and seq_text or string.format('%.0f', chosen)
    local score = Loads.weighed(load, server) * Loads.LOAD_UNIT + chosen
    server.score = score
    if position > 0 then
      move_back(position, server, score)
    elseif load >= server.most then
      eligible = eligible - 1
    end
    if request then
      local surplus = Loads.surplus_tokens(tonumber(request.tokens))
      if surplus > 0 then Loads.change_count(tx.token_changes, server.id, server.epoch, surplus) end
      if request.group then
        redis.call('HINCRBY', tx.key:groupLeases(request.group), server.name, 1)
        if groups[request.group] then groups[request.group][server.name] = true end
      end
      if request.session then
        local stays = branch == 'sticky-hit'
        if binding and not stays and binding.epoch ~= BindingRecord.NO_EPOCH then
          Loads.change_count(tx.session_changes, binding.serverId, binding.epoch, -1)
        end
        if not binding then room_for_sessions = room_for_sessions - 1 end
        if stays then Loads.change_count(tx.session_changes, server.id, server.epoch, -1) end
        bindings[request.session] = { serverId = server.id, epoch = server.epoch, leases = (binding and binding.leases
          or 0) + 1 }
        changed_bindings[request.session] = true
      end
    end
  end

  local described, descriptions = {}, {}
  if #lines > 0 then
    redis.call('HSET', tx.key.leases, unpack(leases))
    RequestLeases.save(tx)
    PlainPool.save_members(tx, 'SADD')
    local placed, gone, chosen = {}, {}, {}
    for id, server in pairs(plain.servers) do
      if server and server.chosen then
        described[#described + 1] = id
        descriptions[#descriptions + 1] = string.sub(server.card, server.describedAt)
        chosen[#chosen + 1] = id
        chosen[#chosen + 1] = server.chosen
        if server.load < server.most then
          placed[#placed + 1] = string.format('%.0f', server.score)
          placed[#placed + 1] = id
        else
          gone[#gone + 1] = id
        end
      end
    end
    if #placed > 0 then redis.call('ZADD', tx.key.eligible, unpack(placed)) end
    if #gone > 0 then redis.call('ZREM', tx.key.eligible, unpack(gone)) end
    redis.call('HSET', tx.key.serverChosen, unpack(chosen))
    tx.new_lines = lines
    Decisions.save(tx)
    redis.call('HSET', tx.key.meta, 'leaseSequence', string.format('%.0f', seq))
    Loads.save(tx)
    local bound, sessions = {}, {}
    for session in pairs(changed_bindings) do
      sessions[#sessions + 1] = session
      bound[#bound + 1] = session
      bound[#bound + 1] = BindingRecord.pack(bindings[session])
    end
    if #sessions > 0 then
      redis.call('HSET', tx.key.sessions, unpack(bound))
      redis.call('ZREM', tx.key.idleSessions, unpack(sessions))
    end
  end
  return { why, lines, described, descriptions }
end
