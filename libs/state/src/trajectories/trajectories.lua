-- The recorded turns of sessions. One hash for each session: `about` (JSON), `turns` (how many have begun), and for
-- each turn n `begun:n` (ms), `holder:n` (the generation that may record it), `error:n` (why it has no record), and of
-- its record `turn:n` (JSON), `ref:n` (its payload), `sequence:n` (tokens|digest|generation) and `extended:n` (a later
-- turn continues it). `named:<identity>` is the latest turn of a request. `id` is a hash of the session.
local Trajectories = {}

Trajectories.MAX_TURNS = 256

function Trajectories.touch(tx, id) redis.call('ZADD', tx.key.trajectories, Format.integer(tx.now), id) end

-- A field of the turns 1 to `count`, false for those without it.
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
  -- As FreedPayloads.free, with one command for all.
  if #freed > 0 then redis.call('ZADD', tx.key.freedPayloads, 'NX', unpack(freed)) end
  redis.call('ZREM', tx.key.trajectories, id)
  return redis.call('UNLINK', tx.key:trajectory(id)) == 1
end

return Trajectories
