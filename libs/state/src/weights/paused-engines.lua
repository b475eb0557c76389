-- Engines that were paused for a change of weights. An entry is of an engine, not of its server, so that the engine
-- goes on whatever becomes of the server: it stays until the engine has answered that it goes on.
-- Entry, JSON: syncId, serverId, state ('asked' | 'paused'), askedAtMs; since it is to go on: resumeAtMs, tries,
-- nextAtMs; when it could not be told for too long: givenUpAtMs, so that no replica takes its record for lost, and
-- isAway since its server was seen without an answer: it is told when that one answers again
local PausedEngines = {}

function PausedEngines.name(dialect, endpoint) return dialect .. '|' .. endpoint end

function PausedEngines.name_of(server)
  local address = ServerRecord.address_of(server)
  return PausedEngines.name(address.dialect, address.endpoint)
end

function PausedEngines.load(tx, name)
  local packed = redis.call('HGET', tx.key.pausedEngines, name)
  return packed and cjson.decode(packed) or nil
end

function PausedEngines.save(tx, name, entry) redis.call('HSET', tx.key.pausedEngines, name, cjson.encode(entry)) end

return PausedEngines
