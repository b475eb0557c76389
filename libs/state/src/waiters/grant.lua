--[[ Gives free room to waiters: after an event that made more room than one script hands out, and periodically, so that
no waiter depends on a single call. Checks the first servers of the policy's order, and a page of the other servers that
moves on with each call, so that waiters for each server are found.
Reply: WaiterAnswers
Flags: allow-oom ]]
return function(tx)
  local ids = {}
  if redis.call('HLEN', tx.key.acquireWaiters) > 0 then
    ids = redis.call('ZRANGE', tx.key.eligible, 0, Waiters.SERVERS_LOOKED_AT - 1)
    local others = redis.call('ZCARD', tx.key.eligible) - Waiters.SERVERS_LOOKED_AT
    if others > 0 then
      local page = redis.call('HINCRBY', tx.key.meta, 'grantPage', 1) % math.ceil(others / Waiters.SERVERS_LOOKED_AT)
      local from = Waiters.SERVERS_LOOKED_AT * (1 + page)
      for _, id in ipairs(redis.call('ZRANGE', tx.key.eligible, from,
        from + Waiters.SERVERS_LOOKED_AT - 1)) do table.insert(ids, id) end
    end
  end
  return Waiters.reply(tx, ids, {})
end
