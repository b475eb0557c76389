--[[ Gives pending requests to parked claims in the order of their arrival; each gets one answer.
ARGV[1] JSON: {keptMs, maxGrants}   numbers
Reply: grants   list of {replyTo, claims}, or {replyTo, fenced: true} for a worker epoch that is void
       more     true when there may be further ones: call again
Errors: none. Facts: longtail.requeued, round.settled. ]]
--- @include "../includes/claims"
local PAGE = 128
local args = cjson.decode(ARGV[1])
local now = now_ms()
local grants, given = {}, 0
local more = false
while true do
  local claim_id = redis.call('ZRANGE', key.claimQueue, 0, 0)[1]
  if not claim_id then break end
  if given >= PAGE or #grants >= args.maxGrants then
    more = true
    break
  end
  local waiter = load_waiter(claim_id)
  local inbox = waiter and '{"replyTo":' .. cjson.encode(waiter.replyTo)
  if not waiter then
    -- Nobody knows where to answer; the worker repeats its claim.
  elseif worker_is_current(waiter.workerId, waiter.workerEpoch) then
    local claims, again = take_claims(waiter.workerId, waiter.workerEpoch, waiter.max, now)
    if #claims == 0 then
      more = again
      break
    end
    keep_answer(claim_id, claims, args.keptMs)
    given = given + #claims
    table.insert(grants, inbox .. ',"claims":[' .. table.concat(claims, ',') .. ']}')
  else
    table.insert(grants, inbox .. ',"claims":[],"fenced":true}')
  end
  forget_waiter(claim_id)
end
return '{"grants":[' .. table.concat(grants, ',') .. '],"more":' .. tostring(more) .. '}'
