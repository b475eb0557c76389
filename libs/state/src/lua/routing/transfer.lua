--[[ Moves a live lease to a named server: the load of the server that is left falls and its room goes to those who wait,
that of the target rises, all at once. The lease keeps its id and its holder; its session and group go with it.
ARGV[1] JSON:
  transferId       string: a repeat gets the first answer for `rememberMs`
  acquireId        string
  seq?             number: only that very lease is meant
  workerId, workerEpoch   its holder
  targetServerId, targetEpoch?   where to; with an epoch only while that is the current one
  mostSessions     number: as in acquire
  rememberMs       number
Reply: granted     the lease as in acquire, branch `transferred`
       servers     object: serverId -> {epoch, endpoint, dialect, model?, weightVersion}
       answers, more   as in routing/release; absent in a repeat
       waiterServers   object: the servers of `answers`
Errors, by which nothing changes: WORKER_NOT_FOUND, FENCED (the worker epoch, the lease's server epoch or targetEpoch is void),
  LEASE_NOT_FOUND (unknown, returned, or another worker's), SERVER_NOT_FOUND, VALIDATION_FAILED (the lease is there
  already; the transferId was used for another transfer), POOL_PAUSED, SERVER_NOT_READY, SERVER_FULL,
  SERVER_UNSUITABLE (field: what the acquire asked for).
Facts: none.
Flags: allow-oom ]]
--- @include "../includes/reply"
--- @include "../includes/clock"
--- @include "includes/waiters"
--- @include "includes/move-lease"
local args = cjson.decode(ARGV[1])
local now = now_ms()
if not is_current_worker(args.workerId, args.workerEpoch) then
  return fail(void_worker(args.workerId))
end
local what = args.acquireId .. '|' .. args.targetServerId
local first = redis.call('GET', key.transfer(args.transferId))
if first then
  local known, answer = string.match(first, '^([^\n]*)\n(.*)$')
  if known ~= what then return fail('VALIDATION_FAILED', 'The transferId was used for another transfer', 'transferId') end
  return answer
end
local packed = packed_lease(args.acquireId)
local lease = packed and unpack_lease(packed)
local seq = optional(args.seq)
if not lease or (seq and seq ~= lease.seq) or lease.workerId ~= args.workerId or lease.workerEpoch ~= args.workerEpoch then
  return fail('LEASE_NOT_FOUND', 'No such lease of this worker', 'leaseId')
end
if not is_on_current_epoch(lease) then return fail('FENCED', 'The lease is void: its server started anew', 'leaseId') end
local target = server_of(args.targetServerId)
if not target then return fail('SERVER_NOT_FOUND', 'No such server in the pool', 'targetServerId') end
local target_epoch = optional(args.targetEpoch)
if target_epoch and target_epoch ~= target.epoch then
  return fail('FENCED', 'The epoch of the target is not the current one', 'targetEpoch')
end
if target.id == lease.serverId then
  return fail('VALIDATION_FAILED', 'The lease is on this server already', 'targetServerId')
end
if pool_is_paused() then return fail('POOL_PAUSED', 'The pool is paused') end
if not is_usable(target) then
  return fail('SERVER_NOT_READY', 'The target takes no leases: it is ' .. shown_state(target), 'targetServerId')
end
local unmet = lease.asked and unmet_wish(target, cjson.decode(lease.asked))
if unmet then return fail('SERVER_UNSUITABLE', 'The target does not meet what the acquire asked for', unmet) end
if not has_room(target) then return fail('SERVER_FULL', 'The target has no room', 'targetServerId') end

local source = server_of(lease.serverId)
local policy = policy_in_force()
local best = {}
visit_eligible(BEST, function(id, score)
  table.insert(best, { serverId = id, key = load_in_score(score, policy) })
  return #best == BEST
end)
local decision = { policy = policy, branch = 'transferred', policyVersion = number_setting('version') or 0,
  key = policy_load(target, policy), best = best, eligible = order_of(BEST).count }
move_lease(args.acquireId, lease, target, decision, now)
local servers, waiter_servers, answers = {}, {}, {}
local granted = cjson.encode(lease_answer(lease, 'transferred', servers))
local answer = '{"granted":' .. granted .. ',"servers":' .. cjson.encode(servers)
redis.call('SET', key.transfer(args.transferId), what .. '\n' .. answer .. '}', 'PX', args.rememberMs)
local more = grant_waiters({ source.id }, now, args.mostSessions, answers, waiter_servers)
save_changes()
return answer .. ',"answers":' .. encode_list(answers) .. ',"waiterServers":' .. cjson.encode(waiter_servers)
  .. ',"more":' .. tostring(more) .. '}'
