-- Lengths of samples in bins, and the longest sample of each group by the step of its first round, which adaptive
-- policies read.
local Lengths = {}

local EXACT, PER_DOUBLING = 64, 32
-- Bin of a length, as in libs/policies/src/ledger/length-bins.ts: exact below 64 tokens, then 32 bins to each doubling.
function Lengths.bin_of(tokens)
  if tokens < EXACT then return tokens end
  local _, exponent = math.frexp(tokens)
  local base = 2 ^ (exponent - 1)
  return EXACT + (exponent - 7) * PER_DOUBLING + math.floor((tokens - base) * PER_DOUBLING / base)
end

Lengths.HISTORY_STEPS = 8

-- Counts a group once: as censored when it is cut, which is corrected when it finishes. A group that was generated
-- again counts with its longest try.
function Lengths.count(tx, group, kind, step)
  Group.read_made(tx, group)
  if group.lengthKind == 'finished' or step - group.firstStep >= Lengths.HISTORY_STEPS then return end
  local lengths = tx.key:lengths(group.job, Format.integer(group.firstStep))
  local name = (group.domain or '') .. '|'
  if group.lengthBin then redis.call('HINCRBY', lengths, name .. group.lengthKind .. '|' .. group.lengthBin, -1) end
  Group.set(tx, group, { lengthBin = math.max(Lengths.bin_of(group.longest), group.lengthBin or 0), lengthKind = kind })
  redis.call('HINCRBY', lengths, name .. kind .. '|' .. group.lengthBin, 1)
end

return Lengths
