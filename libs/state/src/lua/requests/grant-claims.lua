--[[ Gives pending requests to parked claims in the order of their arrival; each gets one answer. A claim that waits for
one job is passed by while that job has nothing to give.
ARGV[1] JSON: {keptMs, maxGrants}   numbers
Reply: grants   list of {replyTo, claims}, or {replyTo, fenced: true} for a worker epoch that is void
       more     true when there may be further ones: call again
Errors: none. Facts: longtail.requeued, round.settled. ]]
--- @include "../includes/claims"
local PAGE = 128
local args = cjson.decode(ARGV[1])
local now = now_ms()
local grants, given = {}, 0

-- The claim that has waited longest of those that may get something, with its lane: a job, or nil for any. Nil at the end.
local function next_waiter()
  local claim_id, lane, arrival = nil, nil, math.huge
  local function look(job)
    local head = redis.call('ZRANGE', lane_of(job), 0, 0, 'WITHSCORES')
    if head[1] and tonumber(head[2]) < arrival then claim_id, lane, arrival = head[1], job, tonumber(head[2]) end
  end
  if redis.call('EXISTS', key.claimableJobs) == 0 or pool_is_paused() then return nil end
  look(nil)
  for _, job in ipairs(redis.call('SMEMBERS', key.claimLanes)) do
    if redis.call('ZSCORE', key.claimableJobs, job) then look(job) end
  end
  return claim_id, lane
end

-- Returns true when there was more to look at than one script may.
local function serve(claim_id, lane)
  local waiter = load_waiter(claim_id)
  -- Nobody knows where to answer; the worker repeats its claim.
  if not waiter then return forget_waiter(claim_id, lane) end
  local inbox = '{"replyTo":' .. cjson.encode(waiter.replyTo)
  if not worker_is_current(waiter.workerId, waiter.workerEpoch) then
    table.insert(grants, inbox .. ',"claims":[],"fenced":true}')
    return forget_waiter(claim_id, lane)
  end
  local claims, again = take_claims(waiter.workerId, waiter.workerEpoch, waiter.max, lane, now)
  -- What it waits for has left the line.
  if #claims == 0 then return again end
  keep_answer(claim_id, claims, args.keptMs)
  given = given + #claims
  table.insert(grants, inbox .. ',"claims":[' .. table.concat(claims, ',') .. ']}')
  forget_waiter(claim_id, lane)
end

local more = false
repeat
  local claim_id, lane = next_waiter()
  if claim_id then more = given >= PAGE or #grants >= args.maxGrants or serve(claim_id, lane) == true end
until more or not claim_id
return '{"grants":[' .. table.concat(grants, ',') .. '],"more":' .. tostring(more) .. '}'
