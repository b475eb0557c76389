--[[ Returns leases and gives the room to those who wait for it.
ARGV[1] JSON:
  items            list of {acquireId, seq?, outcome?}; at most 128. With seq only that very lease is meant; outcome is
                   'finished' or 'failed', for the breaker
  mostSessions     number: as in acquire
  rememberMs       number: how long the answer, or the tombstone, is kept
Reply: results     list, in the order of the items: {released, reason}
       answers     list for parked callers: {acquireId, replyTo, seq, serverId, branch, inflight} | {.., error, reason?}
       servers     object: serverId -> {epoch, endpoint, dialect, model?, weightVersion}
       more        true when further waiters may be granted (run routing/grant)
       broken      list of serverId that the breaker made suspect; absent when there are none
A repeat, a late or an unknown release changes nothing. A release by acquireId of something that is not held leaves a
tombstone, and an acquire by that id that comes later is refused; one that is parked is answered RELEASED.
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/reply"
--- @include "../includes/clock"
--- @include "includes/waiters"
--- @include "includes/breaker"
local args = cjson.decode(ARGV[1])
local now = now_ms()
local answers, servers = {}, {}
local touched, is_touched, broken = {}, {}, {}

local function not_held(item)
  local past = redis.call('GET', key.released(item.acquireId))
  if past and not tombstone_error(past) then
    local is_same = item.seq == nil or unpack_lease(past).seq == item.seq
    return { released = false, reason = is_same and 'already-released' or 'unknown' }
  end
  if item.seq ~= nil then return { released = false, reason = 'unknown' } end
  local waiter = waiter_of(item.acquireId)
  if waiter then
    remove_waiter(waiter)
    table.insert(answers, { acquireId = waiter.acquireId, replyTo = waiter.replyTo, error = 'RELEASED' })
  end
  redis.call('SET', key.released(item.acquireId), TOMBSTONE, 'PX', args.rememberMs)
  return { released = false, reason = 'tombstone' }
end

local function release(item)
  local packed = packed_lease(item.acquireId)
  if not packed then return not_held(item) end
  local lease = unpack_lease(packed)
  if item.seq ~= nil and item.seq ~= lease.seq then return { released = false, reason = 'already-released' } end
  -- A lease of a void epoch is the sweeper's; the word of its holder counts no more.
  if not is_on_current_epoch(lease) or not is_current_worker(lease.workerId, lease.workerEpoch) then
    return { released = false, reason = 'fenced' }
  end
  return_lease(item.acquireId, lease, now)
  redis.call('SET', key.released(item.acquireId), packed, 'PX', args.rememberMs)
  if optional(item.outcome) and note_outcome(server_of(lease.serverId), item.outcome) then
    table.insert(broken, lease.serverId)
  end
  if not is_touched[lease.serverId] then
    is_touched[lease.serverId] = true
    table.insert(touched, lease.serverId)
  end
  return { released = true, reason = 'released' }
end

local results = {}
local acquire_ids = {}
for index, item in ipairs(args.items) do acquire_ids[index] = item.acquireId end
read_leases(acquire_ids)
for index, item in ipairs(args.items) do results[index] = release(item) end
local more = #touched > 0 and grant_waiters(touched, now, args.mostSessions, answers, servers)
save_changes()
return '{"results":' .. encode_list(results) .. ',"answers":' .. encode_list(answers)
  .. ',"servers":' .. cjson.encode(servers) .. ',"more":' .. tostring(more)
  .. (#broken > 0 and ',"broken":' .. encode_list(broken) or '') .. '}'
