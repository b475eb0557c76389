--[[ Ends the waiting of parked claims whose deadline has come, at most 128; they get an empty answer, or POOL_PAUSED.
ARGV[1] JSON: {}
Reply: replyTo   list of string
       paused    why nothing is claimed now: 'paused', 'weights-changing' or null
       more      true when there are further ones
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/claims"
local PAGE = 128
local inboxes = {}
local due = redis.call('ZRANGEBYSCORE', key.claimDeadlines, '-inf', integer(now_ms()), 'LIMIT', 0, PAGE)
for _, claim_id in ipairs(due) do
  local waiter = load_waiter(claim_id)
  if waiter then table.insert(inboxes, waiter.replyTo) end
  forget_waiter(claim_id, waiter and waiter.job)
end
return '{"replyTo":' .. encode_list(inboxes) .. ',"paused":' .. cjson.encode(pause_reason() or cjson.null)
  .. ',"more":' .. tostring(#due == PAGE) .. '}'
