-- Groups that have ended without training, with the reason: `group.list` with the set `lost`. A group that ends while
-- its job has no round that takes results is reported by the next round.
local LostGroups = {}

local MESSAGE_LENGTH, ENTRIES_KEPT, PAGE = 300, 16384, 1024

-- The start of a message; no character is cut in two.
local function shorten(message)
  if #message <= MESSAGE_LENGTH then return message end
  return (string.gsub(string.sub(message, 1, MESSAGE_LENGTH), '[\192-\255][\128-\191]*$', ''))
end

-- Notes the end of a group. To be called before the group leaves its round, because that may complete the round. `why`:
-- {reason, message?, requestId?}
function LostGroups.note(tx, group, outcome, why)
  local job = group.job
  local open = Job.read_open_round(tx, job)
  local state = open and Round.read_state(tx, job, open)
  local list = (state == 'open' or state == 'opening') and tx.key:roundLost(job, open) or tx.key:jobLost(job)
  local entry = Group.read_listed(tx, job, group.groupId)
  entry.state, entry.liveSamples, entry.isHeld, entry.atMs = outcome, 0, nil, tx.now
  entry.reason, entry.message, entry.requestId = why.reason, why.message and shorten(why.message) or nil, why.requestId
  redis.call('RPUSH', list, cjson.encode(entry))
  redis.call('LTRIM', list, -ENTRIES_KEPT, -1)
end

-- Lets a new round report the groups that have ended since the last round.
function LostGroups.report_with(tx, job, round_id)
  local waiting = tx.key:jobLost(job)
  if redis.call('EXISTS', waiting) == 1 then redis.call('RENAME', waiting, tx.key:roundLost(job, round_id)) end
end

-- Leaves the entries of a cancelled round to the next round.
function LostGroups.leave_to_next(tx, job, round_id)
  local list = tx.key:roundLost(job, round_id)
  while true do
    local entries = redis.call('LPOP', list, PAGE)
    if not entries then return end
    redis.call('RPUSH', tx.key:jobLost(job), unpack(entries))
  end
end

-- A page of the entries of a round, as JSON. For the last round, entries that no round has reported yet come after.
function LostGroups.page(tx, job, round_id, from, count)
  local list, waiting = tx.key:roundLost(job, round_id), tx.key:jobLost(job)
  local entries = redis.call('LRANGE', list, from, from + count - 1)
  if #entries < count and Job.load(tx, job).lastRoundId == round_id then
    local rest = from + #entries - redis.call('LLEN', list)
    for _, entry in ipairs(redis.call('LRANGE', waiting, rest, rest + count - #entries - 1)) do
      table.insert(entries, entry)
    end
  end
  return entries
end

return LostGroups
