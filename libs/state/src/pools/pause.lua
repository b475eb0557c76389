--[[ Pauses a pool, or resumes it. A paused pool grants no leases: acquires that may wait are parked, others are
refused; leases of running requests stay. After a resume, free room goes to waiting acquires; while the weights of the
pool change, only after that change.
ARGV[1] JSON:
  paused           boolean
  deadlineMs       of a pause: time until its end; absent: no end. A pause without a deadline gets none later
  overdueOnly      of a resume: only if the deadline of the pause has come, and the weights do not change. Then engines
                   that can be paused are recorded as engines to resume: the caller of the pause may have paused them
Reply: PausePoolReply and WaiterAnswers
Flags: allow-oom ]]
return function(tx, args)
  local was_paused = Settings.get(tx, 'paused') == '1'
  local until_ms = Settings.number(tx, 'pausedUntilMs')
  if args.overdueOnly then
    if not until_ms or tx.now < until_ms or Settings.get(tx, 'syncing') then
      return Waiters.reply(tx, {}, { paused = was_paused, changed = false })
    end
    PausedEngines.review_again(tx)
  end
  if args.paused then
    redis.call('HSET', tx.key.settings, 'paused', '1')
  else
    redis.call('HDEL', tx.key.settings, 'paused')
  end
  if args.paused and args.deadlineMs and (until_ms or not was_paused) then
    redis.call('HSET', tx.key.settings, 'pausedUntilMs', Format.integer(tx.now + args.deadlineMs))
  else
    redis.call('HDEL', tx.key.settings, 'pausedUntilMs')
  end
  tx.settings = nil
  local ids = args.paused and {} or redis.call('ZRANGE', tx.key.eligible, 0, Waiters.SERVERS_LOOKED_AT - 1)
  return Waiters.reply(tx, ids, { paused = args.paused, changed = was_paused ~= args.paused })
end
