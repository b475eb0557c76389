--[[ Gives pending requests to a worker epoch, or parks the call until there are some.
ARGV[1] JSON: {claimId, workerId, workerEpoch, workerKind, max, job, waitMs, replyTo, keptMs, maxWaiters, newAttempt}:
  ClaimArgs, ClaimBounds. A repeat gets the first answer for `keptMs`, or replaces the inbox of the parked call
  workerKind        only requests of jobs that name this kind are given; absent: of jobs that name none
  waitMs, replyTo   absent: the call is never parked
  newAttempt        text that only the attempts given now have, since numbers may repeat
Reply: ClaimAnswer
       again    true when only requests of completed rounds were found and there may be more: call again
Errors: WORKER_NOT_FOUND, FENCED, QUEUE_FULL, POOL_PAUSED (for a call that does not wait). Events: longtail.requeued,
round.settled. ]]
return function(tx, args)
  if not WorkerFence.is_current(tx, args.workerId, args.workerEpoch) then
    return Reply.fail(WorkerFence.expired_worker(tx, args.workerId))
  end
  local answer = redis.call('GET', tx.key:claim(args.claimId))
  if answer then return answer end

  local job, kind = args.job, args.workerKind
  local lane = Claims.lane(job, kind)
  Claimers.note(tx, kind, args.workerId)
  local worker = { id = args.workerId, epoch = args.workerEpoch, kind = kind }
  local claims, again = Claims.take(tx, worker, args.newAttempt, args.max, job)
  if #claims > 0 then
    if Claims.load_waiter(tx, args.claimId) then Claims.forget_waiter(tx, args.claimId, lane) end
    return Claims.keep_answer(tx, args.claimId, claims, args.keptMs)
  end
  if again then return '{"claims":[],"again":true}' end

  local reply_to = args.replyTo
  local wait_ms = args.waitMs or 0
  if not reply_to or wait_ms == 0 then
    -- The call may be the last repeat of a parked claim. The parked claim must get no requests any more.
    Claims.forget_waiter(tx, args.claimId, lane)
    local reason = Claims.pause_reason(tx)
    if reason then
      return Reply.fail('POOL_PAUSED', 'The pool is paused, or its weights are being changed', nil, 250,
        { reason = reason })
    end
    return '{"claims":[]}'
  end
  if redis.call('HLEN', tx.key.claimWaiters) >= args.maxWaiters and redis.call('HEXISTS', tx.key.claimWaiters,
    args.claimId) == 0 then
    return Reply.fail('QUEUE_FULL', 'Too many claims are waiting', nil, 1000)
  end
  -- Every grant checks each lane. A claim may wait for a job before its first round is opened, but names of unknown
  -- jobs must not take the lanes of known jobs.
  local LANES, LANES_OF_UNKNOWN = 256, 64
  if lane ~= Claims.ANY_LANE and redis.call('SISMEMBER', tx.key.claimLanes, lane) == 0 then
    local is_known = job and redis.call('SISMEMBER', tx.key.jobs, job) == 1
    if redis.call('SCARD', tx.key.claimLanes) >= (is_known and LANES or LANES_OF_UNKNOWN) then
      return Reply.fail('QUEUE_FULL', 'Claims for too many different jobs are waiting', 'job', 1000)
    end
  end
  redis.call('HSET', tx.key.claimWaiters, args.claimId, cjson.encode({
    workerId = args.workerId, workerEpoch = args.workerEpoch, max = args.max, job = job,
    workerKind = kind, replyTo = reply_to,
  }))
  if lane ~= Claims.ANY_LANE then redis.call('SADD', tx.key.claimLanes, lane) end
  redis.call('ZADD', Claims.queue(tx, lane), 'NX', redis.call('HINCRBY', tx.key.meta, 'arrivalSequence', 1),
    args.claimId)
  redis.call('ZADD', tx.key.claimDeadlines, Format.integer(tx.now + wait_ms), args.claimId)
  return '{"claims":[],"parked":true}'
end
