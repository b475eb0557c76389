--[[ Expires worker epochs without a heartbeat for their time to live, at most 128. For one more time to live no epoch
expires after an outage (no replica ran this transition for `gapMs`), or when at least two and more than 30 % of the
live workers would expire together.
ARGV[1] JSON: {gapMs}
Reply: ExpiredWorkers
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 128
  local MASS_SHARE = 0.3
  local now = tx.now
  local meta = redis.call('HMGET', tx.key.meta, 'reaperTickMs', 'holdUntilMs', 'holdReason')
  local last_tick, hold_until = tonumber(meta[1]), tonumber(meta[2])
  redis.call('HSET', tx.key.meta, 'reaperTickMs', Format.integer(now))

  local due = redis.call('ZRANGEBYSCORE', tx.key.workers, '-inf', Format.integer(now), 'LIMIT', 0, PAGE)

  -- Expires no epoch until the longest time to live of the workers that are due first is over.
  local function hold(reason)
    local longest = 0
    for _, worker_id in ipairs(redis.call('ZRANGE', tx.key.workers, 0, PAGE - 1)) do
      longest = math.max(longest, tonumber(redis.call('HGET', tx.key:worker(worker_id), 'ttlMs')) or 0)
    end
    redis.call('HSET', tx.key.meta, 'holdUntilMs', Format.integer(now + longest), 'holdReason', reason)
    return '{"expired":[],"more":false,"held":"' .. reason .. '"}'
  end

  if last_tick and now - last_tick > args.gapMs then return hold('outage') end
  if hold_until and now < hold_until then return '{"expired":[],"more":false,"held":"' .. meta[3] .. '"}' end
  if #due == 0 then
    -- The alarm is over: late workers have sent a heartbeat, or are gone.
    if hold_until then redis.call('HDEL', tx.key.meta, 'holdUntilMs', 'holdReason') end
    return '{"expired":[],"more":false}'
  end
  if not hold_until then
    local late = redis.call('ZCOUNT', tx.key.workers, '-inf', Format.integer(now))
    if late >= 2 and late > MASS_SHARE * redis.call('ZCARD', tx.key.workers) then return hold('mass') end
  end
  for _, worker_id in ipairs(due) do
    local epoch = redis.call('HGET', tx.key:worker(worker_id), 'liveEpoch')
    if epoch then
      Workers.expire_epoch(tx, worker_id, epoch)
    else
      redis.call('ZREM', tx.key.workers, worker_id)
    end
  end
  return '{"expired":' .. Reply.list(due) .. ',"more":' .. tostring(#due == PAGE) .. '}'
end
