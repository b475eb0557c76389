--[[ Ends the waiting of an acquire. A granted acquire stays granted; an unknown acquire leaves a tombstone, so that it
is refused when it arrives.
ARGV[1] JSON: {acquireId, workerId, workerEpoch; rememberMs: how long the tombstone is kept}
Reply: Cancelled
Errors: WORKER_NOT_FOUND.
Flags: allow-oom ]]
return function(tx, args)

  local function answer(cancelled, reason, waiter, seq)
    local answers = {}
    if waiter then answers[1] = { acquireId = waiter.acquireId, replyTo = waiter.replyTo, error = 'RELEASED' } end
    return '{"cancelled":' .. tostring(cancelled) .. ',"reason":"' .. reason .. '"'
      .. (seq and ',"seq":' .. Format.integer(seq) or '') .. ',"answers":' .. Reply.list(answers)
      .. ',"servers":{},"more":false}'
  end

  if not Leases.is_current_worker(tx, args.workerId, args.workerEpoch) then
    local code, message, field = WorkerFence.expired_worker(tx, args.workerId)
    return code == 'FENCED' and answer(false, 'fenced') or Reply.fail(code, message, field)
  end
  local waiter = Parked.get(tx, args.acquireId)
  if waiter then
    if waiter.workerId ~= args.workerId then return answer(false, 'fenced') end
    Parked.remove(tx, waiter)
    redis.call('SET', tx.key:released(args.acquireId), Parked.TOMBSTONE, 'PX', args.rememberMs)
    return answer(true, 'cancelled', waiter)
  end
  local packed = redis.call('HGET', tx.key.leases, args.acquireId)
  if packed then return answer(false, 'granted', nil, LeaseRecord.unpack(packed).seq) end
  local past = redis.call('GET', tx.key:released(args.acquireId))
  if past and not Parked.tombstone_error(past) then return answer(false, 'released') end
  redis.call('SET', tx.key:released(args.acquireId), Parked.TOMBSTONE, 'PX', args.rememberMs)
  return answer(false, 'tombstone')
end
