-- The recorded turns of sessions: one hash for each session; `id` is a hash of the name of the session. Fields of the
-- session:
--   about        JSON
--   sampling     JSON: the sampling parameters of the requests, if there are any
--   turns        number of started turns
--   generation   generation of the pool, see rounds/generation.lua
--   openedMs     when the session was opened
--   setBacks     JSON: a list of {after, offset, atMs}, one for each renewal of the pool's generation
--   named:<identity>   the latest turn of a request
-- Fields of turn n:
--   begun:n      start of the turn, ms
--   holder:n     the response that may record the turn
--   error:n      why the turn has no record
--   turn:n       record of the turn, JSON
--   ref:n        the payload of the record
--   sequence:n   tokens|digest|generation and more
--   extended:n   a later turn continues the turn
-- A renewal may have lost the turns behind the turn `after`. So that no number is given twice, each later turn gets its
-- number plus `offset`, the age of the session at the renewal in milliseconds. A session that is opened soon after a
-- renewal may have been lost in the renewal: its `openedMs` is 0, and its list of set-backs begins with this renewal.
local Trajectories = {}

Trajectories.MAX_TURNS = 256
-- How long after a renewal of the generation clients may go on with a session that was lost, milliseconds.
local REOPENED_MS = 600000

-- The set-backs of a session, with a set-back that is noticed now. `stamp`: the latest that the caller has seen of the
-- pool; `may_be_lost`: the session is new here, and its client may have used its id before.
function Trajectories.set_backs(tx, id, stamp, may_be_lost)
  local key, generation = tx.key:trajectory(id), Generation.current(tx, stamp)
  local known = redis.call('HMGET', key, 'generation', 'setBacks', 'openedMs')
  local list = known[2] and cjson.decode(known[2]) or {}
  if known[1] == generation then return list end
  may_be_lost = may_be_lost and Generation.age_ms(tx) < REOPENED_MS
  local opened_ms = tonumber(known[3] or nil) or (may_be_lost and 0 or tx.now)
  redis.call('HSET', key, 'generation', generation, 'openedMs', Format.integer(opened_ms))
  if known[1] or may_be_lost then
    list[#list + 1] = { after = Trajectories.count(tx, id), offset = tx.now - opened_ms, atMs = tx.now }
    redis.call('HSET', key, 'setBacks', cjson.encode(list))
  end
  return list
end

-- The number by which clients know a turn.
function Trajectories.number(turn, set_backs)
  local offset = 0
  for _, one in ipairs(set_backs) do
    if turn > one.after then offset = one.offset end
  end
  return turn + offset
end

function Trajectories.touch(tx, id) redis.call('ZADD', tx.key.trajectories, Format.integer(tx.now), id) end

-- A field of the turns 1 to `count`, false for turns without the field.
function Trajectories.each(tx, id, kind, count)
  local names = {}
  for turn = 1, count do names[turn] = kind .. ':' .. turn end
  return count == 0 and {} or redis.call('HMGET', tx.key:trajectory(id), unpack(names))
end

function Trajectories.count(tx, id) return tonumber(redis.call('HGET', tx.key:trajectory(id), 'turns') or 0) end

-- Removes a trajectory; its payloads are removed like all others that nothing names any more.
function Trajectories.remove(tx, id)
  local freed, now = {}, Format.integer(tx.now)
  for _, ref in ipairs(Trajectories.each(tx, id, 'ref', Trajectories.count(tx, id))) do
    if ref then
      freed[#freed + 1] = now
      freed[#freed + 1] = ref
    end
  end
  -- Frees payloads as FreedPayloads.free does, with one command for all.
  if #freed > 0 then redis.call('ZADD', tx.key.freedPayloads, 'NX', unpack(freed)) end
  redis.call('ZREM', tx.key.trajectories, id)
  return redis.call('UNLINK', tx.key:trajectory(id)) == 1
end

return Trajectories
