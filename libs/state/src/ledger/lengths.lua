-- The longest sample of each group, by the step of its first round: what adaptive policies look at.
local Lengths = {}

Lengths.HISTORY_STEPS = 8

-- Counts a group once: as censored when it is cut, and put right when it finishes. One that was made anew counts with
-- the longest of its tries.
function Lengths.count(tx, group, kind, step)
  local hash = tx.key:group(group.job, group.groupId)
  local known = redis.call('HMGET', hash, 'longest', 'lengthBin', 'lengthKind')
  if known[3] == 'finished' or step - group.firstStep >= Lengths.HISTORY_STEPS then return end
  local lengths = tx.key:lengths(group.job, Format.integer(group.firstStep))
  local name = (group.domain or '') .. '|'
  if known[2] then redis.call('HINCRBY', lengths, name .. known[3] .. '|' .. known[2], -1) end
  local bin = Format.integer(math.max(LengthBin.of(tonumber(known[1] or 0)), tonumber(known[2] or 0)))
  redis.call('HINCRBY', lengths, name .. kind .. '|' .. bin, 1)
  redis.call('HSET', hash, 'lengthBin', bin, 'lengthKind', kind)
end

return Lengths
