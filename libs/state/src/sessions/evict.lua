--[[ Forgets sessions that were idle for too long, or that are more than the pool keeps, at most 128; never a session
with leases.
ARGV[1] JSON: {idleMs}: the pool setting `sessionIdleMs` takes precedence
Reply: evicted     number
       more        true when there may be further sessions to forget
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 128
  local idle_ms = Settings.number(tx, 'sessionIdleMs') or args.idleMs
  local limit = Format.integer(tx.now - idle_ms)
  local idle = redis.call('ZRANGEBYSCORE', tx.key.idleSessions, '-inf', limit, 'LIMIT', 0, PAGE)
  if #idle == 0 then
    local surplus = Sessions.surplus(tx)
    if surplus > 0 then idle = redis.call('ZRANGE', tx.key.idleSessions, 0, math.min(PAGE, surplus) - 1) end
  end
  local evicted = Sessions.evict(tx, idle)
  Leases.save(tx)
  return '{"evicted":' .. evicted .. ',"more":' .. tostring(#idle == PAGE) .. '}'
end
