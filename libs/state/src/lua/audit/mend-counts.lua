--[[ Sets the counts of a job to what a look at all its requests has found, if nothing has moved since: neither a count,
nor the sequence of the pending queue, without which no request comes back to a state it was in. Requests that are folded
or forgotten are no longer there: those counts stay, and are at least 0.
ARGV[1] JSON:
  job
  seen        object: all fields of its counts as they were when the look began; texts
  sequence    string: that of the pending queue then, '' for none
  found       object: requests by state
Reply: standing   boolean: nothing has moved, so the counts are right now
       mended     boolean: they were not
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/reply"
--- @include "../includes/transition"
local FOLDED = { 'trained', 'failed', 'dropped' }
local KEPT = { 'pending', 'claimed', 'running', 'cutting', 'unfinished', 'finished' }
local args = cjson.decode(ARGV[1])
local hash = key.books(args.job)
local now, fields = redis.call('HGETALL', hash), 0
for position = 1, #now, 2 do
  fields = fields + 1
  if args.seen[now[position]] ~= now[position + 1] then return '{"standing":false,"mended":false}' end
end
for _ in pairs(args.seen) do fields = fields - 1 end
if fields ~= 0 or (redis.call('HGET', key.meta, 'pendingSequence') or '') ~= args.sequence then
  return '{"standing":false,"mended":false}'
end

local sum, mended = 0, false
local function set(state, count)
  if tonumber(args.seen[state] or 0) == count then return end
  mended = true
  redis.call('HSET', hash, state, integer(count))
end
for _, state in ipairs(KEPT) do
  set(state, args.found[state] or 0)
  sum = sum + (args.found[state] or 0)
end
for _, state in ipairs(FOLDED) do
  local count = math.max(0, tonumber(args.seen[state] or 0))
  set(state, count)
  sum = sum + count
end
set('submitted', sum)
redis.call('SREM', key.miscountedJobs, args.job)
return cjson.encode({ standing = true, mended = mended })
