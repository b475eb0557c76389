-- One transition: its pool, its time, its keys, and the data that modules keep until it ends. Functions are loaded once
-- and serve every pool, so no module keeps data of a call in a variable: it declares a field, whose value is made when
-- it is first read.
local Tx = { fields = {} }

local lazy = { __index = function(tx, name)
  local make = Tx.fields[name]
  if not make then return nil end
  local value = make(tx)
  rawset(tx, name, value)
  return value
end }

-- `root`: prefix of every key of the pool. `is_read_only`: Redis refuses each write of the transition. The nil fields
-- reserve the memory that most transitions need, so that the table need not grow.
function Tx.open(root, is_read_only)
  local nothing = nil
  return setmetatable({ root = root, is_read_only = is_read_only, key = Keys.of(root), meta = nothing, now = nothing,
    settings = nothing, policy = nothing, policy_name = nothing, next_policy = nothing, holders = nothing,
    known_leases = nothing, known_servers = nothing, moved_servers = nothing, order = nothing, new_leases = nothing,
    gone_leases = nothing, joining = nothing, leaving = nothing }, lazy)
end

-- Fields of the pool that every transition needs, read with one call.
function Tx.fields.meta(tx)
  return redis.call('HMGET', tx.key.meta, 'clockMs', 'clockAheadMs', 'schemaVersion', 'leaseSequence')
end

-- The version of the layout in which the pool is stored; nil for a new pool.
function Tx.schema_of(tx) return tonumber(tx.meta[3] or nil) end

-- Sequence number of the last lease. Choices of servers are ordered by the same counter.
function Tx.fields.sequence(tx) return tonumber(tx.meta[4] or nil) or 0 end

-- The error to answer for a pool that this library cannot read, see library/schema-version.ts; nil for others.
function Tx.refusal(tx)
  local version = Tx.schema_of(tx)
  if not version or version == SCHEMA_VERSION or version == SCHEMA_VERSION + 1 then return nil end
  return redis.error_reply('SCHEMA ' .. version)
end

-- The time of the pool in milliseconds: Redis TIME, one moment for the whole transition, never earlier than before, so
-- that no age shrinks. After TIME was set back by more than SET_BACK_MS, the time of the pool continues from its last
-- value and stays ahead of TIME; otherwise no deadline would pass until TIME had caught up. A transition that only
-- reads stores nothing.
local SET_BACK_MS = 1000
function Tx.fields.now(tx)
  local time, field = redis.call('TIME'), tx.meta
  local last, ahead = tonumber(field[1] or nil) or 0, tonumber(field[2] or nil) or 0
  local now = time[1] * 1000 + math.floor(time[2] / 1000) + ahead
  if tx.is_read_only then return math.max(now, last) end
  if now < last - SET_BACK_MS then
    redis.call('HSET', tx.key.meta, 'clockAheadMs', Format.integer(ahead + last - now))
  elseif now > last then
    tx.now_text = Format.integer(now)
    redis.call('HSET', tx.key.meta, 'clockMs', tx.now_text)
    last = now
  end
  if not field[3] then redis.call('HSET', tx.key.meta, 'schemaVersion', SCHEMA_VERSION) end
  return last
end

function Tx.fields.now_text(tx) return Format.integer(tx.now) end

return Tx
