--- @include "../../includes/keys"
-- Keys of the payloads of one job, under the root `<prefix>:payload:{<job>}`. `key.meta` is shared with the clock:
-- hash: clockMs, usedBytes, versions.
local payloads = {
  index = root .. 'index', -- zset: item by the time it was stored or last found to be owned, ms
  registry = root .. 'registry', -- zset, root `{~jobs}` only: job by its last put, ms
}
function payloads.item(item) return root .. 'item:' .. item end -- hash: count, bytes, at, version and chunks 0..count-1
