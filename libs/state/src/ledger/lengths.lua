-- The longest sample of each group, by the step of its first round: what adaptive policies look at.
local Lengths = {}

Lengths.HISTORY_STEPS = 8

-- Counts a group once: as censored when it is cut, and put right when it finishes. One that was made anew counts with
-- the longest of its tries.
function Lengths.count(tx, group, kind, step)
  local made = Rounds.made(tx, group)
  if made.lengthKind == 'finished' or step - group.firstStep >= Lengths.HISTORY_STEPS then return end
  local lengths = tx.key:lengths(group.job, Format.integer(group.firstStep))
  local name = (group.domain or '') .. '|'
  if made.lengthBin then redis.call('HINCRBY', lengths, name .. made.lengthKind .. '|' .. made.lengthBin, -1) end
  made.lengthBin, made.lengthKind = math.max(LengthBin.of(made.longest), made.lengthBin or 0), kind
  redis.call('HINCRBY', lengths, name .. kind .. '|' .. made.lengthBin, 1)
  redis.call('HSET', tx.key:group(group.job, group.groupId), 'lengthBin', made.lengthBin, 'lengthKind', kind)
end

return Lengths
