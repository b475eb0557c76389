--[[ Gives pending requests to parked claims in the order of their arrival; each gets one answer. A claim that waits for
one job is passed by while that job has nothing to give.
ARGV[1] JSON: {keptMs, maxGrants, newAttempt}   numbers; newAttempt as in requests/claim
Reply: grants   list of {replyTo, claims}, or {replyTo, fenced: true} for a worker epoch that is expired
       more     true when there may be further ones: call again
Events: longtail.requeued, round.settled. ]]
return function(tx, args)
  local PAGE = 128
  local now = tx.now
  local grants, given = {}, 0

  -- Lanes that may get something -> arrival of their first claim: read once, then kept by hand, since there may be
  -- hundreds. A lane is a job, or ANY for claims that take any job.
  local ANY = ''
  local heads = {}
  local function read_head(lane)
    local head = redis.call('ZRANGE', Claims.lane_of(tx, lane ~= ANY and lane or nil), 0, 0, 'WITHSCORES')
    heads[lane] = head[1] and { claim = head[1], arrival = tonumber(head[2]) } or nil
  end
  if redis.call('EXISTS', tx.key.claimableJobs) == 1 and not Claims.pause_reason(tx) then
    read_head(ANY)
    for _, job in ipairs(redis.call('SMEMBERS', tx.key.claimLanes)) do
      if redis.call('ZSCORE', tx.key.claimableJobs, job) then read_head(job) end
    end
  end

  -- The claim that has waited longest of those that may get something, with its lane. Nil at the end.
  local function next_waiter()
    while true do
      local first
      for lane, head in pairs(heads) do
        if not first or head.arrival < heads[first].arrival then first = lane end
      end
      if not first then return nil end
      local has_more
      if first == ANY then has_more = redis.call('EXISTS', tx.key.claimableJobs) == 1
      else has_more = redis.call('ZSCORE', tx.key.claimableJobs, first) end
      if has_more then return heads[first].claim, first end
      heads[first] = nil
    end
  end

  -- Returns true when there was more to look at than one script may.
  local function serve(claim_id, lane)
    lane = lane ~= ANY and lane or nil
    local waiter = Claims.load_waiter(tx, claim_id)
    -- The reply subject is unknown; the worker repeats its claim.
    if not waiter then return Claims.forget_waiter(tx, claim_id, lane) end
    local inbox = '{"replyTo":' .. cjson.encode(waiter.replyTo)
    if not WorkerFence.is_current(tx, waiter.workerId, waiter.workerEpoch) then
      table.insert(grants, inbox .. ',"claims":[],"fenced":true}')
      return Claims.forget_waiter(tx, claim_id, lane)
    end
    local claims, again = Claims.take(tx, { id = waiter.workerId, epoch = waiter.workerEpoch }, args.newAttempt,
      waiter.max, lane, now)
    -- What it waits for has left the line.
    if #claims == 0 then return again end
    Claims.keep_answer(tx, claim_id, claims, args.keptMs)
    given = given + #claims
    table.insert(grants, inbox .. ',"claims":[' .. table.concat(claims, ',') .. ']}')
    Claims.forget_waiter(tx, claim_id, lane)
  end

  local more = false
  repeat
    local claim_id, lane = next_waiter()
    if claim_id then
      more = given >= PAGE or tx.answer_is_full or #grants >= args.maxGrants or serve(claim_id, lane) == true
      read_head(lane)
    end
  until more or not claim_id
  return '{"grants":[' .. table.concat(grants, ',') .. '],"more":' .. tostring(more) .. '}'
end
