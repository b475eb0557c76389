-- Chooses the server with the fewest leases, by weight.
local LeastInflight = {}

function LeastInflight.score(_, server) return Loads.weighed(server.load, server) end

return LeastInflight
