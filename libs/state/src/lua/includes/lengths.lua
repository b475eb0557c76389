--- @include "transition"
-- The longest sample of each group, by the step of its first round: what adaptive policies look at.
local HISTORY_STEPS = 8

-- Counts a group once: as censored when it is cut, and put right when it finishes. One that was made anew counts with
-- the longest of its tries.
local function count_length(group, kind, step)
  local hash = key.group(group.job, group.groupId)
  local known = redis.call('HMGET', hash, 'longest', 'lengthBin', 'lengthKind')
  if known[3] == 'finished' or step - group.firstStep >= HISTORY_STEPS then return end
  local lengths = key.lengths(group.job, integer(group.firstStep))
  local name = (group.domain or '') .. '|'
  if known[2] then redis.call('HINCRBY', lengths, name .. known[3] .. '|' .. known[2], -1) end
  local bin = integer(math.max(length_bin(tonumber(known[1] or 0)), tonumber(known[2] or 0)))
  redis.call('HINCRBY', lengths, name .. kind .. '|' .. bin, 1)
  redis.call('HSET', hash, 'lengthBin', bin, 'lengthKind', kind)
end
