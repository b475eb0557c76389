-- Chooses the server with the fewest tokens, by weight: context tokens of its leases, and tokens that it reported as
-- not yet prefilled.
local LeastTokens = { goes_by = 'tokens' }

local function tokens_of(tx, server)
  local uncached = tonumber(redis.call('HGET', tx.key:server(server.id), 'loadUncachedTokens') or nil) or 0
  local counted = Loads.count_of(tx.key.serverTokens, tx.token_changes, server)
  return server.load * Loads.TOKENS_PER_LOAD + counted + uncached
end

function LeastTokens.score(tx, server)
  return Loads.weighed(tokens_of(tx, server) / Loads.TOKENS_PER_LOAD, server)
end

function LeastTokens.explain(tx, server) return 'tokens', tokens_of(tx, server) end

return LeastTokens
