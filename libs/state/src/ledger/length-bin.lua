-- As libs/policies/src/ledger/length-bins.ts: exact below 64 tokens, then 32 bins to each doubling.
local LengthBin = {}

local EXACT, PER_DOUBLING = 64, 32

function LengthBin.of(tokens)
  if tokens < EXACT then return tokens end
  local _, exponent = math.frexp(tokens)
  local base = 2 ^ (exponent - 1)
  return EXACT + (exponent - 7) * PER_DOUBLING + math.floor((tokens - base) * PER_DOUBLING / base)
end

return LengthBin
