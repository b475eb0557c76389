-- The counts of a job, its rounds and groups. None can be below zero: then Redis has lost something, the job is marked,
-- and upkeep counts it again from its requests.
local Counts = {}

-- States whose requests are stored one by one, and those whose requests may be folded into the counts.
Counts.KEPT = { 'pending', 'claimed', 'running', 'cutting', 'unfinished', 'finished' }
Counts.FOLDED = { 'trained', 'failed', 'dropped' }

local function mark_miscount(tx, job)
  redis.call('HINCRBY', tx.key.meta, 'miscounts', 1)
  redis.call('SADD', tx.key.miscountedJobs, job)
  -- A recount that is under way may have been there before: another one follows.
  if redis.call('EXISTS', tx.key:recount(job)) == 1 then redis.call('HSET', tx.key:recount(job), 'again', 1) end
end

-- There is no recount of the job that was begun in this generation.
function Counts.is_recount_outdated(tx, job)
  return redis.call('HGET', tx.key:recount(job), 'generation') ~= Generation.current(tx)
end

-- Changes a field of a hash of this job; returns what it is then.
function Counts.add(tx, hash, job, field, by)
  local count = redis.call('HINCRBY', hash, field, by)
  if count < 0 then mark_miscount(tx, job) end
  return count
end

-- Changes many fields with two calls and sets others; both flat lists of name and number. Returns what the changed
-- fields are then, in their order.
function Counts.add_many(tx, hash, job, changes, fields)
  local names, counts = {}, {}
  for position = 1, #changes, 2 do names[#names + 1] = changes[position] end
  for index, before in ipairs(redis.call('HMGET', hash, unpack(names))) do
    local count = tonumber(before or 0) + changes[2 * index]
    if count < 0 then mark_miscount(tx, job) end
    counts[index] = count
    fields[#fields + 1], fields[#fields + 2] = names[index], count
  end
  redis.call('HSET', hash, unpack(fields))
  return counts
end

function Counts.add_requests(tx, job, state, by) Counts.add(tx, tx.key:counts(job), job, state, by) end

-- A recount goes through the requests in pages. Those it has been to carry its id; what becomes of them since is
-- counted with it, so that in the end it is right whatever has moved.
function Counts.count_again(tx, request, from, to)
  local hash = tx.key:recount(request.job)
  if not request.recount or redis.call('HGET', hash, 'id') ~= request.recount then return end
  redis.call('HINCRBY', hash, from, -1)
  redis.call('HINCRBY', hash, to, 1)
end

-- Groups on their way to the long-tail queue.
function Counts.add_settling(tx, job, by) Counts.add(tx, tx.key:job(job), job, 'settlingGroups', by) end

-- An index named it, and it is not there. A worker may have had it: others may have more.
function Counts.note_lost(tx, job, id)
  ClaimTurns.readmit(tx, job)
  redis.call('HINCRBY', tx.key.meta, 'lostEntries', 1)
  Events.add(tx, 'request.lost', { requestId = id })
  mark_miscount(tx, job)
end

return Counts
