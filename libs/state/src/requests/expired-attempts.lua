--[[ Returns attempts of expired worker epochs, at most 32 of one epoch: tokens of the last partial save are kept, and
the return is no failure of the request. An attempt that cannot be returned is tried again, and its request is lost in
the end (requests/broken-ends).
Reply: ExpiredAnswer; more: true when there are further attempts or epochs
Events: longtail.requeued, round.settled, request.lost.
Flags: allow-oom ]]
return function(tx)
  local PAGE = 32
  local owner = redis.call('SRANDMEMBER', tx.key.expiredAttemptEpochs)
  if not owner then return Reply.object({ returned = 0, pending = 0, more = false }) end
  local worker_id, epoch = string.match(owner, '^worker:(.+):(%w+)$')
  local held = tx.key:workerAttempts(worker_id, epoch)
  local pending = 0
  local ids = redis.call('SRANDMEMBER', held, PAGE)
  local function return_one(id)
    local request = Request.load(tx, id)
    if not request then
      Recovery.lose_missing(tx, id, held)
    elseif Attempts.forget_entry(tx, request, worker_id, epoch) then
      -- The request has ended, or has another holder: only the index of the epoch was out of date.
    elseif Attempts.return_attempt(tx, request) then
      pending = pending + 1
    end
  end
  for _, id in ipairs(ids) do
    local is_well, cause = pcall(return_one, id)
    if not is_well then BrokenEnds.give_up(tx, id, held, cause) end
  end
  -- No attempt is added to the index any more: a claim of an expired epoch is refused.
  if redis.call('EXISTS', held) == 0 then redis.call('SREM', tx.key.expiredAttemptEpochs, owner) end
  return Reply.object({ returned = #ids, pending = pending,
    more = redis.call('EXISTS', tx.key.expiredAttemptEpochs) == 1 })
end
