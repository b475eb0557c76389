-- Engines that were paused for a change of weights. An entry is of an engine, not of its server, so that the engine goes on
-- whatever becomes of the server: it stays until the engine has answered that it goes on.
-- Entry, JSON: syncId, serverId, state ('asked' | 'paused'), askedAtMs; since it is to go on: resumeAtMs, tries, nextAtMs;
-- when it could not be told for too long: givenUpAtMs, for a while, so that no replica takes its record for lost

local function engine_name(dialect, endpoint) return dialect .. '|' .. endpoint end

local function load_engine(name)
  local packed = redis.call('HGET', key.pausedEngines, name)
  return packed and cjson.decode(packed) or nil
end

local function save_engine(name, entry) redis.call('HSET', key.pausedEngines, name, cjson.encode(entry)) end
