--[[ Ends the waiting of an acquire. One that was granted stays granted; one that was never heard of leaves a tombstone,
so that it is refused when it arrives.
ARGV[1] JSON:
  acquireId        string
  workerId, workerEpoch   whose it must be
  rememberMs       number: how long the tombstone is kept
Reply: cancelled   boolean
       reason      'cancelled' | 'granted' | 'released' | 'tombstone' | 'fenced'
       seq         number: of the lease, when granted
       answers     list: the answer of the one that waited, RELEASED
       servers     {}
       more        false
Errors: WORKER_NOT_FOUND. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/reply"
--- @include "../includes/clock"
--- @include "includes/waiters"
local args = cjson.decode(ARGV[1])

local function answer(cancelled, reason, waiter, seq)
  local answers = {}
  if waiter then answers[1] = { acquireId = waiter.acquireId, replyTo = waiter.replyTo, error = 'RELEASED' } end
  return '{"cancelled":' .. tostring(cancelled) .. ',"reason":"' .. reason .. '"'
    .. (seq and ',"seq":' .. string.format('%.0f', seq) or '') .. ',"answers":' .. encode_list(answers)
    .. ',"servers":{},"more":false}'
end

if not is_current_worker(args.workerId, args.workerEpoch) then
  local code, message, field = void_worker(args.workerId)
  return code == 'FENCED' and answer(false, 'fenced') or fail(code, message, field)
end
local waiter = waiter_of(args.acquireId)
if waiter then
  if waiter.workerId ~= args.workerId then return answer(false, 'fenced') end
  remove_waiter(waiter)
  redis.call('SET', key.released(args.acquireId), TOMBSTONE, 'PX', args.rememberMs)
  return answer(true, 'cancelled', waiter)
end
local packed = redis.call('HGET', key.leases, args.acquireId)
if packed then return answer(false, 'granted', nil, unpack_lease(packed).seq) end
local past = redis.call('GET', key.released(args.acquireId))
if past and not tombstone_error(past) then return answer(false, 'released') end
redis.call('SET', key.released(args.acquireId), TOMBSTONE, 'PX', args.rememberMs)
return answer(false, 'tombstone')
