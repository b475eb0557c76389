--[[ Counts some counters by server in one go, over all leases and sessions: the last word on those that seem off. With
`repair` those that are off are set, and their servers put where they belong then.
ARGV[1] JSON:
  counters         list of {hash, groupId?: as in audit/counters; name: serverId:epoch}, at most 128
  most             number: with more leases or sessions nothing is counted, so that it stays short
  repair           boolean
Reply: counted     boolean
       counters    list, in the order of the request, of [number there, number found]
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/reply"
--- @include "../routing/includes/leases"
local args = cjson.decode(ARGV[1])
if redis.call('HLEN', key.leases) > args.most or redis.call('HLEN', key.sessions) > args.most then
  return '{"counted":false,"counters":[]}'
end

local sums = { serverTokens = {}, serverSessions = {} } -- hash, or groupId with a `|` before it, -> name -> sum
local function add(hash, server_id, epoch, amount)
  if amount == 0 then return end
  sums[hash] = sums[hash] or {}
  local name = count_name(server_id, epoch)
  sums[hash][name] = (sums[hash][name] or 0) + amount
end
for _, packed in ipairs(redis.call('HVALS', key.leases)) do
  local lease = unpack_lease(packed)
  if lease.seq then
    add('serverTokens', lease.serverId, lease.serverEpoch, surplus_tokens(lease.contextTokens))
    if lease.sessionId then add('serverSessions', lease.serverId, lease.serverEpoch, -1) end
    if lease.groupId then add('|' .. lease.groupId, lease.serverId, lease.serverEpoch, 1) end
  end
end
for _, packed in ipairs(redis.call('HVALS', key.sessions)) do
  local binding = unpack_binding(packed)
  if binding.epoch and binding.epoch ~= NO_EPOCH then add('serverSessions', binding.serverId, binding.epoch, 1) end
end

local counters = {}
for index, counter in ipairs(args.counters) do
  local group = counter.hash == 'group' and counter.groupId
  local hash = group and key.groupLeases(group) or key[counter.hash]
  local there = tonumber(redis.call('HGET', hash, counter.name) or nil) or 0
  local found = (sums[group and '|' .. group or counter.hash] or {})[counter.name] or 0
  counters[index] = { there, found }
  if args.repair and there ~= found then
    if found == 0 then
      redis.call('HDEL', hash, counter.name)
    else
      redis.call('HSET', hash, counter.name, string.format('%.0f', found))
    end
    local id, epoch = string.match(counter.name, '^(.*):(%w+)$')
    local server = server_of(id)
    if server and server.epoch == epoch then rescore(server) end
  end
end
return '{"counted":true,"counters":' .. encode_list(counters) .. '}'
