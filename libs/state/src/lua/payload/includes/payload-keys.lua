--- @include "../../includes/keys"
-- Keys of the payloads of one job, under the root `<prefix>:payload:{<pool>/<job>}`. `key.meta` is shared with the clock:
-- hash: clockMs, usedBytes.
local payloads = {
  index = root .. 'index', -- zset: item by the time it was stored or last found to be owned, ms
  freed = root .. 'freed', -- set: item that waits for its removal; it counts to the quota no longer
  -- and `deployments`, root `{~jobs}` only: set of the ids of the deployments that use this store; not used by scripts
  registry = root .. 'registry', -- zset, root `{~jobs}` only: job by its last put, ms
}
local HEADER_FIELDS = 3
function payloads.item(item) return root .. 'item:' .. item end -- hash: count, bytes, at and chunks 0..count-1
function payloads.bytes(item) return tonumber(redis.call('HGET', payloads.item(item), 'bytes') or 0) end
-- `+ 0`: minus zero, of an empty payload, would be written as -0, which Redis takes for no integer.
function payloads.use(bytes) return redis.call('HINCRBY', key.meta, 'usedBytes', string.format('%.0f', bytes + 0)) end
