--[[ Ends the waiting of parked claims whose deadline has come, at most 128; they get an empty answer, or POOL_PAUSED.
Reply: replyTo   list of string
       paused    why nothing is claimed now: 'paused' or 'weights-changing'; or absent
       more      true when there may be further claims to end
Flags: allow-oom ]]
return function(tx)
  local PAGE = 128
  local inboxes = {}
  local due = redis.call('ZRANGEBYSCORE', tx.key.claimDeadlines, '-inf', Format.integer(tx.now), 'LIMIT', 0, PAGE)
  for _, claim_id in ipairs(due) do
    local waiter = Claims.load_waiter(tx, claim_id)
    if waiter then table.insert(inboxes, waiter.replyTo) end
    Claims.forget_waiter(tx, claim_id, waiter and Claims.lane(waiter.job, waiter.workerKind) or Claims.ANY_LANE)
  end
  return Reply.object({ replyTo = inboxes, paused = Claims.pause_reason(tx), more = #due == PAGE })
end
