--[[ Returns leases and gives the room to waiters.
ARGV[1] JSON:
  items            list of {acquireId, seq?, outcome?, retryAfterMs?, tokens?}; at most 128. With seq only the lease of
                   this sequence is returned; outcome is 'finished', 'failed' or 'busy', for the breaker; tokens: what
                   the call generated
  rememberMs       number: how long the answer, or the tombstone, is kept
Reply: results     list, in the order of the items: {released, reason, mostServersFail?}; mostServersFail is true after
                   'failed' while most servers fail calls of other prompts
       answers     list for parked callers: {acquireId, replyTo, waitedMs, seq, serverId, ...} | {.., error, reason?}
       servers     object: serverId -> {epoch, endpoint, dialect, model?, weightVersion}
       more        true when further waiters may be granted (run waiters/grant)
       broken      list of serverId that the breaker made suspect; absent when there are none
       unheard     true when most servers fail calls of other prompts, if all answer probes; else absent
A repeat, a late or an unknown release changes nothing. A release by an acquireId without a lease leaves a tombstone: an
acquire by that id that arrives later is refused, and a parked acquire is answered RELEASED.
Flags: allow-oom ]]
local RELEASED = '{"released":true,"reason":"released"}'
local RELEASED_WHILE_SERVERS_FAIL = '{"released":true,"reason":"released","mostServersFail":true}'
local function refused(reason) return '{"released":false,"reason":"' .. reason .. '"}' end

local function release_unheld(tx, item, remember_ms, answers)
  local past = redis.call('GET', tx.key:released(item.acquireId))
  if past and not Parked.tombstone_error(past) then
    local is_same = item.seq == nil or LeaseRecord.unpack(past).seq == item.seq
    return refused(is_same and 'already-released' or 'unknown')
  end
  if item.seq ~= nil then return refused('unknown') end
  local waiter = Parked.get(tx, item.acquireId)
  if waiter then
    Parked.remove(tx, waiter)
    table.insert(answers, { acquireId = waiter.acquireId, replyTo = waiter.replyTo, error = 'RELEASED' })
  end
  redis.call('SET', tx.key:released(item.acquireId), Parked.TOMBSTONE, 'PX', remember_ms)
  return refused('tombstone')
end

-- Releases a held lease. Adds its server to `freed`, and to `broken` when the breaker made it suspect. The second value
-- is true when probes of all servers are to show whether most servers fail calls of other prompts.
local function release_held(tx, item, lease, remember_ms, freed, broken)
  if item.seq ~= nil and item.seq ~= lease.seq then return refused('already-released') end
  local server = Servers.get(tx, lease.serverId)
  -- The sweeper returns the lease of an expired epoch.
  if not server or server.epoch ~= lease.serverEpoch or not Leases.holder(tx, lease.workerId, lease.workerEpoch) then
    return refused('fenced')
  end
  redis.call('SET', tx.key:released(item.acquireId), tx.known_leases[item.acquireId], 'PX', remember_ms)
  Leases.give_back(tx, item.acquireId, lease, item.tokens)
  local is_broken = item.outcome
    and Breaker.note_outcome(tx, server, lease.requestId, item.outcome, item.retryAfterMs)
  if is_broken then broken[#broken + 1] = server.id end
  freed[#freed + 1] = server.id
  if item.outcome ~= 'failed' then return RELEASED end
  local are_most, is_unheard = FailingServers.are_most(tx, lease.requestId)
  return are_most and RELEASED_WHILE_SERVERS_FAIL or RELEASED, is_unheard
end

-- Reads the servers, requests and sessions of many leases with one call for each kind.
local function read_ahead(tx, leases)
  local server_ids, request_ids, session_ids = {}, {}, {}
  for _, lease in pairs(leases) do
    server_ids[#server_ids + 1], request_ids[#request_ids + 1] = lease.serverId, lease.requestId
    if lease.sessionId then session_ids[#session_ids + 1] = lease.sessionId end
  end
  Sessions.read(tx, session_ids)
  Servers.read(tx, server_ids, #server_ids)
  RequestLeases.read(tx, request_ids)
end

return function(tx, args)
  local items, remember_ms = args.items, Format.integer(args.rememberMs)
  local acquire_ids, leases, results, answers, servers, freed, broken = {}, {}, {}, {}, {}, {}, {}
  local unheard = false
  for index, item in ipairs(items) do acquire_ids[index] = item.acquireId end
  LeaseTable.read(tx, acquire_ids)
  for index, acquire_id in ipairs(acquire_ids) do
    local packed = tx.known_leases[acquire_id]
    leases[index] = packed and LeaseRecord.unpack(packed) or nil
  end
  if items[2] then read_ahead(tx, leases) end
  for index, item in ipairs(items) do
    if tx.known_leases[item.acquireId] then
      local is_unheard
      results[index], is_unheard = release_held(tx, item, leases[index], remember_ms, freed, broken)
      unheard = unheard or is_unheard
    else
      results[index] = release_unheld(tx, item, remember_ms, answers)
    end
  end
  local more = freed[1] ~= nil and Waiters.grant(tx, freed, answers, servers)
  Leases.save(tx)
  return '{"results":[' .. table.concat(results, ',') .. '],"answers":' .. Reply.list(answers)
    .. ',"servers":' .. Reply.servers(servers) .. ',"more":' .. tostring(more)
    .. (broken[1] and ',"broken":' .. Reply.list(broken) or '') .. (unheard and ',"unheard":true' or '') .. '}'
end
