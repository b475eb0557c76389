--[[ Answers parked acquires whose time is over, at most 128.
Reply: WaiterAnswers, with the number of acquires still `waiting`. WAIT_TIMEOUT: all servers that fit are full;
  NO_SERVER_AVAILABLE: no server takes leases or fits; POOL_PAUSED: the pool is paused or its weights change; FENCED:
  the worker epoch has expired
Flags: allow-oom ]]
return function(tx)
  local PAGE = 128
  local now = tx.now
  local answers = {}
  local due = redis.call('ZRANGEBYSCORE', tx.key.acquireDeadlines, '-inf', Format.integer(now), 'LIMIT', 0, PAGE)
  for _, acquire_id in ipairs(due) do
    local waiter = Parked.get(tx, acquire_id)
    if waiter then
      local code, reason = Waiters.error(tx, waiter, true)
      Parked.remove(tx, waiter)
      table.insert(answers, { acquireId = acquire_id, replyTo = waiter.replyTo, error = code, reason = reason })
    else
      redis.call('ZREM', tx.key.acquireDeadlines, acquire_id)
    end
  end
  return Reply.object({ answers = answers, more = #due == PAGE, waiting = redis.call('HLEN', tx.key.acquireWaiters) },
    { servers = '{}' })
end
