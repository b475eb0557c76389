--[[ Returns leases as routing/release does, in the common case: the pool goes by least-inflight, nobody waits, and the
lease is there and not void. Whatever is not so is passed over with nothing changed, and is for routing/release.
ARGV: rememberMs as in release; then for each of at most 128 items
  acquireId
  seq, or empty
Reply: list, for each item 1 when it was released and 0 when it was passed over; empty when the pool is not plain now.
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "includes/plain-pool"
local STRIDE, FIRST = 2, 2
local count = (#ARGV - FIRST + 1) / STRIDE
if not is_plain_for_release or not nobody_waits then return {} end

local acquire_ids = {}
for index = 1, count do acquire_ids[index] = ARGV[FIRST + (index - 1) * STRIDE] end
local known = redis.call('HMGET', key.leases, unpack(acquire_ids))
local results, returned, bindings, idle = {}, {}, {}, {}
local is_seen = {} -- an acquireId that was passed over once is so again

-- The binding of a session, or false; read once.
local function binding_of(session)
  local binding = bindings[session]
  if binding == nil then
    local packed = redis.call('HGET', key.sessions, session)
    binding = packed and unpack_binding(packed)
    bindings[session] = binding
  end
  return binding
end

for index = 1, count do
  local acquire_id, packed = acquire_ids[index], known[index]
  results[index] = 0
  if packed and not is_seen[acquire_id] then
    is_seen[acquire_id] = true
    local seq, server_id, epoch, worker, request, session, group, tokens = string.match(packed,
      '^(%d+)|([^|]*)|(%w+)|([^|]*|%w+)|([^|]*)|([^|]*)|([^|]*)|%d+|?(%d*)')
    local asked = ARGV[FIRST + (index - 1) * STRIDE + 1]
    local server = (asked == '' or asked == seq) and server_by(server_id)
    local holder = server and server.name == server_id .. ':' .. epoch and not server.isWarming and holder_of(worker)
    local binding = holder and session ~= '' and binding_of(session)
    -- The end of a session that is finished is not plain.
    if holder and not (binding and binding.finished) then
      results[index] = 1
      returned[#returned + 1] = acquire_id
      redis.call('SET', key.released(acquire_id), packed, 'PX', ARGV[1])
      change_request_leases(request, acquire_id, false)
      put_into(server, acquire_id)
      put_into(holder, acquire_id)
      holder.digest = holder.digest - tonumber(seq)
      local surplus = surplus_tokens(tonumber(tokens))
      if surplus > 0 then change_count(token_changes, server_id, server.epoch, -surplus) end
      if session ~= '' then change_count(session_changes, server_id, server.epoch, 1) end
      if binding then
        binding.leases = binding.leases - 1
        binding.changed = true
      end
      if group ~= '' then
        local leases = key.groupLeases(group)
        if redis.call('HINCRBY', leases, server.name, -1) <= 0 then redis.call('HDEL', leases, server.name) end
      end
    end
  end
end
if #returned == 0 then return results end

redis.call('HDEL', key.leases, unpack(returned))
save_request_leases()
local moved, ids = {}, {}
for id, server in pairs(servers) do
  if server and server.count > 1 then
    moved[#moved + 1] = server
    ids[#ids + 1] = id
  end
end
local chosen = redis.call('HMGET', key.serverChosen, unpack(ids))
local placed, gone = {}, {}
for index, server in ipairs(moved) do
  server.load = server.load - server.count + 1
  if server.load < server.most then
    placed[#placed + 1] = string.format('%.0f', weighed(server.load, server) * LOAD_UNIT + (tonumber(chosen[index] or nil) or 0))
    placed[#placed + 1] = server.id
  else
    gone[#gone + 1] = server.id
  end
end
if #placed > 0 then redis.call('ZADD', key.eligible, unpack(placed)) end
if #gone > 0 then redis.call('ZREM', key.eligible, unpack(gone)) end
save_members('SREM')
save_counts()
local bound = {}
for session, binding in pairs(bindings) do
  if binding and binding.changed then
    bound[#bound + 1] = session
    bound[#bound + 1] = pack_binding(binding)
    if binding.leases <= 0 then
      idle[#idle + 1] = string.format('%.0f', now)
      idle[#idle + 1] = session
    end
  end
end
if #bound > 0 then redis.call('HSET', key.sessions, unpack(bound)) end
if #idle > 0 then redis.call('ZADD', key.idleSessions, unpack(idle)) end
return results
