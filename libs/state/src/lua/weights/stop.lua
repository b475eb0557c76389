--[[ One page of stopping what runs, for a change of weights in mode `abort`: requests become `cutting`, as in a cut, and
are listed for an abort command; their tokens are kept, and they are pending again once it is confirmed. Leases without
a request of ours are listed for their holders. To be repeated from the start until no lease is left.
ARGV[1] JSON:
  syncId, cursor   strings; cursor '0' to begin
  fenceAfterMs     number: holders that have not ended for so long are not told any more, but their servers listed
Reply: aborts   list of {requestId, attempt, workerId, workerEpoch}
       leases   list of {leaseId, requestId, workerId, workerEpoch}
       fences   list of {serverId, epoch}
       cursor   string, '0' at the end
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "includes/weight-sync"
--- @include "../includes/ending"
local PAGE = 32
local args = cjson.decode(ARGV[1])
local sync = load_sync()
if not sync or sync.syncId ~= args.syncId or sync.mode ~= 'abort' then
  return '{"aborts":[],"leases":[],"fences":[],"cursor":"0"}'
end

local is_overdue = now_ms() - sync.startedAtMs > args.fenceAfterMs
local aborts, leases, fences = {}, {}, {}
local page = redis.call('HSCAN', key.leases, args.cursor, 'COUNT', PAGE)
for position = 1, #page[2], 2 do
  -- seq|serverId|serverEpoch|workerId|workerEpoch|requestId|..: see routing/includes/leases.lua
  local seq, server_id, epoch, worker_id, worker_epoch, id = string.match(page[2][position + 1],
    '^(%d+)|([^|]*)|(%w+)|([^|]*)|(%w+)|([^|]*)|')
  -- What a void epoch holds is returned by the load-balancer.
  local is_live = worker_is_current(worker_id, worker_epoch)
  if is_live and is_overdue then
    table.insert(fences, { serverId = server_id, epoch = epoch })
  elseif is_live then
    local request = load_request(id)
    if not request or request.workerId ~= worker_id or request.workerEpoch ~= worker_epoch then
      table.insert(leases, { leaseId = seq .. '.' .. page[2][position], requestId = id, workerId = worker_id,
        workerEpoch = worker_epoch })
    elseif HELD[request.state] then
      stop_held(request, {}, aborts)
    end
  end
end
return '{"aborts":' .. encode_list(aborts) .. ',"leases":' .. encode_list(leases) .. ',"fences":' .. encode_list(fences)
  .. ',"cursor":' .. cjson.encode(page[1]) .. '}'
