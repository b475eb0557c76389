--[[ Gives pending requests to parked claims in the order of their arrival; each gets one answer. A claim for one job,
or from one kind of worker, is passed by while that job, or the jobs for that kind, have nothing to give.
ARGV[1] JSON: {keptMs, maxGrants, newAttempt}   numbers; newAttempt as in requests/claim
Reply: grants   list of {replyTo, claims}, or {replyTo, fenced: true} for a worker epoch that is expired
       more     true when there may be further grants: call again
Events: longtail.requeued, round.settled. ]]
return function(tx, args)
  local PAGE = 128
  local grants, given = {}, 0

  -- The first claim of each lane that may get requests, and its arrival. Read once, then updated here, because there
  -- may be hundreds of lanes.
  local heads = {}
  local function read_head(lane)
    local head = redis.call('ZRANGE', Claims.queue(tx, lane), 0, 0, 'WITHSCORES')
    heads[lane] = head[1] and { claim = head[1], arrival = tonumber(head[2]) } or nil
  end
  if not Claims.pause_reason(tx) then
    if Claims.lane_is_served(tx, Claims.ANY_LANE) then read_head(Claims.ANY_LANE) end
    for _, lane in ipairs(redis.call('SMEMBERS', tx.key.claimLanes)) do
      if Claims.lane_is_served(tx, lane) then read_head(lane) end
    end
  end

  -- The claim that has waited longest in the lanes that may get requests, with its lane. Nil at the end.
  local function next_waiter()
    while true do
      local first
      for lane, head in pairs(heads) do
        if not first or head.arrival < heads[first].arrival then first = lane end
      end
      if not first then return nil end
      if Claims.lane_is_served(tx, first) then return heads[first].claim, first end
      heads[first] = nil
    end
  end

  -- Returns true when the script has reached its bounds without a claim.
  local function serve(claim_id, lane)
    local waiter = Claims.load_waiter(tx, claim_id)
    -- Without the waiter the reply subject is unknown; the worker repeats its claim.
    if not waiter then return Claims.forget_waiter(tx, claim_id, lane) end
    local inbox = '{"replyTo":' .. cjson.encode(waiter.replyTo)
    if not WorkerFence.is_current(tx, waiter.workerId, waiter.workerEpoch) then
      table.insert(grants, inbox .. ',"claims":[],"fenced":true}')
      return Claims.forget_waiter(tx, claim_id, lane)
    end
    local worker = { id = waiter.workerId, epoch = waiter.workerEpoch, kind = waiter.workerKind }
    local claims, again = Claims.take(tx, worker, args.newAttempt, waiter.max, waiter.job)
    -- The jobs for which the claim waits have left the line.
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
