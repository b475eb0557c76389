--[[ One page of the work that a flipped flag left behind: returns the leases of one void worker or server epoch, or
moves waiters out of the lane of a server that takes no leases now. Room made goes to waiters.
ARGV[1] JSON:
  mostSessions     number: as in acquire
Reply: returned    number: leases returned
       answers, servers as in routing/release
       more        true when there is further work
       grantsLeft  true when further waiters may be granted (run routing/grant)
Resumable: what is done is out of the index; any replica may run the next page.
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/reply"
--- @include "../includes/clock"
--- @include "includes/waiters"
local PAGE = 64
local args = cjson.decode(ARGV[1])
local now = now_ms()
local answers, servers = {}, {}
local returned = 0
local grants_left = false

local function move_lane(server_id)
  local server = server_of(server_id)
  local page = {}
  if not server or not is_usable(server) then
    page = redis.call('ZRANGE', key.serverLane(server_id), 0, PAGE - 1)
  end
  for _, acquire_id in ipairs(page) do
    local waiter = waiter_of(acquire_id)
    if waiter then
      settle_waiter(waiter, now, args.mostSessions, answers, servers)
    else
      redis.call('ZREM', key.serverLane(server_id), acquire_id)
    end
  end
  if #page < PAGE then redis.call('SREM', key.rehomedLanes, server_id) end
end

local function return_leases(owner)
  -- Ids may hold colons, so the kind ends at the first and the epoch begins after the last.
  local kind, id, epoch = string.match(owner, '^(%a+):(.+):(%w+)$')
  local index = kind == 'worker' and key.workerLeases(id, epoch) or key.serverLeases(id, epoch)
  local page = redis.call('SRANDMEMBER', index, PAGE)
  local touched, is_touched = {}, {}
  for _, acquire_id in ipairs(page) do
    local packed = redis.call('HGET', key.leases, acquire_id)
    local lease = packed and unpack_lease(packed)
    if lease and ((kind == 'worker' and lease.workerId == id and lease.workerEpoch == epoch)
      or (kind == 'server' and lease.serverId == id and lease.serverEpoch == epoch)) then
      return_lease(acquire_id, lease, now)
      returned = returned + 1
      if not is_touched[lease.serverId] then
        is_touched[lease.serverId] = true
        table.insert(touched, lease.serverId)
      end
    else
      redis.call('SREM', index, acquire_id)
    end
  end
  if #page < PAGE then redis.call('SREM', key.voidLeaseEpochs, owner) end
  grants_left = grant_waiters(touched, now, args.mostSessions, answers, servers)
end

local lane = redis.call('SRANDMEMBER', key.rehomedLanes)
if lane then
  move_lane(lane)
else
  local owner = redis.call('SRANDMEMBER', key.voidLeaseEpochs)
  if owner then return_leases(owner) end
end
local more = redis.call('SCARD', key.voidLeaseEpochs) > 0 or redis.call('SCARD', key.rehomedLanes) > 0
save_changes()
return '{"returned":' .. returned .. ',"answers":' .. encode_list(answers) .. ',"servers":' .. cjson.encode(servers)
  .. ',"more":' .. tostring(more) .. ',"grantsLeft":' .. tostring(grants_left) .. '}'
