-- Chooses the server of whose KV memory sessions use the smallest share: contexts of resident sessions and part of the
-- growth that is expected of these sessions, in thousandths. Without `sessionAdmission` nothing is counted.
local LeastKv = { goes_by = 'kv' }

local RESERVED = 0.35 -- part of the growth, as for new sessions in sessions/admission.lua
local ASSUMED_TOKENS = 1000000 -- KV memory of a server that is not known

local function share_of(tx, server)
  local sums = Residency.sums_of_server(tx, server)
  return math.floor(1000 * (sums.tokens + RESERVED * sums.growth) / (sums.capacity or ASSUMED_TOKENS))
end

function LeastKv.score(tx, server) return Loads.weighed(share_of(tx, server), server) end

function LeastKv.explain(tx, server) return 'kvShare', share_of(tx, server) end

return LeastKv
