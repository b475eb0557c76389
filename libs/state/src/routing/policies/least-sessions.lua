-- Chooses the server with the fewest bound sessions, by weight; a lease without a session counts as a session of a
-- single turn. The stored count is added to the load: 1 for each bound session, -1 for each lease of a session.
local LeastSessions = { goes_by = 'sessions' }

local function sessions_of(tx, server)
  return server.load + Loads.count_of(tx.key.serverSessions, tx.session_changes, server)
end

function LeastSessions.score(tx, server) return Loads.weighed(sessions_of(tx, server), server) end

function LeastSessions.explain(tx, server) return 'sessions', sessions_of(tx, server) end

return LeastSessions
