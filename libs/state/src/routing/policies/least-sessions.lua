-- Fewest sessions bound to it, by weight; a lease without a session counts as one of a single turn. Only sessions are
-- written down: one that is bound counts 1, each of its leases -1.
local LeastSessions = { goes_by = 'sessions' }

local function sessions_of(tx, server)
  return server.load + Loads.count_of(tx.key.serverSessions, tx.session_changes, server)
end

function LeastSessions.score(tx, server) return Loads.weighed(sessions_of(tx, server), server) end

function LeastSessions.explain(tx, server) return 'sessions', sessions_of(tx, server) end

return LeastSessions
