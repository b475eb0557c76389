-- Engines that were paused for a change of weights. An entry belongs to an engine, not to a server, so that the engine
-- is resumed also when its server was removed. The entry stays until the engine has confirmed that it was resumed.
-- Entry, JSON:
--   syncId, serverId, state ('asked' | 'paused'), askedAtMs
--   resumeAtMs, tries, nextAtMs   once the engine is to be resumed
--   givenUpAtMs   the calls failed for too long; the entry stays, so that no replica takes it for lost
--   isAway        the server was seen without an answer since: the engine is resumed when the server answers again
local PausedEngines = {}

local PAGE = 128

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

-- The modes in which the engine of a server can be paused: none when only its callers can reach it, nil when they are
-- not known yet.
function PausedEngines.modes_of(tx, server)
  if not server.probed then return {} end
  local packed = redis.call('HGET', tx.key:server(server.id), 'capabilities')
  return packed and (cjson.decode(packed).pauseModes or {})
end

-- Records an engine without an entry as one to resume: it may be paused, and Redis may have lost the entry. The call
-- waits until the capabilities of the engine are known and its server answers.
function PausedEngines.resume_unrecorded(tx, server)
  local name, modes = PausedEngines.name_of(server), PausedEngines.modes_of(tx, server)
  if not modes then return ServerHash.set(tx, server.id, 'maybePaused', '1') end
  ServerHash.unset(tx, server.id, 'maybePaused')
  if not modes[1] or PausedEngines.load(tx, name) then return end
  local is_away = server.state == 'pending' or server.state == 'failed'
  PausedEngines.save(tx, name, { syncId = '', serverId = server.id, state = 'paused', askedAtMs = tx.now,
    resumeAtMs = tx.now, givenUpAtMs = is_away and tx.now or nil, isAway = is_away or nil })
end

-- Lets `review` pass all servers once more.
function PausedEngines.review_again(tx) redis.call('HDEL', tx.key.meta, 'enginesOf') end

-- Passes one page of the servers to `resume_unrecorded`, until all servers were passed once: after a new generation of
-- the pool, when Redis may have lost entries, and after a pause that its caller did not end.
function PausedEngines.review(tx)
  local field = redis.call('HMGET', tx.key.meta, 'generation', 'enginesOf')
  local generation, reviewed, cursor = field[1], string.match(field[2] or '', '^(%x+) (%d*)$')
  if not generation or (reviewed == generation and cursor == '') then return end
  local page = redis.call('ZSCAN', tx.key.servers, reviewed == generation and cursor or '0', 'COUNT', PAGE)
  for position = 1, #page[2], 2 do
    local server = Servers.get(tx, page[2][position])
    if server then PausedEngines.resume_unrecorded(tx, server) end
  end
  redis.call('HSET', tx.key.meta, 'enginesOf', generation .. ' ' .. (page[1] == '0' and '' or page[1]))
end

return PausedEngines
