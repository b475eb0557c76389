--[[ Pauses a pool, or resumes it. Paused, no lease is granted: acquires that may wait are parked, the others refused;
leases that are there run on. After a resume room goes to those who wait, unless the weights of the pool change just
now: then after that.
ARGV[1] JSON:
  paused           boolean
Reply: PausePoolReply and WaiterAnswers
Flags: allow-oom ]]
return function(tx, args)
  local now = tx.now
  local changed = (Settings.get(tx, 'paused') == '1') ~= args.paused
  if args.paused then
    redis.call('HSET', tx.key.settings, 'paused', '1')
  else
    redis.call('HDEL', tx.key.settings, 'paused')
  end
  tx.settings = nil
  local ids = args.paused and {} or redis.call('ZRANGE', tx.key.eligible, 0, Waiters.SERVERS_LOOKED_AT - 1)
  return Waiters.reply(tx, ids, { paused = args.paused, changed = changed })
end
